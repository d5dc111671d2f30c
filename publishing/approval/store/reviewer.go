package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/jobs"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// LockReviewMails locks the organization until the transaction ends, so that concurrent requests
// are counted one after another. Like PostQuota, it must be called before any series or posts are
// locked. In any other order, two transactions could deadlock.
func LockReviewMails(ctx context.Context, tx *db.Tx) error {
	_, err := db.LockOrganization(ctx, tx)
	return err
}

const reviewMails = `-- publishing.ReviewMails
select count(*) from approval a where a.reviewer_email is not null and a.requested_at > $1`

// ReviewMails returns how many of the organization's requests since the given time have a
// reviewer's address. The caller must have called LockReviewMails.
func ReviewMails(ctx context.Context, tx *db.Tx, since time.Time) (n int, err error) {
	err = tx.Whole(ctx, func(ctx context.Context) error { return tx.QueryRow(ctx, reviewMails, since).Scan(&n) })
	return n, err
}

// AddReviewTask queues a task of the given kind for a request.
func AddReviewTask(
	ctx context.Context, tx *db.Tx, queue *jobs.Queue, kind string, approval publishing.ApprovalID,
) error {
	return queue.Add(ctx, tx, jobs.Task{Kind: kind, Org: tx.Org.UUID(), ID: approval.UUID()})
}

const reviewsMailed = `-- publishing.ReviewsMailed
select id, post_id from approval
where status = 'PENDING' and reviewer_email is not null and requested_at > $2
  and (requested_by = $1 or $1 = any (reviewer_people))
order by id limit 100`

// ReviewsMailed returns pending requests whose emailed links work only while the given person is a
// member. These are the requests that the person made and the requests that were emailed to the
// person.
//
// ReviewsMailed covers q's organization and returns at most 100 requests made since the given time.
// It is called in transactions that change accounts.
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

// MailboxMembers returns the members whose verified email addresses belong to the given mailbox.
// See tenancy.Mailbox.
func MailboxMembers(ctx context.Context, tx *db.Tx, mailbox string) ([]tenancy.PersonID, error) {
	rows, err := tx.Query(ctx, mailboxMembers, mailbox)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[tenancy.PersonID])
}

const memberEmail = `-- publishing.MemberEmail
select email from person where id = $1`

// MemberEmail returns a member's email address, or "" for a person who is not a member.
func MemberEmail(ctx context.Context, tx *db.Tx, person tenancy.PersonID) (email string, err error) {
	err = tx.QueryRow(ctx, memberEmail, person).Scan(&email)
	if pg.IsNoRows(err) {
		return "", nil
	}
	return email, err
}

const managerEmail = `-- publishing.ManagerEmail
select u.email from member m join person u on u.id = m.person_id
where m.person_id = $1 and m.role in ('ADMIN', 'SUPERADMIN') and not m.disabled`

// ManagerEmail returns the email address of an administrator or the owner. It returns pgx.ErrNoRows
// for anyone else.
func ManagerEmail(ctx context.Context, tx *db.Tx, person tenancy.PersonID) (email string, err error) {
	return email, tx.QueryRow(ctx, managerEmail, person).Scan(&email)
}

const reviewerOrgs = `-- publishing.ReviewerOrgs
select distinct org_id from approval where reviewer_email = $1 limit $2`

// ReviewerOrgs returns at most limit organizations that have requests addressed to the reviewer
// with the given email address.
func ReviewerOrgs(ctx context.Context, d *db.DB, email string, limit int) (out []tenancy.OrgID, err error) {
	err = d.WriteRole(ctx, pg.Retention, func(b *pgx.Batch) {
		b.Queue(reviewerOrgs, email, limit).Query(db.Into(&out, pgx.RowTo[tenancy.OrgID]))
	})
	return out, err
}

const reviewerForget = `-- publishing.ReviewerForget
update approval set reviewer_email = null where reviewer_email = $1`

// ForgetReviewer deletes an email address from an organization's requests but keeps the requests.
// It returns pg.ErrOrgBusy or a Postgres error.
func ForgetReviewer(ctx context.Context, d *db.DB, org tenancy.OrgID, email string) error {
	return d.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) { b.Queue(reviewerForget, email) })
}
