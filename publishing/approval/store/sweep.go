package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// DueApproval is a pending request that has expired or whose reminder is due.
type DueApproval struct {
	At       time.Time             `db:"at"`
	Org      tenancy.OrgID         `db:"org_id"`
	Approval publishing.ApprovalID `db:"id"`
}

const approvalsDue = `-- publishing.ApprovalsDue
select least(a.expires_at, a.remind_at) as at, a.org_id, a.id from approval a
where a.status = 'PENDING' and least(a.expires_at, a.remind_at) <= $3
  and (least(a.expires_at, a.remind_at), a.id) > ($1, $2)
order by least(a.expires_at, a.remind_at), a.id limit $4`

// ApprovalsDue returns at most limit requests, across all organizations, that are due at the time
// now. The requests are ordered by the time at which they became due, starting after the given
// request.
func ApprovalsDue(
	ctx context.Context, d *db.DB, after DueApproval, now time.Time, limit int,
) (out []DueApproval, err error) {
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(approvalsDue, after.At, [16]byte(after.Approval.UUID()), now, limit).
			Query(db.Into(&out, pgx.RowToStructByName[DueApproval]))
	})
	return out, err
}

const approvalReminded = `-- publishing.ApprovalReminded
update approval set remind_at = null where id = $1 and status = 'PENDING' and remind_at <= $2
returning reviewer_email is not null`

// Reminded clears a pending request's reminder if it is due. remind is true if a reminder was due
// and the request has a reviewer's address.
func Reminded(ctx context.Context, tx *db.Tx, approval publishing.ApprovalID, now time.Time) (remind bool, err error) {
	err = tx.QueryRow(ctx, approvalReminded, approval, now).Scan(&remind)
	if pg.IsNoRows(err) {
		return false, nil
	}
	return remind, err
}
