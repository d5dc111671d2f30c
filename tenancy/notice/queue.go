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
// secrets. If later is set, the task goes into the second queue, behind the emails that people are
// waiting for.
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

// CountMails counts the unsent emails of the given kind to an email address that were added after
// the given time. It stops counting at limit.
func CountMails(ctx context.Context, tx *db.GateTx, email, kind string, since time.Time, limit int) (n int, err error) {
	err = tx.QueryRow(ctx, mailCount, email, kind, since, limit).Scan(&n)
	return n, err
}

// Add queues an email in a transaction. On an instance that sends no email, it does nothing.
//
// Emails that people can opt out of go into the second queue. There may be thousands of them, and
// other emails must not wait behind them. A task that queues such emails for a page of members also
// goes into the second queue, as does every task for a page after the first.
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
	// maxNotices is the maximum number of notices of one kind that can wait to be sent to one
	// address. Notify drops further notices.
	maxNotices = 20
	// noticeWindow is the maximum age of waiting notices that count toward maxNotices. Older
	// notices will no longer be sent.
	noticeWindow = 24 * time.Hour
)

// Notify is like Add, but has a limit and is for notices that tell a person what has happened. If
// too many notices of the same kind are waiting for the address, Notify logs the notice and drops
// it, so that one account cannot fill the queue for everybody. Each kind has its own limit.
// Otherwise, other people could suppress a notice by causing many notices of another kind.
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

// AddForMembers queues an email to each member of an organization, one page of members at a time.
// It adds a task for the first page. If members can opt out of the email, the task goes into the
// second queue.
func (q *Queue) AddForMembers(ctx context.Context, tx *db.GateTx, kind Kind, n Notice) error {
	n.Kind = kind
	return q.Add(ctx, tx, Members, n.Org.String(), n)
}

// AddByAddress queues an email to an address, whether or not the address has an account. On an
// instance that sends no email, it only logs the request. It returns Invalid if the address is
// invalid.
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
