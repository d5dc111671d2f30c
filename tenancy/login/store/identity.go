package store

import (
	"context"
	"time"

	"crier/tenancy"
	"crier/tenancy/db"
)

const identityPerson = `-- tenancy.IdentityPerson
select person_id from identity where issuer = $1 and subject = $2`

// PersonOfIdentity returns the person that an identity is linked to, or pgx.ErrNoRows if there is
// none.
func PersonOfIdentity(ctx context.Context, tx *db.GateTx, k db.IdentityKey) (person tenancy.PersonID, err error) {
	err = tx.QueryRow(ctx, identityPerson, k.Issuer, k.Subject).Scan(&person)
	return person, err
}

// SignInState describes a sign-in that was begun at an identity provider.
type SignInState struct {
	Provider string `db:"provider"`
	// Verifier is the sealed PKCE verifier.
	Verifier    []byte `db:"verifier"`
	Nonce       string `db:"nonce"`
	RedirectURI string `db:"redirect_uri"`
	// Person is the person to link the identity to, or zero for a sign-in.
	Person    tenancy.PersonID `db:"person_id"`
	ExpiresAt time.Time        `db:"expires_at"`
}

const stateInsert = `-- tenancy.StateInsert
insert into sign_in_state (hash, provider, verifier, nonce, redirect_uri, person_id, expires_at)
values ($1, $2, $3, $4, $5, $6, $7)`

// CreateState stores a sign-in state under its hash.
func CreateState(ctx context.Context, tx *db.GateTx, hash []byte, s SignInState) error {
	_, err := db.Exec(ctx, tx, stateInsert, hash, s.Provider, s.Verifier, s.Nonce, s.RedirectURI, s.Person, s.ExpiresAt)
	return err
}

const stateTake = `-- tenancy.StateTake
delete from sign_in_state where hash = $1
returning provider, verifier, nonce, redirect_uri, person_id, expires_at`

// TakeState deletes and returns a sign-in state, even if it has expired. It returns pgx.ErrNoRows
// if there is no such state.
func TakeState(ctx context.Context, tx *db.GateTx, hash []byte) (SignInState, error) {
	return db.One[SignInState](ctx, tx, stateTake, hash)
}
