package db

import (
	"context"
	"time"

	"crier/platform/id"
	"crier/tenancy"
)

// IdentityKey identifies an account at an identity provider. Example: provider GITHUB, issuer
// https://github.com, subject 583231
type IdentityKey struct {
	Provider string `db:"provider"`
	Issuer   string `db:"issuer"`
	Subject  string `db:"subject"`
}

const identityInsert = `-- tenancy.IdentityInsert
insert into identity (id, issuer, subject, person_id, provider, created_at) values ($1, $2, $3, $4, $5, $6)`

// AddIdentity adds an identity to a person. If the identity already belongs to a person, it returns
// a violation of the unique constraint identity_pkey.
func AddIdentity(ctx context.Context, tx *GateTx, k IdentityKey, person tenancy.PersonID, now time.Time) error {
	_, err := Exec(ctx, tx, identityInsert, id.New[tenancy.IdentityTag](), k.Issuer, k.Subject, person, k.Provider, now)
	return err
}

const identityDeleteAll = `-- tenancy.IdentityDeleteAll
delete from identity where person_id = $1`

// DeleteIdentities deletes all of a person's identities.
func DeleteIdentities(ctx context.Context, tx *GateTx, person tenancy.PersonID) error {
	_, err := Exec(ctx, tx, identityDeleteAll, person)
	return err
}
