package store

import (
	"context"
	"time"

	"crier/tenancy"
	"crier/tenancy/db"
)

const auditList = `-- tenancy.AuditList
select id, at, person_id, actor, via, key_id, behind, action, subject, address from audit
where ($1::timestamptz is null or at >= $1) and ($2::timestamptz is null or at < $2)
  and ($3 = '' or person_id::text = $3 or position(lower($3) in lower(actor)) > 0) and ($4 = '' or action = $4)
order by at desc, id desc limit $5 offset $6`

// AuditEvents returns the entries that match a query, newest first. If more than q.Limit entries
// match, it returns q.Limit+1 of them.
func AuditEvents(ctx context.Context, tx *db.OrgTx, q tenancy.AuditQuery) ([]tenancy.AuditEvent, error) {
	return db.List[tenancy.AuditEvent](ctx, tx, auditList,
		nullTime(q.From), nullTime(q.To), q.Actor, q.Action, q.Limit+1, q.Page*q.Limit)
}

func nullTime(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}
