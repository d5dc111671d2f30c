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
