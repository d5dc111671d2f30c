// Package store reads and writes queued emails and reads their recipients. Only tenancy/mail uses
// it.
package store

import (
	"context"
	"encoding/json"
	"time"

	"crier/platform/id"
	"crier/platform/jobs"
	"crier/tenancy"
	"crier/tenancy/db"
	"crier/tenancy/notice"
)

// AddHeldMail is like notice.AddMail, but holds the email: the email's task goes into the second
// queue and runs no earlier than until.
func AddHeldMail(ctx context.Context, tx *db.GateTx, kind, email string, data any, now, until time.Time) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	mail := id.New[tenancy.MailTag]()
	if _, err := db.Exec(ctx, tx, mailInsertHeld, mail, kind, email, raw, now, until); err != nil {
		return err
	}
	return tx.AddTask(ctx, jobs.Task{Kind: notice.MailTask, ID: mail.UUID(), Later: true, After: until.Sub(now)})
}

// HeldMail locks and returns an email of the given kind to the given address. The email must still
// be held at the given time. If approvals is set, the email's first report is about an approval in
// the organization; otherwise, it is about an incident. HeldMail returns pgx.ErrNoRows if there is
// no such email.
func HeldMail(
	ctx context.Context, tx *db.GateTx, kind, email string, of tenancy.OrgID, after time.Time, approvals bool,
) (Mail, error) {
	return db.One[Mail](ctx, tx, mailHeld, email, kind, after, of.String(), approvals)
}

// SetMailData replaces an email's data. It returns pgx.ErrNoRows if the email no longer exists.
func SetMailData(ctx context.Context, tx *db.GateTx, mail tenancy.MailID, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return db.Change(ctx, tx, mailSetData, mail, raw)
}

// CountReport counts an email with reports toward a person's limit of tenancy.MaxReportMails emails
// within tenancy.ReportWindow. It returns the earliest time at which the email may be sent. That
// time can be in the past. CountReport returns pgx.ErrNoRows if the person no longer exists.
func CountReport(ctx context.Context, tx *db.GateTx, person tenancy.PersonID, now time.Time) (time.Time, error) {
	return countMail(ctx, tx, reportCount, person, now)
}

// CountDigest is like CountReport, but for emails about published posts or approvals, which have
// their own limit.
func CountDigest(ctx context.Context, tx *db.GateTx, person tenancy.PersonID, now time.Time) (time.Time, error) {
	return countMail(ctx, tx, digestCount, person, now)
}

func countMail(
	ctx context.Context, tx *db.GateTx, sql string, person tenancy.PersonID, now time.Time,
) (at time.Time, err error) {
	err = tx.QueryRow(ctx, sql, person, now, tenancy.ReportWindow, tenancy.MaxReportMails).Scan(&at)
	return at, err
}

// ReadMail returns an email that has not been sent. It returns pgx.ErrNoRows if the email does not
// exist.
func ReadMail(ctx context.Context, tx *db.GateTx, mail tenancy.MailID) (Mail, error) {
	return db.One[Mail](ctx, tx, mailGet, mail)
}

// TakeMail deletes an email and returns it. It returns pgx.ErrNoRows if the email does not exist.
func TakeMail(ctx context.Context, tx *db.GateTx, mail tenancy.MailID) (Mail, error) {
	return db.One[Mail](ctx, tx, mailTake, mail)
}

// DeleteMail deletes an email. It returns nil if the email does not exist.
func DeleteMail(ctx context.Context, tx *db.GateTx, mail tenancy.MailID) error {
	_, err := db.Exec(ctx, tx, mailDelete, mail)
	return err
}

// Recipients returns up to limit members of the organization whose ids are greater than after,
// ordered by id. A member whose stored notification settings cannot be parsed gets the default
// settings.
func Recipients(ctx context.Context, tx *db.OrgTx, after tenancy.PersonID, limit int) ([]Recipient, error) {
	rows, err := db.List[recipientRow](ctx, tx, mailRecipients, after.UUID(), limit)
	out := make([]Recipient, len(rows))
	for i, r := range rows {
		out[i] = r.Recipient
		out[i].Notifications = db.NotificationsOf(r.Chosen)
	}
	return out, err
}

// Mail is an email that has yet to be rendered and sent.
type Mail struct {
	ID    tenancy.MailID `db:"id"`
	Kind  string         `db:"kind"`
	Email string         `db:"email"`
	// Data is the notice.Notice as JSON.
	Data      []byte    `db:"data"`
	CreatedAt time.Time `db:"created_at"`
}

const mailInsertHeld = `-- tenancy.MailInsertHeld
insert into mail (id, kind, email, data, created_at, held_until) values ($1, $2, $3, $4, $5, $6)`

const mailHeld = `-- tenancy.MailHeld
select id, kind, email, data, created_at from mail
where email = $1 and kind = $2 and held_until > $3 and data ->> 'org' = $4 and data #>> '{reports,0,kind}' <> 'published'
  and (data #>> '{reports,0,kind}' = 'approval') = $5
order by held_until limit 1 for update`

const mailSetData = `-- tenancy.MailSetData
update mail set data = $2 where id = $1`

// reportCount starts a new window if the current window has ended or is full. If the current window
// is full, the new window begins only when the current one ends.
const reportCount = `-- tenancy.ReportCount
update person set reports = case when reports_since + $3 > $2 and reports < $4 then reports + 1 else 1 end,
  reports_since = case when reports_since + $3 <= $2 then $2 when reports < $4 then reports_since
    else reports_since + $3 end
where id = $1 returning reports_since`

const digestCount = `-- tenancy.DigestCount
update person set digests = case when digests_since + $3 > $2 and digests < $4 then digests + 1 else 1 end,
  digests_since = case when digests_since + $3 <= $2 then $2 when digests < $4 then digests_since
    else digests_since + $3 end
where id = $1 returning digests_since`

const mailGet = `-- tenancy.MailGet
select id, kind, email, data, created_at from mail where id = $1`

const mailTake = `-- tenancy.MailTake
delete from mail where id = $1 returning id, kind, email, data, created_at`

const mailDelete = `-- tenancy.MailDelete
delete from mail where id = $1`

const mailRecipients = `-- tenancy.MailRecipients
select p.id, p.email, m.role, m.disabled, p.notifications chosen from member m join person p on p.id = m.person_id
where m.person_id > $1 order by m.person_id limit $2`

// Recipient is a member who receives an email.
type Recipient struct {
	Person tenancy.PersonID `db:"id"`
	Email  string           `db:"email"`
	Role   tenancy.Role     `db:"role"`
	// Disabled is true if the person cannot use the organization.
	Disabled      bool                  `db:"disabled"`
	Notifications tenancy.Notifications `db:"-"`
}

type recipientRow struct {
	Recipient
	Chosen []byte `db:"chosen"`
}
