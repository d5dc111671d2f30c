package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/tenancy"
)

const personInsert = `-- tenancy.PersonInsert
insert into person (id, email, name, password_hash, verified, instance_admin, created_at)
values ($1, $2, $3, $4, $5, $6, $7)`

// CreatePerson inserts a person. It returns the error of Postgres, which for an address that is in use is a violation
// of the unique constraint person_email_key (pg.IsUnique).
func (t *GateTx) CreatePerson(ctx context.Context, p tenancy.Person) error {
	_, err := exec(ctx, t.tx, personInsert, p.ID, p.Email, p.Name, p.PasswordHash, p.Verified, p.Instance, p.CreatedAt)
	return err
}

// personColumns are the columns of personRow.
const personColumns = `id, email, name, bio, coalesce(picture_id::text, '') picture_id, picture, password_hash, verified,
instance_admin, deleted_at, created_at`

type personRow struct {
	tenancy.Person
	PictureID string `db:"picture_id"`
	Path      string `db:"picture"`
}

func (r personRow) person() tenancy.Person {
	r.Picture = tenancy.Picture{ID: r.PictureID, Path: r.Path}
	return r.Person
}

const personByEmail = `-- tenancy.PersonByEmail
select ` + personColumns + ` from person where email = $1`

// PersonByEmail returns the person with an address, which must be in lower case, or pgx.ErrNoRows.
func (s *Store) PersonByEmail(ctx context.Context, email string) (p tenancy.Person, err error) {
	err = s.db.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(personByEmail, email).Query(func(rows pgx.Rows) error {
			row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[personRow])
			p = row.person()
			return err
		})
	})
	return p, err
}

const personByID = `-- tenancy.PersonByID
select ` + personColumns + ` from person where id = $1`

// Person returns a person, or pgx.ErrNoRows.
func (t *GateTx) Person(ctx context.Context, person tenancy.PersonID) (tenancy.Person, error) {
	row, err := one[personRow](ctx, t.tx, personByID, person)
	return row.person(), err
}

// PersonByEmail returns the person with an address, which must be in lower case, or pgx.ErrNoRows.
func (t *GateTx) PersonByEmail(ctx context.Context, email string) (tenancy.Person, error) {
	row, err := one[personRow](ctx, t.tx, personByEmail, email)
	return row.person(), err
}

const personLock = `-- tenancy.PersonLock
select ` + personColumns + ` from person where id = $1 for no key update`

// LockPerson returns a person and locks the row until the end of the transaction, or returns pgx.ErrNoRows. Rows that
// refer to the person can be inserted meanwhile. A transaction that locks a second factor too locks the person first.
func (t *GateTx) LockPerson(ctx context.Context, person tenancy.PersonID) (tenancy.Person, error) {
	row, err := one[personRow](ctx, t.tx, personLock, person)
	return row.person(), err
}

const personPassword = `-- tenancy.PersonPassword
update person set password_hash = $2 where id = $1`

// SetPassword replaces the password hash of a person. It returns pgx.ErrNoRows when there is no such person.
func (t *GateTx) SetPassword(ctx context.Context, person tenancy.PersonID, hash string) error {
	return change(ctx, t.tx, personPassword, person, hash)
}

const personEmail = `-- tenancy.PersonEmail
update person set email = $2, verified = $3 where id = $1`

// SetEmail replaces the address of a person. It returns the errors of CreatePerson, and pgx.ErrNoRows.
func (t *GateTx) SetEmail(ctx context.Context, person tenancy.PersonID, email string, verified bool) error {
	return change(ctx, t.tx, personEmail, person, email, verified)
}

const personVerified = `-- tenancy.PersonVerified
update person set verified = true where id = $1`

// SetVerified records that a link that was sent to the person's address has been followed.
func (t *GateTx) SetVerified(ctx context.Context, person tenancy.PersonID) error {
	return change(ctx, t.tx, personVerified, person)
}

const personProfile = `-- tenancy.PersonProfile
update person set name = $2, bio = $3, picture_id = nullif($4, '')::uuid, picture = $5 where id = $1`

// SetProfile replaces the profile of a person, or returns pgx.ErrNoRows.
func (t *GateTx) SetProfile(ctx context.Context, person tenancy.PersonID, p tenancy.Profile) error {
	return change(ctx, t.tx, personProfile, person, p.Name, p.Bio, p.Picture.ID, p.Picture.Path)
}

const personName = `-- tenancy.PersonName
update person set name = $2 where id = $1 and name = ''`

// FillName sets the name of a person who has none. It returns false when nothing has changed.
func (t *GateTx) FillName(ctx context.Context, person tenancy.PersonID, name string) (bool, error) {
	n, err := exec(ctx, t.tx, personName, person, name)
	return n > 0, err
}

const personNotifications = `-- tenancy.PersonNotifications
select notifications from person where id = $1`

// Notifications returns what a person wants to be notified of, with the defaults for what was never chosen.
func (t *GateTx) Notifications(ctx context.Context, person tenancy.PersonID) (tenancy.Notifications, error) {
	n := tenancy.DefaultNotifications()
	var raw []byte
	if err := t.tx.QueryRow(ctx, personNotifications, person).Scan(&raw); err != nil {
		return n, err
	}
	return n, json.Unmarshal(raw, &n)
}

const personNotificationsUpdate = `-- tenancy.PersonNotificationsUpdate
update person set notifications = $2 where id = $1`

// SetNotifications stores what a person wants to be notified of.
func (t *GateTx) SetNotifications(ctx context.Context, person tenancy.PersonID, n tenancy.Notifications) error {
	raw, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return change(ctx, t.tx, personNotificationsUpdate, person, raw)
}

const personDeleted = `-- tenancy.PersonDeleted
update person set deleted_at = $2 where id = $1`

// SetPersonDeleted stores when the deletion of an account was requested, nil for an undo.
func (t *GateTx) SetPersonDeleted(ctx context.Context, person tenancy.PersonID, at *time.Time) error {
	return change(ctx, t.tx, personDeleted, person, at)
}

const personInstance = `-- tenancy.PersonInstance
update person set instance_admin = $2 where id = $1`

// SetInstance makes a person an administrator of the instance, or ends that.
func (t *GateTx) SetInstance(ctx context.Context, person tenancy.PersonID, instance bool) error {
	return change(ctx, t.tx, personInstance, person, instance)
}
