package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/jobs"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// ErrApprovalPending means that the post has a request that waits already.
var ErrApprovalPending = errors.New("the post waits for an approval already")

const approvalPendingIndex = "approval_pending"

// approvalRow is a row of approval as it is read. It converts to publishing.Approval, so that the two have the same
// fields.
type approvalRow struct {
	ID            publishing.ApprovalID     `db:"id"`
	Post          publishing.PostID         `db:"post_id"`
	Status        publishing.ApprovalStatus `db:"status"`
	AutoSchedule  bool                      `db:"auto_schedule"`
	Note          *string                   `db:"note"`
	ReviewerEmail *string                   `db:"reviewer_email"`
	Person        tenancy.PersonID          `db:"requested_by"`
	Key           tenancy.KeyID             `db:"requested_key"`
	Behind        tenancy.PersonID          `db:"requested_behind"`
	// PersonEmail is null for who is no member any more: the policy of the table person.
	PersonEmail  *string   `db:"person_email" sql:"(select u.email from person u where u.id = a.requested_by)"`
	RequestedAt  time.Time `db:"requested_at"`
	ExpiresAt    time.Time `db:"expires_at"`
	ReviewerNote *string   `db:"reviewer_note"`
	// ReviewerName of a member is the current address. It is not stored, so nothing remains when
	// the account is gone.
	ReviewerName *string          `db:"reviewer_name" sql:"case when a.resolved_by is null then a.reviewer_name else coalesce((select email from person where id = a.resolved_by), 'a former member') end"`
	ResolvedBy   tenancy.PersonID `db:"resolved_by"`
	ResolvedAt   *time.Time       `db:"resolved_at"`
	ReviewURL    string           `db:"review_url" sql:"''"`
}

var approvalColumns = db.Columns[approvalRow]("a")

// StoredApproval is an approval with the sealed secret of its links.
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

// FindApprovalOf returns the pending request of a post, else the newest one: ids are made by several processes, whose clocks
// differ. It returns pgx.ErrNoRows when there is none.
func FindApprovalOf(
	ctx context.Context, d *db.DB, org tenancy.OrgID, post publishing.PostID,
) (StoredApproval, error) {
	return oneApproval(ctx, d, org, approvalOf, post)
}

var approvalByID = `-- publishing.ApprovalByID
select ` + approvalColumns + `, a.sealed_token
from approval a join post p on p.org_id = a.org_id and p.id = a.post_id
where a.id = $1 and p.deleted_at is null`

// Approval returns a request whose post exists, and pgx.ErrNoRows for others.
func Approval(
	ctx context.Context, d *db.DB, org tenancy.OrgID, approval publishing.ApprovalID,
) (StoredApproval, error) {
	return oneApproval(ctx, d, org, approvalByID, approval)
}

var approvalAny = `-- publishing.ApprovalAny
select ` + approvalColumns + `, a.sealed_token from approval a where a.id = $1`

// ApprovalAny is Approval also for a request whose post is deleted.
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

const reviewSharer = `-- publishing.ReviewSharer
select a.org_id from member m
join person u on u.id = m.person_id
join organization o on o.id = m.org_id
join approval a on a.org_id = m.org_id and a.id = $1
where m.person_id = $2 and not m.disabled and u.deleted_at is null and o.deleted_at is null and o.suspended_at is null`

// Shared returns a request that a member has shared, as Reviewed does. It also returns pgx.ErrNoRows if the person is
// no longer a member.
func Shared(
	ctx context.Context, d *db.DB, approval publishing.ApprovalID, sharer tenancy.PersonID,
) (a StoredApproval, org tenancy.OrgID, err error) {
	err = d.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(reviewSharer, approval, sharer).QueryRow(func(row pgx.Row) error { return row.Scan(&org) })
	})
	if err != nil {
		return a, org, err
	}
	a, err = ApprovalAny(ctx, d, org, approval)
	return a, org, err
}

const reviewOwner = `-- publishing.ReviewOwner
select a.org_id, not exists (
  select from unnest(array_append(a.reviewer_people, a.requested_by)) who (id)
  where who.id is not null and not exists (
    select from member m join person u on u.id = m.person_id
    where m.org_id = a.org_id and m.person_id = who.id and not m.disabled and u.deleted_at is null))
from approval a join organization o on o.id = a.org_id
where a.token_hash = $1 and o.deleted_at is null and o.suspended_at is null`

// ErrLinkEnded means that the mailed link of a request ended with the membership of the requester,
// or of a member to whom it was mailed.
var ErrLinkEnded = errors.New("the review link ended with a membership")

// Reviewed returns the request with the hash of its mailed link, even if its post is gone, and its
// organization. It returns ErrLinkEnded, and pgx.ErrNoRows if there is no such request or its
// organization has no access.
func Reviewed(ctx context.Context, d *db.DB, hash []byte) (a StoredApproval, org tenancy.OrgID, err error) {
	works := false
	err = d.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(reviewOwner, hash).QueryRow(func(row pgx.Row) error { return row.Scan(&org, &works) })
	})
	if err == nil && !works {
		err = ErrLinkEnded
	}
	if err != nil {
		return a, org, err
	}
	a, err = oneApproval(ctx, d, org, approvalByHash, hash)
	return a, org, err
}

var approvalList = `-- publishing.ApprovalList
select ` + approvalColumns + `, a.sealed_token
from approval a join post p on p.org_id = a.org_id and p.id = a.post_id
where p.deleted_at is null and ($1::uuid is null or a.id < $1)
  and case $2 when '' then true when 'NONE' then a.status = 'VOID'
    when 'EXPIRED' then a.status = 'EXPIRED' or a.status = 'PENDING' and a.expires_at <= $3
    when 'PENDING' then a.status = 'PENDING' and a.expires_at > $3 else a.status = $2 end
order by a.id desc limit $4`

// Approvals returns the newest requests of an organization whose posts exist: those before an id unless that is zero,
// with a status at a time.
func Approvals(
	ctx context.Context, d *db.DB, org tenancy.OrgID, before publishing.ApprovalID, status string, now time.Time,
	limit int,
) (out []StoredApproval, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(approvalList, before, status, now, limit).Query(db.Into(&out, scanApproval))
	})
	return out, err
}

const reviewable = `-- publishing.Reviewable
select name, suspended_at is null and deleted_at is null from organization where id = $1`

// Reviewable returns the name of an organization and whether its people have access, and pgx.ErrNoRows when there is
// none.
func Reviewable(ctx context.Context, d *db.DB, org tenancy.OrgID) (name string, active bool, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(reviewable, org).QueryRow(func(row pgx.Row) error { return row.Scan(&name, &active) })
	})
	return name, active, err
}

const reviewAbout = `-- publishing.ReviewAbout
select o.name, o.timezone, coalesce((select u.name from person u where u.id = $2), '')
from organization o where o.id = $1`

// ReviewAbout is what a mail to a reviewer says about an organization.
type ReviewAbout struct {
	Organization, Timezone string
	// Requester is the name of the requester, "" for a person without a name and for a former member.
	Requester string
}

// FindReviewAbout returns what a mail to a reviewer says about an organization, and pgx.ErrNoRows if
// there is no such organization.
func FindReviewAbout(
	ctx context.Context, d *db.DB, org tenancy.OrgID, requester tenancy.PersonID,
) (out ReviewAbout, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(reviewAbout, org, requester).QueryRow(func(row pgx.Row) error {
			return row.Scan(&out.Organization, &out.Timezone, &out.Requester)
		})
	})
	return out, err
}

// ApprovalOf is FindApprovalOf within the transaction.
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
  requested_key, requested_behind, requested_at, expires_at, remind_at, reviewer_people)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`

// AddApproval inserts a request with its sealed secret, the hash of the token of its mailed link,
// and the members to whom that link is mailed. It returns ErrApprovalPending.
func AddApproval(
	ctx context.Context, tx *db.Tx, a publishing.Approval, hash, sealed []byte, remind *time.Time,
	reviewers []tenancy.PersonID,
) error {
	_, err := tx.Exec(ctx, approvalInsert, tx.Org, a.ID, a.Post, hash, sealed, a.AutoSchedule, a.Note, a.ReviewerEmail,
		a.Person, a.Key, a.Behind, a.RequestedAt, a.ExpiresAt, remind, db.UUIDs(reviewers))
	if pg.IsUnique(err, approvalPendingIndex) {
		return ErrApprovalPending
	}
	return err
}

const approvalEnd = `-- publishing.ApprovalEnd
update approval set status = $3, reviewer_note = coalesce($4, reviewer_note), reviewer_name = coalesce($5, reviewer_name),
  resolved_by = coalesce($6, resolved_by), resolved_at = coalesce($7, now()), remind_at = null
where id = $1 and status = $2 and ($3 not in ('APPROVED', 'REJECTED') or expires_at > coalesce($7, now()))`

// EndApproval stores the status and the answer of a request that has the status from. ended is false if another
// transaction has changed the status first, or if an answer comes after the request has expired.
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

// AddApprovalEvent adds an event about a request to the timeline of its post; the reason may be empty.
func AddApprovalEvent(
	ctx context.Context, tx *db.Tx, post publishing.PostID, event publishing.EventKind, by, reason string,
) error {
	_, err := tx.Exec(ctx, eventReasoned, tx.Org, post, event, by, tx.Node, reason)
	return err
}

const eventReasoned = `-- publishing.EventReasoned
insert into post_event (org_id, post_id, event, by, node, reason)
select $1, p.id, $3, nullif($4, ''), nullif($5, ''), nullif($6, '') from post p where p.id = $2`

const reviewMails = `-- publishing.ReviewMails
select count(*) from approval a where a.reviewer_email is not null and a.requested_at > $1`

// LockReviewMails locks the organization against other requests until the transaction ends. It must come before the
// locks of series and posts, as PostQuota: in another order two transactions could deadlock.
func LockReviewMails(ctx context.Context, tx *db.Tx) error {
	_, err := tx.Exec(ctx, tagLock, tx.Org)
	return err
}

// ReviewMails returns how many requests since a time have the address of a reviewer. The caller has called
// LockReviewMails.
func ReviewMails(ctx context.Context, tx *db.Tx, since time.Time) (n int, err error) {
	err = tx.QueryRow(ctx, reviewMails, since).Scan(&n)
	return n, err
}

const memberEmail = `-- publishing.MemberEmail
select email from person where id = $1`

// FindMemberEmail is MemberEmail in a transaction of its own.
func FindMemberEmail(
	ctx context.Context, d *db.DB, org tenancy.OrgID, person tenancy.PersonID,
) (email string, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(memberEmail, person).QueryRow(func(row pgx.Row) error { return row.Scan(&email) })
	})
	if pg.IsNoRows(err) {
		return "", nil
	}
	return email, err
}

// MemberEmail returns the address of a member, "" for who is none.
func MemberEmail(ctx context.Context, tx *db.Tx, person tenancy.PersonID) (email string, err error) {
	err = tx.QueryRow(ctx, memberEmail, person).Scan(&email)
	if pg.IsNoRows(err) {
		return "", nil
	}
	return email, err
}

// AddReviewTask adds a task of a kind about a request.
func AddReviewTask(
	ctx context.Context, tx *db.Tx, queue *jobs.Queue, kind string, approval publishing.ApprovalID,
) error {
	return queue.Add(ctx, tx, jobs.Task{Kind: kind, Org: tx.Org.UUID(), ID: approval.UUID()})
}

const approvalReminded = `-- publishing.ApprovalReminded
update approval set remind_at = null where id = $1 and status = 'PENDING' and remind_at <= $2
returning reviewer_email is not null`

// Reminded notes that the reminder of a pending request is due no more, and reports whether it has the address of a reviewer.
func Reminded(ctx context.Context, tx *db.Tx, approval publishing.ApprovalID, now time.Time) (remind bool, err error) {
	err = tx.QueryRow(ctx, approvalReminded, approval, now).Scan(&remind)
	if pg.IsNoRows(err) {
		return false, nil
	}
	return remind, err
}

// DueApproval is a pending request that has expired, or whose reviewer is to be reminded.
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

// ApprovalsDue returns requests of all organizations that are due at a time, behind another one.
func ApprovalsDue(
	ctx context.Context, d *db.DB, after DueApproval, now time.Time, limit int,
) (out []DueApproval, err error) {
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(approvalsDue, after.At, [16]byte(after.Approval.UUID()), now, limit).
			Query(db.Into(&out, pgx.RowToStructByName[DueApproval]))
	})
	return out, err
}

const reviewsMailed = `-- publishing.ReviewsMailed
select id, post_id from approval
where status = 'PENDING' and reviewer_email is not null and requested_at > $2
  and (requested_by = $1 or $1 = any (reviewer_people))
order by id limit 100`

// ReviewsMailed returns at most 100 pending requests in the organization of q, made since a time, whose
// mailed link works only while a person is a member: those of the person, and those mailed to the person.
// It is called in transactions of accounts.
func ReviewsMailed(
	ctx context.Context, q pg.Querier, person tenancy.PersonID, since time.Time,
) ([]tenancy.EndedReview, error) {
	rows, err := q.Query(ctx, reviewsMailed, person, since)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[tenancy.EndedReview])
}

const mailboxMembers = `-- publishing.MailboxMembers
select id from person where mailbox = md5($1)::uuid order by id`

// MailboxMembers returns the members whose verified addresses belong to a mailbox (tenancy.Mailbox).
func MailboxMembers(ctx context.Context, tx *db.Tx, mailbox string) ([]tenancy.PersonID, error) {
	rows, err := tx.Query(ctx, mailboxMembers, mailbox)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[tenancy.PersonID])
}

const linkWorks = `-- publishing.LinkWorks
select not exists (
  select from unnest(array_append(a.reviewer_people, a.requested_by)) who (id)
  where who.id is not null and not exists (select from person u where u.id = who.id))
from approval a where a.id = $1`

// LinkWorks reports whether the mailed link of a request works: the requester, and the members to
// whom it was mailed, must still be members. The policy of the table person hides everybody else.
func LinkWorks(ctx context.Context, tx *db.Tx, approval publishing.ApprovalID) (works bool, err error) {
	err = tx.QueryRow(ctx, linkWorks, approval).Scan(&works)
	return works, err
}

const reviewerOrgs = `-- publishing.ReviewerOrgs
select distinct org_id from approval where reviewer_email = $1 limit $2`

// ReviewerOrgs returns at most limit organizations that have entered an address for a review.
func ReviewerOrgs(ctx context.Context, d *db.DB, email string, limit int) (out []tenancy.OrgID, err error) {
	err = d.WriteRole(ctx, pg.Retention, func(b *pgx.Batch) {
		b.Queue(reviewerOrgs, email, limit).Query(db.Into(&out, pgx.RowTo[tenancy.OrgID]))
	})
	return out, err
}

const reviewerForget = `-- publishing.ReviewerForget
update approval set reviewer_email = null where reviewer_email = $1`

// ForgetReviewer deletes an address from the requests of an organization, and keeps the requests.
// It returns pg.ErrOrgBusy or the error of Postgres.
func ForgetReviewer(ctx context.Context, d *db.DB, org tenancy.OrgID, email string) error {
	return d.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) { b.Queue(reviewerForget, email) })
}
