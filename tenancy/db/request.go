package db

import (
	"context"
	"time"
)

const requestsInsert = `-- tenancy.RequestInsertMany
insert into used_request (id, expires_at) select unnest($1::text[]), $2 on conflict (id) do nothing returning id`

// UseRequests marks request ids as used and returns the ids that had not been used before.
func UseRequests(ctx context.Context, tx *GateTx, ids []string, expires time.Time) ([]string, error) {
	return Column[string](ctx, tx, requestsInsert, ids, expires)
}

const requestInsert = `-- tenancy.RequestInsert
insert into used_request (id, expires_at) values ($1, $2) on conflict (id) do nothing`

// UseRequest marks a signed request's id as used. It returns pgx.ErrNoRows if the id has been used
// before.
func UseRequest(ctx context.Context, tx *GateTx, id string, expires time.Time) error {
	return Change(ctx, tx, requestInsert, id, expires)
}
