package store

import (
	"context"

	"crier/tenancy"
	"crier/tenancy/db"
)

const instanceList = `-- tenancy.InstanceList
select at, actor, action, subject from instance_event order by at desc, id desc limit $1`

// InstanceEvents returns at most limit instance events, newest first.
func InstanceEvents(ctx context.Context, tx *db.GateTx, limit int) ([]tenancy.InstanceEvent, error) {
	return db.List[tenancy.InstanceEvent](ctx, tx, instanceList, limit)
}
