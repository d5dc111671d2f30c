package store

import (
	"context"

	"crier/tenancy"
	"crier/tenancy/db"
)

const personInstance = `-- tenancy.PersonInstance
update person set instance_admin = $2 where id = $1`

// SetInstance makes a person an instance administrator, or revokes that role if instance is false.
func SetInstance(ctx context.Context, tx *db.GateTx, person tenancy.PersonID, instance bool) error {
	return db.Change(ctx, tx, personInstance, person, instance)
}
