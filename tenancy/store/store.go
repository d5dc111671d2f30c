// Package store reads and writes the tables of tenancy. Only tenancy/service uses it.
package store

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/tenancy"
)

// Store reads and writes organizations, people, members, API keys and sessions. Its methods return the errors of
// Postgres unchanged. It is safe for concurrent use.
type Store struct{ db *pg.DB }

// New returns a Store. It uses db as pg.Gate and pg.Keys, and as a tenant for the rows of one organization.
func New(db *pg.DB) *Store { return &Store{db: db} }

const organizationInsert = `-- tenancy.OrganizationInsert
insert into organization (id, name, description, timezone, created_at) values ($1, $2, $3, $4, $5)
on conflict (id) do nothing`

const memberUpsert = `-- tenancy.MemberUpsert
insert into member (org_id, person_id, role) values ($1, $2, $3)
on conflict (org_id, person_id) do update set role = excluded.role, disabled = false`

// CreateOrganization inserts an organization and its first member in one transaction. An organization that exists is
// left unchanged, but the member is inserted or updated. It returns the error of Postgres, after which nothing is
// stored; that is a violation of a foreign key when the person does not exist.
func (s *Store) CreateOrganization(ctx context.Context, o tenancy.Organization, m tenancy.Membership) error {
	return s.db.InOrg(ctx, o.ID.UUID(), func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, organizationInsert, o.ID, o.Name, o.Description, o.Timezone, o.CreatedAt)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, memberUpsert, o.ID, m.Person, m.Role)
		return err
	})
}

const organizationZone = `-- tenancy.OrganizationZone
update organization set timezone = $2 where id = $1 returning id`

// SetTimezone updates the time zone of an organization. It returns pgx.ErrNoRows when there is no such organization.
func (s *Store) SetTimezone(ctx context.Context, org tenancy.OrgID, zone string) error {
	return s.db.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(organizationZone, org, zone).QueryRow(func(row pgx.Row) error { return row.Scan(new(tenancy.OrgID)) })
	})
}

const personInsert = `-- tenancy.PersonInsert
insert into person (id, email, name, password_hash, activated, created_at) values ($1, $2, $3, $4, $5, $6)`

// CreatePerson inserts a person. It returns the error of Postgres, which for an address that is in use is a violation
// of the unique constraint person_email_key (pg.IsUnique).
func (s *Store) CreatePerson(ctx context.Context, p tenancy.Person) error {
	return s.db.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(personInsert, p.ID, p.Email, p.Name, p.PasswordHash, p.Activated, p.CreatedAt)
	})
}

const personByEmail = `-- tenancy.PersonByEmail
select id, email, name, password_hash, activated, created_at from person where email = $1`

// PersonByEmail returns the person with an address, which must be in lower case, or pgx.ErrNoRows.
func (s *Store) PersonByEmail(ctx context.Context, email string) (p tenancy.Person, err error) {
	err = s.db.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(personByEmail, email).QueryRow(func(row pgx.Row) error {
			return row.Scan(&p.ID, &p.Email, &p.Name, &p.PasswordHash, &p.Activated, &p.CreatedAt)
		})
	})
	return p, err
}

const personPassword = `-- tenancy.PersonPassword
update person set password_hash = $2 where id = $1`

// SetPassword replaces the password hash of a person. That there is no such person is no error; it returns the error of
// Postgres.
func (s *Store) SetPassword(ctx context.Context, person tenancy.PersonID, hash string) error {
	return s.db.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) { b.Queue(personPassword, person, hash) })
}

const keyInsert = `-- tenancy.KeyInsert
insert into api_key (org_id, id, name, prefix, hash, created_by, created_at, expires_at)
values ($1, $2, $3, $4, $5, $6, $7, $8)`

// CreateKey inserts an API key with its hash. It returns pg.ErrOrgBusy or the error of Postgres, which is a unique
// violation for a hash that exists.
func (s *Store) CreateKey(ctx context.Context, k tenancy.APIKey, hash []byte) error {
	return s.db.WriteOrg(ctx, k.Org.UUID(), func(b *pgx.Batch) {
		b.Queue(keyInsert, k.Org, k.ID, k.Name, k.Prefix, hash, k.CreatedBy, k.CreatedAt, k.ExpiresAt)
	})
}

const keyDelete = `-- tenancy.KeyDelete
delete from api_key where id = $1 returning hash`

// DeleteKey deletes a key of an organization and returns its hash, or pgx.ErrNoRows.
func (s *Store) DeleteKey(ctx context.Context, org tenancy.OrgID, key tenancy.KeyID) (hash []byte, err error) {
	err = s.db.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(keyDelete, key).QueryRow(func(row pgx.Row) error { return row.Scan(&hash) })
	})
	return hash, err
}

const keysByHash = `-- tenancy.KeysByHash
select hash, org_id, id, created_by, expires_at from api_key where hash = any ($1)`

// KeysByHash returns the keys that have one of the hashes, by their hash. It uses a connection pool of its own
// (pg.Keys), so that other look-ups cannot delay the authentication of API keys. A hash without a key is no error; it
// returns the error of Postgres.
func (s *Store) KeysByHash(ctx context.Context, hashes [][]byte) (keys map[string]tenancy.APIKey, err error) {
	err = s.db.WriteRole(ctx, pg.Keys, func(b *pgx.Batch) {
		b.Queue(keysByHash, hashes).Query(func(rows pgx.Rows) error {
			keys = map[string]tenancy.APIKey{}
			var hash []byte
			var k tenancy.APIKey
			_, err := pgx.ForEachRow(rows, []any{&hash, &k.Org, &k.ID, &k.CreatedBy, &k.ExpiresAt}, func() error {
				keys[string(hash)] = k
				return nil
			})
			return err
		})
	})
	return keys, err
}

const sessionInsert = `-- tenancy.SessionInsert
insert into session (id, person_id, hash, created_at, seen_at, expires_at) values ($1, $2, $3, $4, $4, $5)`

// CreateSession inserts a session with the hash of its token. It returns the error of Postgres, which is a violation of
// a foreign key when the person does not exist.
func (s *Store) CreateSession(
	ctx context.Context, session tenancy.SessionID, person tenancy.PersonID, hash []byte, now, expires time.Time,
) error {
	return s.db.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(sessionInsert, session, person, hash, now, expires)
	})
}

//go:embed sql/find_sessions_by_hash.sql
var findSessionsByHash string

// Session is a live session with the enabled memberships of its person.
type Session struct {
	ID tenancy.SessionID
	// Memberships has at least one element. The oldest membership is the first.
	Memberships []tenancy.Membership
}

// SessionsByHash returns the live sessions whose tokens have one of the hashes, by their hash. It leaves out the
// sessions of people without an enabled membership. The returned sessions count as used at the time now. A hash without
// a session is no error; it returns the error of Postgres.
func (s *Store) SessionsByHash(
	ctx context.Context, hashes [][]byte, now time.Time,
) (sessions map[string]Session, err error) {
	idle := now.Add(-tenancy.SessionIdle)
	err = s.db.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(findSessionsByHash, hashes, now, idle).Query(func(rows pgx.Rows) error {
			sessions = map[string]Session{}
			var hash []byte
			var id tenancy.SessionID
			var m tenancy.Membership
			_, err := pgx.ForEachRow(rows, []any{&hash, &id, &m.Org, &m.Person, &m.Role}, func() error {
				sessions[string(hash)] = Session{ID: id, Memberships: append(sessions[string(hash)].Memberships, m)}
				return nil
			})
			return err
		})
	})
	return sessions, err
}

const sessionDelete = `-- tenancy.SessionDelete
delete from session where hash = $1`

// DeleteSession deletes the session of a token's hash. A session that does not exist is no error.
func (s *Store) DeleteSession(ctx context.Context, hash []byte) error {
	return s.db.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) { b.Queue(sessionDelete, hash) })
}
