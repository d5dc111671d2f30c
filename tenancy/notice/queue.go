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

// MailTask is the kind of task that sends an email. The task has the same id as the email's row.
const MailTask = "mail"

const mailInsert = `-- tenancy.MailInsert
insert into mail (id, kind, email, data, created_at) values ($1, $2, $3, $4, $5)`

// AddMail inserts an email and the task that sends it. data is encoded as JSON and must not contain
// secrets. If later is set, the email is queued behind the emails that people are waiting for.
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

// CountMails returns how many unsent emails of a kind to an address have been added since a given
// time. It counts up to limit.
func CountMails(ctx context.Context, tx *db.GateTx, email, kind string, since time.Time, limit int) (n int, err error) {
	err = tx.QueryRow(ctx, mailCount, email, kind, since, limit).Scan(&n)
	return n, err
}

// Add queues an email in a transaction. On an instance that sends no email, it does nothing.
//
// Emails that people can turn off are queued behind the emails that people are waiting for, because
// there may be thousands of them. The same applies to a task that queues such emails for a page of
// members, and to a task for any page after the first.
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
	// maxNotices is how many notices of one kind can wait to be sent to one address before Notify
	// drops further ones.
	maxNotices = 20
	// noticeWindow is how far back waiting notices are counted. Older ones will no longer be sent.
	noticeWindow = 24 * time.Hour
)

// Notify is like Add, but for something that has happened to a person. If too many notices of the
// same kind are waiting for the address, Notify logs the notice and drops it, so that one account
// cannot fill the queue that all emails go through. Emails of other kinds do not count, because
// other people could cause enough of them to suppress a notice.
func (q *Queue) Notify(ctx context.Context, tx *db.GateTx, kind Kind, email string, n Notice) error {
	waiting, err := CountMails(ctx, tx, email, string(kind), q.clock.Now().Add(-noticeWindow), maxNotices)
	if err != nil {
		return err
	}
	if waiting >= maxNotices {
		q.log.WarnContext(ctx, "mail dropped: too many are waiting for its recipient", "to", email, "kind", kind)
		return nil
	}
	return q.Add(ctx, tx, kind, email, n)
}

// AddForMembers queues an email about an organization for each of its members, page by page. It
// adds a task for the first page. If members can turn off the email, the task is queued behind
// other emails.
func (q *Queue) AddForMembers(ctx context.Context, tx *db.GateTx, kind Kind, n Notice) error {
	n.Kind = kind
	return q.Add(ctx, tx, Members, n.Org.String(), n)
}

// AddByAddress queues an email about an address to that address. On an instance that sends no
// email, it only logs the request. It returns Invalid if the address is invalid.
func (q *Queue) AddByAddress(ctx context.Context, op string, kind Kind, email string) error {
	var in tenancy.Inputs
	clean := in.Email("email", email)
	if err := in.Err(op); err != nil {
		return err
	}
	if !q.enabled {
		q.log.WarnContext(ctx, "a mail was requested, but this instance sends none: set SMTP_URL, "+
			"or set a new password with `crier admin reset-password`", "kind", kind)
		return nil
	}
	return q.db.InGate(ctx, op, func(tx *db.GateTx) error { return q.Add(ctx, tx, kind, clean, Notice{}) })
}
