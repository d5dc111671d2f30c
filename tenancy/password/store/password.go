// Package store writes passwords and addresses. Only tenancy/password uses it.
package store

import (
	"context"

	"crier/tenancy"
	"crier/tenancy/db"
)

const personPassword = `-- tenancy.PersonPassword
update person set password_hash = $2 where id = $1`

// SetPassword replaces a person's password hash. It returns pgx.ErrNoRows if there is no such
// person.
func SetPassword(ctx context.Context, tx *db.GateTx, person tenancy.PersonID, hash string) error {
	return db.Change(ctx, tx, personPassword, person, hash)
}

const personEmail = `-- tenancy.PersonEmail
update person set email = $2, verified = $3 where id = $1`

// SetEmail replaces a person's address. It returns the same errors as db.CreatePerson, and
// pgx.ErrNoRows if the person does not exist.
func SetEmail(ctx context.Context, tx *db.GateTx, person tenancy.PersonID, email string, verified bool) error {
	return db.Change(ctx, tx, personEmail, person, email, verified)
}

const personVerified = `-- tenancy.PersonVerified
update person set verified = true where id = $1`

// SetVerified records that a person has followed a link sent to their address.
func SetVerified(ctx context.Context, tx *db.GateTx, person tenancy.PersonID) error {
	return db.Change(ctx, tx, personVerified, person)
}
