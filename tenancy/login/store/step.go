// Package store contains the statements for sign-in steps and for signing in at identity providers.
// Only tenancy/login uses it.
package store

import (
	"context"
	"time"

	"crier/tenancy"
	"crier/tenancy/db"
)

const stepPerson = `-- tenancy.StepPerson
select ` + db.PersonColumns + ` from person where id = (select person_id from sign_in_step where hash = $1)
for no key update`

const stepTry = `-- tenancy.StepTry
update sign_in_step set tries = tries + 1 where hash = $1 and purpose = $2 and expires_at > $3 returning tries`

// TryStep counts a use of a step's token. It returns the person who is signing in and the number of
// times that the token has been used, including this use. It returns pgx.ErrNoRows if the token has
// expired or belongs to another step. It locks the person and then the step until the end of the
// transaction. Every transaction locks them in this order.
func TryStep(ctx context.Context, tx *db.GateTx, hash []byte, purpose tenancy.Step, now time.Time) (
	person tenancy.Person, tries int, err error) {
	row, err := db.One[db.PersonRow](ctx, tx, stepPerson, hash)
	if err != nil {
		return person, 0, err
	}
	err = tx.QueryRow(ctx, stepTry, hash, purpose, now).Scan(&tries)
	return row.Value(), tries, err
}

const stepDelete = `-- tenancy.StepDelete
delete from sign_in_step where hash = $1`

// DeleteStep deletes a step, so that its token cannot be used again.
func DeleteStep(ctx context.Context, tx *db.GateTx, hash []byte) error {
	return db.Change(ctx, tx, stepDelete, hash)
}
