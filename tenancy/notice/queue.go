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

// MailTask is the kind of the task that sends a mail. The task has the id of the mail's row.
const MailTask = "mail"

const mailInsert = `-- tenancy.MailInsert
insert into mail (id, kind, email, data, created_at) values ($1, $2, $3, $4, $5)`

// AddMail inserts a mail with its task. data is encoded as JSON and must hold nothing secret. If
// later is set, the mail goes behind the mails that people are waiting for.
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

// CountMails returns how many mails of a kind to an address were added since a time and have not
// been sent yet, at most limit.
func CountMails(ctx context.Context, tx *db.GateTx, email, kind string, since time.Time, limit int) (n int, err error) {
	err = tx.QueryRow(ctx, mailCount, email, kind, since, limit).Scan(&n)
	return n, err
}

// Add queues a mail in a transaction. On an instance without mail it does nothing. Mails that a
// person can turn off go behind the mails that people are waiting for, because there may be
// thousands of them. So do the tasks that queue such mails for a page of members, and every such
// task after the first page.
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
	// noticeWindow excludes mails that will no longer be sent.
	noticeWindow = 24 * time.Hour
)

// Notify is Add for something that has happened to a person. While too many notices of the kind to
// the address are waiting, it only logs: one account must not fill the queue that all mails go
// through. Mails of other kinds do not count, because other people can cause them and could thus
// keep a notice from the person.
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

// AddForMembers queues a mail about an organization for each of its members, page by page: it adds
// the task for the first page, which goes behind other mails if the members can turn off the mail.
func (q *Queue) AddForMembers(ctx context.Context, tx *db.GateTx, kind Kind, n Notice) error {
	n.Kind = kind
	return q.Add(ctx, tx, Members, n.Org.String(), n)
}

// AddByAddress queues a mail about an address to that address. On an instance without mail it only
// logs. It returns Invalid for an invalid address.
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
