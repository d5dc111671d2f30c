// Package store reads and writes approvals in the database. Only the parent package imports it.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// ErrApprovalPending means that the post already has a pending request.
var ErrApprovalPending = errors.New("the post is already waiting for approval")

const approvalPendingIndex = "approval_pending"

// approvalRow is a row of the approval table. It is converted to publishing.Approval, so the two
// must have the same fields.
type approvalRow struct {
	ID            publishing.ApprovalID     `db:"id"`
	Post          publishing.PostID         `db:"post_id"`
	Status        publishing.ApprovalStatus `db:"status"`
	AutoSchedule  bool                      `db:"auto_schedule"`
	Note          *string                   `db:"note"`
	ReviewerEmail *string                   `db:"reviewer_email"`
	Person        tenancy.PersonID          `db:"requested_by"`
	Key           tenancy.KeyID             `db:"requested_key"`
	Impersonator  tenancy.PersonID          `db:"requested_behind"`
	Agent         tenancy.AgentID           `db:"requested_agent"`
	Grant         tenancy.GrantID           `db:"requested_grant"`
	AgentName     string                    `db:"agent_name"`
	// PersonEmail is null for a former member, because the row-level security policy of the person
	// table hides former members.
	PersonEmail  *string   `db:"person_email" sql:"(select u.email from person u where u.id = a.requested_by)"`
	RequestedAt  time.Time `db:"requested_at"`
	ExpiresAt    time.Time `db:"expires_at"`
	ReviewerNote *string   `db:"reviewer_note"`
	// ReviewerName is a guest's stored name or a member's current address. A member's address is
	// not stored here, so no trace of it remains after the account is deleted.
	ReviewerName *string          `db:"reviewer_name" sql:"case when a.resolved_by is null then a.reviewer_name else coalesce((select email from person where id = a.resolved_by), 'a former member') end"`
	ResolvedBy   tenancy.PersonID `db:"resolved_by"`
	ResolvedAt   *time.Time       `db:"resolved_at"`
	ReviewURL    string           `db:"review_url" sql:"''"`
}

var approvalColumns = db.Columns[approvalRow]("a")

// StoredApproval is an approval with the sealed secret from which its links are derived.
type StoredApproval struct {
	publishing.Approval
	Secret []byte
}

func scanApproval(row pgx.CollectableRow) (StoredApproval, error) {
	r, err := pgx.RowToStructByName[struct {
		approvalRow
		Secret []byte `db:"sealed_token"`
	}](row)
	return StoredApproval{Approval: publishing.Approval(r.approvalRow), Secret: r.Secret}, err
}

var approvalOf = `-- publishing.ApprovalOf
select ` + approvalColumns + `, a.sealed_token from approval a where a.post_id = $1
order by (a.status = 'PENDING') desc, a.id desc limit 1`

// FindApprovalOf returns a post's pending request or, if none is pending, the request with the
// highest id. The pending request need not have the highest id, because ids come from several
// processes whose clocks differ. FindApprovalOf returns pgx.ErrNoRows if the post has no request.
func FindApprovalOf(
	ctx context.Context, d *db.DB, org tenancy.OrgID, post publishing.PostID,
) (StoredApproval, error) {
	return oneApproval(ctx, d, org, approvalOf, post)
}

var approvalByID = `-- publishing.ApprovalByID
select ` + approvalColumns + `, a.sealed_token
from approval a join post p on p.org_id = a.org_id and p.id = a.post_id
where a.id = $1 and p.deleted_at is null`

// Approval returns a request. It returns pgx.ErrNoRows if the request does not exist or its post is
// deleted.
func Approval(
	ctx context.Context, d *db.DB, org tenancy.OrgID, approval publishing.ApprovalID,
) (StoredApproval, error) {
	return oneApproval(ctx, d, org, approvalByID, approval)
}

var approvalAny = `-- publishing.ApprovalAny
select ` + approvalColumns + `, a.sealed_token from approval a where a.id = $1`

// ApprovalAny is like Approval, but also returns a request whose post is deleted.
func ApprovalAny(
	ctx context.Context, d *db.DB, org tenancy.OrgID, approval publishing.ApprovalID,
) (StoredApproval, error) {
	return oneApproval(ctx, d, org, approvalAny, approval)
}

var approvalByHash = `-- publishing.ApprovalByHash
select ` + approvalColumns + `, a.sealed_token from approval a where a.token_hash = $1`

func oneApproval(
	ctx context.Context, d *db.DB, org tenancy.OrgID, statement string, arg any,
) (StoredApproval, error) {
	var out []StoredApproval
	err := d.Read(ctx, org.UUID(), func(b *pgx.Batch) { b.Queue(statement, arg).Query(db.Into(&out, scanApproval)) })
	if err == nil && len(out) == 0 {
		err = pgx.ErrNoRows
	}
	if err != nil {
		return StoredApproval{}, err
	}
	return out[0], nil
}

var approvalList = `-- publishing.ApprovalList
select ` + approvalColumns + `, a.sealed_token
from approval a join post p on p.org_id = a.org_id and p.id = a.post_id
where p.deleted_at is null and ($1::uuid is null or a.id < $1)
  and case $2 when '' then true when 'NONE' then a.status = 'VOID'
    when 'EXPIRED' then a.status = 'EXPIRED' or a.status = 'PENDING' and a.expires_at <= $3
    when 'PENDING' then a.status = 'PENDING' and a.expires_at > $3 else a.status = $2 end
order by a.id desc limit $4`

// Approvals returns at most limit of an organization's requests, newest first. It leaves out
// requests for deleted posts. If before is not zero, it returns only requests with lower ids. If
// status is not empty, it returns only requests that have this status at the time now.
func Approvals(
	ctx context.Context, d *db.DB, org tenancy.OrgID, before publishing.ApprovalID, status string, now time.Time,
	limit int,
) (out []StoredApproval, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(approvalList, before, status, now, limit).Query(db.Into(&out, scanApproval))
	})
	return out, err
}

// ApprovalOf is like FindApprovalOf, but runs in the given transaction.
func ApprovalOf(ctx context.Context, tx *db.Tx, post publishing.PostID) (publishing.Approval, error) {
	rows, err := tx.Query(ctx, approvalOf, post)
	if err != nil {
		return publishing.Approval{}, err
	}
	out, err := pgx.CollectExactlyOneRow(rows, scanApproval)
	return out.Approval, err
}

const approvalInsert = `-- publishing.ApprovalInsert
insert into approval (org_id, id, post_id, token_hash, sealed_token, auto_schedule, note, reviewer_email, requested_by,
  requested_key, requested_behind, requested_at, expires_at, remind_at, reviewer_people, requested_agent,
requested_grant,
  agent_name)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`

// AddApproval inserts a request. It also stores the request's sealed secret, the hash of the
// emailed link's token, and the members to whom the link is emailed. It returns ErrApprovalPending
// if the post already has a pending request.
func AddApproval(
	ctx context.Context, tx *db.Tx, a publishing.Approval, hash, sealed []byte, remind *time.Time,
	reviewers []tenancy.PersonID,
) error {
	_, err := tx.Exec(ctx, approvalInsert, tx.Org, a.ID, a.Post, hash, sealed, a.AutoSchedule, a.Note, a.ReviewerEmail,
		a.Person, a.Key, a.Impersonator, a.RequestedAt, a.ExpiresAt, remind, db.UUIDs(reviewers), a.Agent, a.Grant,
		a.AgentName)
	if pg.IsUnique(err, approvalPendingIndex) {
		return ErrApprovalPending
	}
	return err
}

const approvalEnd = `-- publishing.ApprovalEnd
update approval set status = $3, reviewer_note = coalesce($4, reviewer_note),
reviewer_name = coalesce($5, reviewer_name),
  resolved_by = coalesce($6, resolved_by), resolved_at = coalesce($7, now()), remind_at = null
where id = $1 and status = $2 and ($3 not in ('APPROVED', 'REJECTED') or expires_at > coalesce($7, now()))`

// EndApproval stores a request's new status and answer if the stored status still equals from.
// ended is false if another transaction has changed the status, or if the request expired before it
// was answered.
func EndApproval(
	ctx context.Context, tx *db.Tx, a publishing.Approval, from publishing.ApprovalStatus,
) (ended bool, err error) {
	guest := a.ReviewerName
	if !a.ResolvedBy.IsZero() {
		guest = nil
	}
	tag, err := tx.Exec(ctx, approvalEnd, a.ID, from, a.Status, a.ReviewerNote, guest, a.ResolvedBy, a.ResolvedAt)
	return err == nil && tag.RowsAffected() == 1, err
}

// AddApprovalEvent adds an event about a request to the post's timeline. reason may be empty.
func AddApprovalEvent(
	ctx context.Context, tx *db.Tx, post publishing.PostID, event publishing.EventKind, by, reason string,
) error {
	_, err := tx.Exec(ctx, eventReasoned, tx.Org, post, event, by, tx.Node, reason)
	return err
}

const eventReasoned = `-- publishing.EventReasoned
insert into post_event (org_id, post_id, event, by, node, reason)
select $1, p.id, $3, nullif($4, ''), nullif($5, ''), nullif($6, '') from post p where p.id = $2`

var approvalInForce = `-- publishing.ApprovalInForce
select ` + approvalColumns + `, a.sealed_token from approval a
where a.status = 'APPROVED' and a.post_id = any (array(
  select $1::uuid union all
  select q.id from post p join post q on q.org_id = p.org_id and q.series_id = p.series_id and q.occurrence < p.occurrence
  where p.id = $1))
order by (a.post_id = $1) desc, a.id desc limit 1`

// ApprovalInForce returns the approval under which a post is published. This is the post's own
// approval or, for an occurrence of a series, an earlier occurrence's approval. ApprovalInForce
// returns pgx.ErrNoRows if there is none.
func ApprovalInForce(ctx context.Context, tx *db.Tx, post publishing.PostID) (publishing.Approval, error) {
	rows, err := tx.Query(ctx, approvalInForce, post)
	if err != nil {
		return publishing.Approval{}, err
	}
	out, err := pgx.CollectExactlyOneRow(rows, scanApproval)
	return out.Approval, err
}
