package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/id"
	"crier/tenancy"
)

// IdentityKey names an account at an identity provider.
type IdentityKey struct {
	Provider string `db:"provider"`
	Issuer   string `db:"issuer"`
	Subject  string `db:"subject"`
}

const identityPerson = `-- tenancy.IdentityPerson
select person_id from identity where issuer = $1 and subject = $2`

// PersonOfIdentity returns the person of an identity, or pgx.ErrNoRows.
func (t *GateTx) PersonOfIdentity(ctx context.Context, k IdentityKey) (person tenancy.PersonID, err error) {
	err = t.tx.QueryRow(ctx, identityPerson, k.Issuer, k.Subject).Scan(&person)
	return person, err
}

const identityInsert = `-- tenancy.IdentityInsert
insert into identity (id, issuer, subject, person_id, provider, created_at) values ($1, $2, $3, $4, $5, $6)`

// AddIdentity inserts an identity of a person. It returns a violation of identity_pkey when a person has it.
func (t *GateTx) AddIdentity(ctx context.Context, k IdentityKey, person tenancy.PersonID, now time.Time) error {
	_, err := exec(ctx, t.tx, identityInsert, id.New[tenancy.IdentityTag](), k.Issuer, k.Subject, person, k.Provider, now)
	return err
}

const identityList = `-- tenancy.IdentityList
select id, provider, created_at from identity where person_id = $1 order by created_at, issuer, subject`

// Identities returns the identities of a person.
func (t *GateTx) Identities(ctx context.Context, person tenancy.PersonID) ([]tenancy.Identity, error) {
	return list[tenancy.Identity](ctx, t.tx, identityList, person)
}

const identityDelete = `-- tenancy.IdentityDelete
delete from identity where person_id = $1 and id = $2`

// DeleteIdentity deletes an identity of a person, or returns pgx.ErrNoRows.
func (t *GateTx) DeleteIdentity(ctx context.Context, person tenancy.PersonID, identity tenancy.IdentityID) error {
	return change(ctx, t.tx, identityDelete, person, identity)
}

const identityDeleteAll = `-- tenancy.IdentityDeleteAll
delete from identity where person_id = $1`

// DeleteIdentities deletes all identities of a person.
func (t *GateTx) DeleteIdentities(ctx context.Context, person tenancy.PersonID) error {
	_, err := exec(ctx, t.tx, identityDeleteAll, person)
	return err
}

// SignInState is a sign-in at an identity provider that was begun.
type SignInState struct {
	Provider string `db:"provider"`
	// Verifier is sealed.
	Verifier    []byte `db:"verifier"`
	Nonce       string `db:"nonce"`
	RedirectURI string `db:"redirect_uri"`
	// Person links the identity; zero for a sign-in.
	Person    tenancy.PersonID `db:"person_id"`
	ExpiresAt time.Time        `db:"expires_at"`
}

const stateInsert = `-- tenancy.StateInsert
insert into sign_in_state (hash, provider, verifier, nonce, redirect_uri, person_id, expires_at)
values ($1, $2, $3, $4, $5, $6, $7)`

// CreateState inserts the hash of a state.
func (t *GateTx) CreateState(ctx context.Context, hash []byte, s SignInState) error {
	_, err := exec(ctx, t.tx, stateInsert, hash, s.Provider, s.Verifier, s.Nonce, s.RedirectURI, s.Person, s.ExpiresAt)
	return err
}

const stateTake = `-- tenancy.StateTake
delete from sign_in_state where hash = $1
returning provider, verifier, nonce, redirect_uri, person_id, expires_at`

// TakeState deletes a state and returns it, also when it is over, or returns pgx.ErrNoRows.
func (t *GateTx) TakeState(ctx context.Context, hash []byte) (SignInState, error) {
	return one[SignInState](ctx, t.tx, stateTake, hash)
}

// Claim is what an identity provider stated about a person without an account.
type Claim struct {
	IdentityKey
	Email string `db:"email"`
	Name  string `db:"name"`
	// Verified is false for an address that the provider does not call verified. Nobody can register such an address.
	Verified  bool      `db:"verified"`
	ExpiresAt time.Time `db:"expires_at"`
}

const claimInsert = `-- tenancy.ClaimInsert
insert into identity_claim (hash, provider, issuer, subject, email, name, verified, expires_at)
values ($1, $2, $3, $4, $5, $6, $7, $8)`

// CreateClaim inserts the hash of a claim's token.
func (t *GateTx) CreateClaim(ctx context.Context, hash []byte, c Claim) error {
	_, err := exec(ctx, t.tx, claimInsert,
		hash, c.Provider, c.Issuer, c.Subject, c.Email, c.Name, c.Verified, c.ExpiresAt)
	return err
}

const claimTake = `-- tenancy.ClaimTake
delete from identity_claim where hash = $1 and expires_at > $2
returning provider, issuer, subject, email, name, verified, expires_at`

// TakeClaim deletes a claim and returns it, or returns pgx.ErrNoRows when there is none that is not over.
func (t *GateTx) TakeClaim(ctx context.Context, hash []byte, now time.Time) (Claim, error) {
	return one[Claim](ctx, t.tx, claimTake, hash, now)
}

const requestInsert = `-- tenancy.RequestInsert
insert into used_request (id, expires_at) values ($1, $2) on conflict (id) do nothing`

const requestsInsert = `-- tenancy.RequestInsertMany
insert into used_request (id, expires_at) select unnest($1::text[]), $2 on conflict (id) do nothing returning id`

// UseRequests records ids, and returns those that were not used before.
func (t *GateTx) UseRequests(ctx context.Context, ids []string, expires time.Time) ([]string, error) {
	rows, err := t.tx.Query(ctx, requestsInsert, ids, expires)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// UseRequest records the id of a signed request, or returns pgx.ErrNoRows when it was used before.
func (t *GateTx) UseRequest(ctx context.Context, id string, expires time.Time) error {
	return change(ctx, t.tx, requestInsert, id, expires)
}
