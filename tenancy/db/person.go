package db

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/tenancy"
)

const personInsert = `-- tenancy.PersonInsert
insert into person (id, email, name, password_hash, verified, instance_admin, created_at)
values ($1, $2, $3, $4, $5, $6, $7)`

// CreatePerson inserts a person. If the email address is in use, it returns a violation of the
// unique constraint person_email_key; see pg.IsUnique.
func CreatePerson(ctx context.Context, tx *GateTx, p tenancy.Person) error {
	_, err := Exec(ctx, tx, personInsert, p.ID, p.Email, p.Name, p.PasswordHash, p.Verified, p.Instance, p.CreatedAt)
	return err
}

// PersonRow is a row of the person table with the columns in PersonColumns.
type PersonRow struct {
	tenancy.Person
	PictureID string `db:"picture_id"`
	Path      string `db:"picture"`
}

// PersonColumns lists the columns of PersonRow.
const PersonColumns = `id, email, name, bio, coalesce(picture_id::text, '') picture_id, picture, password_hash, verified,
instance_admin, deleted_at, created_at`

const personByID = `-- tenancy.PersonByID
select ` + PersonColumns + ` from person where id = $1`

// ReadPerson returns a person, or pgx.ErrNoRows.
func ReadPerson(ctx context.Context, tx *GateTx, person tenancy.PersonID) (tenancy.Person, error) {
	row, err := One[PersonRow](ctx, tx, personByID, person)
	return row.Value(), err
}

const personByEmail = `-- tenancy.PersonByEmail
select ` + PersonColumns + ` from person where email = $1`

// PersonByEmail returns the person with the given email address, or pgx.ErrNoRows. The address must
// be in lower case.
func PersonByEmail(ctx context.Context, tx *GateTx, email string) (tenancy.Person, error) {
	row, err := One[PersonRow](ctx, tx, personByEmail, email)
	return row.Value(), err
}

const personLock = `-- tenancy.PersonLock
select ` + PersonColumns + ` from person where id = $1 for no key update`

// LockPerson is like ReadPerson, but also locks the row until the end of the transaction. Rows that
// reference the person can still be inserted. If a transaction also locks the person's second
// factor, it must lock the person first.
func LockPerson(ctx context.Context, tx *GateTx, person tenancy.PersonID) (tenancy.Person, error) {
	row, err := One[PersonRow](ctx, tx, personLock, person)
	return row.Value(), err
}

const personNotifications = `-- tenancy.PersonNotifications
select notifications from person where id = $1`

// ReadNotifications returns a person's notification settings. A setting that the person has never
// chosen has its default value.
func ReadNotifications(ctx context.Context, tx *GateTx, person tenancy.PersonID) (tenancy.Notifications, error) {
	n := tenancy.DefaultNotifications()
	var raw []byte
	if err := tx.QueryRow(ctx, personNotifications, person).Scan(&raw); err != nil {
		return n, err
	}
	return n, json.Unmarshal(raw, &n)
}

const personNotificationsUpdate = `-- tenancy.PersonNotificationsUpdate
update person set notifications = $2 where id = $1`

// SetNotifications stores a person's notification settings.
func SetNotifications(ctx context.Context, tx *GateTx, person tenancy.PersonID, n tenancy.Notifications) error {
	raw, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return Change(ctx, tx, personNotificationsUpdate, person, raw)
}

// PersonWithEmail is like PersonByEmail, but runs in its own transaction.
func PersonWithEmail(ctx context.Context, d *DB, email string) (p tenancy.Person, err error) {
	err = d.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(personByEmail, email).Query(func(rows pgx.Rows) error {
			row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[PersonRow])
			p = row.Value()
			return err
		})
	})
	return p, err
}

// NotificationsOf parses stored notification settings. A setting that was never chosen has its
// default value. If parsing fails, all settings have their default values.
func NotificationsOf(chosen []byte) tenancy.Notifications {
	n := tenancy.DefaultNotifications()
	if json.Unmarshal(chosen, &n) != nil {
		return tenancy.DefaultNotifications()
	}
	return n
}

// Value returns the row as a person.
func (r PersonRow) Value() tenancy.Person {
	r.Picture = tenancy.Picture{ID: r.PictureID, Path: r.Path}
	return r.Person
}
