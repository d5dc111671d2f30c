package store

import (
	"context"

	"crier/tenancy"
	"crier/tenancy/db"
)

const identityList = `-- tenancy.IdentityList
select id, provider, created_at from identity where person_id = $1 order by created_at, issuer, subject`

// Identities returns a person's identities, oldest first.
func Identities(ctx context.Context, tx *db.GateTx, person tenancy.PersonID) ([]tenancy.Identity, error) {
	return db.List[tenancy.Identity](ctx, tx, identityList, person)
}

const identityDelete = `-- tenancy.IdentityDelete
delete from identity where person_id = $1 and id = $2`

// DeleteIdentity deletes one of a person's identities. It returns pgx.ErrNoRows if there is no such
// identity.
func DeleteIdentity(ctx context.Context, tx *db.GateTx, person tenancy.PersonID, identity tenancy.IdentityID) error {
	return db.Change(ctx, tx, identityDelete, person, identity)
}
