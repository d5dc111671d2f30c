// Package store writes people's profiles, and reads and deletes their identities. Only
// tenancy/person uses it.
package store

import (
	"context"

	"crier/tenancy"
	"crier/tenancy/db"
)

const personProfile = `-- tenancy.PersonProfile
update person set name = $2, bio = $3, picture_id = nullif($4, '')::uuid, picture = $5 where id = $1`

// SetProfile replaces a person's profile. It returns pgx.ErrNoRows if the person does not exist.
func SetProfile(ctx context.Context, tx *db.GateTx, person tenancy.PersonID, p tenancy.Profile) error {
	return db.Change(ctx, tx, personProfile, person, p.Name, p.Bio, p.Picture.ID, p.Picture.Path)
}

const personName = `-- tenancy.PersonName
update person set name = $2 where id = $1 and name = ''`

// FillName sets the name of a person who has none. It returns false if nothing changed.
func FillName(ctx context.Context, tx *db.GateTx, person tenancy.PersonID, name string) (bool, error) {
	n, err := db.Exec(ctx, tx, personName, person, name)
	return n > 0, err
}
