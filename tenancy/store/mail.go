package store

import (
	"context"
	"encoding/json"
	"time"

	"crier/platform/id"
	"crier/platform/jobs"
	"crier/tenancy"
)

// MailTask is the kind of the task that sends a mail. Its id is that of the row.
const MailTask = "mail"

// Mail is a mail to be rendered and sent.
type Mail struct {
	ID    tenancy.MailID `db:"id"`
	Kind  string         `db:"kind"`
	Email string         `db:"email"`
	// Data is JSON: what the text names.
	Data      []byte    `db:"data"`
	CreatedAt time.Time `db:"created_at"`
}

const mailInsert = `-- tenancy.MailInsert
insert into mail (id, kind, email, data, created_at) values ($1, $2, $3, $4, $5)`

// AddMail inserts a mail with its task. data is encoded as JSON and must hold nothing secret. With later the mail goes
// behind those that others wait for.
func (t *GateTx) AddMail(ctx context.Context, kind, email string, data any, now time.Time, later bool) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	mail := id.New[tenancy.MailTag]()
	if _, err := exec(ctx, t.tx, mailInsert, mail, kind, email, raw, now); err != nil {
		return err
	}
	return t.store.queue.Add(ctx, t.tx, jobs.Task{Kind: MailTask, ID: mail.UUID(), Later: later})
}

const mailInsertHeld = `-- tenancy.MailInsertHeld
insert into mail (id, kind, email, data, created_at, held_until) values ($1, $2, $3, $4, $5, $6)`

// AddHeldMail is AddMail for a mail whose task waits until a time, behind what others wait for.
func (t *GateTx) AddHeldMail(ctx context.Context, kind, email string, data any, now, until time.Time) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	mail := id.New[tenancy.MailTag]()
	if _, err := exec(ctx, t.tx, mailInsertHeld, mail, kind, email, raw, now, until); err != nil {
		return err
	}
	return t.store.queue.Add(ctx, t.tx, jobs.Task{Kind: MailTask, ID: mail.UUID(), Later: true, After: until.Sub(now)})
}

const mailHeld = `-- tenancy.MailHeld
select id, kind, email, data, created_at from mail
where email = $1 and kind = $2 and held_until > $3 and data ->> 'org' = $4 and data #>> '{reports,0,kind}' <> 'published'
  and (data #>> '{reports,0,kind}' = 'approval') = $5
order by held_until limit 1 for update`

// HeldMail returns a mail about incidents of an organization, or one about approvals alone, to an address that waits until
// after a time, locked, or pgx.ErrNoRows.
func (t *GateTx) HeldMail(
	ctx context.Context, kind, email string, of tenancy.OrgID, after time.Time, approvals bool,
) (Mail, error) {
	return one[Mail](ctx, t.tx, mailHeld, email, kind, after, of.String(), approvals)
}

const mailSetData = `-- tenancy.MailSetData
update mail set data = $2 where id = $1`

// SetMailData replaces what a mail names. It returns pgx.ErrNoRows when the mail is gone.
func (t *GateTx) SetMailData(ctx context.Context, mail tenancy.MailID, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return change(ctx, t.tx, mailSetData, mail, raw)
}

// reportCount begins the next hour when the one that is counted is over or full. The next hour after a full one is in the
// future.
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

// CountReport counts a mail with reports to a person, and returns when it may be sent, which may be in the past: at most
// tenancy.MaxReportMails within tenancy.ReportWindow. It returns pgx.ErrNoRows for a person who is gone.
func (t *GateTx) CountReport(ctx context.Context, person tenancy.PersonID, now time.Time) (time.Time, error) {
	return t.countMail(ctx, reportCount, person, now)
}

// CountDigest is CountReport for a mail about published posts. These take no places of the others.
func (t *GateTx) CountDigest(ctx context.Context, person tenancy.PersonID, now time.Time) (time.Time, error) {
	return t.countMail(ctx, digestCount, person, now)
}

func (t *GateTx) countMail(
	ctx context.Context, sql string, person tenancy.PersonID, now time.Time,
) (at time.Time, err error) {
	err = t.tx.QueryRow(ctx, sql, person, now, tenancy.ReportWindow, tenancy.MaxReportMails).Scan(&at)
	return at, err
}

const mailCount = `-- tenancy.MailCount
select count(*) from (select from mail where email = $1 and kind = $2 and created_at > $3 limit $4) queued`

// CountMails returns how many mails of a kind to an address were added since a time and not sent, at most limit.
func (t *GateTx) CountMails(ctx context.Context, email, kind string, since time.Time, limit int) (n int, err error) {
	err = t.tx.QueryRow(ctx, mailCount, email, kind, since, limit).Scan(&n)
	return n, err
}

const mailGet = `-- tenancy.MailGet
select id, kind, email, data, created_at from mail where id = $1`

// Mail returns a mail that was not sent, or pgx.ErrNoRows.
func (t *GateTx) Mail(ctx context.Context, mail tenancy.MailID) (Mail, error) {
	return one[Mail](ctx, t.tx, mailGet, mail)
}

const mailTake = `-- tenancy.MailTake
delete from mail where id = $1 returning id, kind, email, data, created_at`

// TakeMail deletes a mail and returns it, or returns pgx.ErrNoRows.
func (t *GateTx) TakeMail(ctx context.Context, mail tenancy.MailID) (Mail, error) {
	return one[Mail](ctx, t.tx, mailTake, mail)
}

const mailDelete = `-- tenancy.MailDelete
delete from mail where id = $1`

// DeleteMail deletes a mail. One that does not exist is no error.
func (t *GateTx) DeleteMail(ctx context.Context, mail tenancy.MailID) error {
	_, err := exec(ctx, t.tx, mailDelete, mail)
	return err
}

const mailRecipients = `-- tenancy.MailRecipients
select p.id, p.email, m.role, m.disabled, p.notifications chosen from member m join person p on p.id = m.person_id
where m.person_id > $1 order by m.person_id limit $2`

// Recipient is a member who gets a mail.
type Recipient struct {
	Person tenancy.PersonID `db:"id"`
	Email  string           `db:"email"`
	Role   tenancy.Role     `db:"role"`
	// Disabled means that the person cannot use the organization.
	Disabled      bool                  `db:"disabled"`
	Notifications tenancy.Notifications `db:"-"`
}

type recipientRow struct {
	Recipient
	Chosen []byte `db:"chosen"`
}

// Recipients returns at most limit members of the organization after a person, by the ids of the people. A member whose
// stored notifications cannot be read has the defaults.
func (t *OrgTx) Recipients(ctx context.Context, after tenancy.PersonID, limit int) ([]Recipient, error) {
	rows, err := list[recipientRow](ctx, t.tx, mailRecipients, after.UUID(), limit)
	out := make([]Recipient, len(rows))
	for i, r := range rows {
		out[i] = r.Recipient
		out[i].Notifications = notificationsOf(r.Chosen)
	}
	return out, err
}
