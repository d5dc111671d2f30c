package notice

import (
	"context"
	"encoding/json"
	"time"

	"crier/platform/id"
	"crier/platform/jobs"
	"crier/tenancy"
	"crier/tenancy/db"
)

// MailTask is the kind of the task that sends a mail. Its id is that of the row.
const MailTask = "mail"

const mailInsert = `-- tenancy.MailInsert
insert into mail (id, kind, email, data, created_at) values ($1, $2, $3, $4, $5)`

// AddMail inserts a mail with its task. data is encoded as JSON and must hold nothing secret. With
// later the mail goes behind those that others wait for.
func AddMail(ctx context.Context, tx *db.GateTx, kind, email string, data any, now time.Time, later bool) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	mail := id.New[tenancy.MailTag]()
	if _, err := db.Exec(ctx, tx, mailInsert, mail, kind, email, raw, now); err != nil {
		return err
	}
	return tx.AddTask(ctx, jobs.Task{Kind: MailTask, ID: mail.UUID(), Later: later})
}

const mailCount = `-- tenancy.MailCount
select count(*) from (select from mail where email = $1 and kind = $2 and created_at > $3 limit $4) queued`

// CountMails returns how many mails of a kind to an address were added since a time and not sent,
// at most limit.
func CountMails(ctx context.Context, tx *db.GateTx, email, kind string, since time.Time, limit int) (n int, err error) {
	err = tx.QueryRow(ctx, mailCount, email, kind, since, limit).Scan(&n)
	return n, err
}

// Add queues a mail in a transaction. On an instance without mail it does nothing. What a person
// can switch off goes behind the mails that people wait for, because there may be thousands of it,
// and so do the pages of members who get it and the further pages of all mails.
func (q *Queue) Add(ctx context.Context, tx *db.GateTx, kind Kind, email string, n Notice) error {
	if !q.enabled {
		return nil
	}
	n.At = q.clock.Now()
	of := kind
	if kind == Members {
		of = n.Kind
	}
	return AddMail(ctx, tx, string(kind), email, n, n.At, n.IsOptional(of) || !n.After.IsZero())
}

const (
	// maxNotices is how many notices of one kind to an address may wait to be sent when another one
	// is added.
	maxNotices = 20
	// noticeWindow excludes mails that were given up.
	noticeWindow = 24 * time.Hour
)

// Notify is Add for what has happened to a person. While too many such notices to the address wait,
// it only logs: one account must not fill the queue that all mails go through. Mails of other kinds
// do not count, because others can cause them: they could keep a notice from the person.
func (q *Queue) Notify(ctx context.Context, tx *db.GateTx, kind Kind, email string, n Notice) error {
	waiting, err := CountMails(ctx, tx, email, string(kind), q.clock.Now().Add(-noticeWindow), maxNotices)
	if err != nil {
		return err
	}
	if waiting >= maxNotices {
		q.log.WarnContext(ctx, "a mail is left out, because too many to its recipient wait", "to", email, "kind", kind)
		return nil
	}
	return q.Add(ctx, tx, kind, email, n)
}

// AddForMembers queues a mail about an organization for each of its members: the first page by a
// task, which is in the second queue for reports.
func (q *Queue) AddForMembers(ctx context.Context, tx *db.GateTx, kind Kind, n Notice) error {
	n.Kind = kind
	return q.Add(ctx, tx, Members, n.Org.String(), n)
}

// AddByAddress queues a mail that is about an address. Without mail it only logs.
func (q *Queue) AddByAddress(ctx context.Context, op string, kind Kind, email string) error {
	var in tenancy.Inputs
	clean := in.Email("email", email)
	if err := in.Err(op); err != nil {
		return err
	}
	if !q.enabled {
		q.log.WarnContext(ctx, "a mail was asked for, and this instance sends none: see SMTP_URL; "+
			"`crier admin reset-password` sets a new password", "kind", kind)
		return nil
	}
	return q.db.InGate(ctx, op, func(tx *db.GateTx) error { return q.Add(ctx, tx, kind, clean, Notice{}) })
}
