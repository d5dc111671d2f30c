// Package store keeps tenancy's tables. Only tenancy/service uses it.
package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/tenancy"
)

// Store reads and writes organizations, people, members, API keys and sessions.
type Store struct{ db *pg.DB }

// New makes a store.
func New(db *pg.DB) *Store { return &Store{db} }

const organizationInsert = `-- tenancy.OrganizationInsert
insert into organization (id, name, description, timezone, created_at) values ($1, $2, $3, $4, $5) on conflict (id) do nothing`

const memberUpsert = `-- tenancy.MemberUpsert
insert into member (org_id, person_id, role) values ($1, $2, $3)
on conflict (org_id, person_id) do update set role = excluded.role, disabled = false`

// CreateOrganization stores an organization and its first member. It does nothing to one that exists.
func (s *Store) CreateOrganization(ctx context.Context, o tenancy.Organization, m tenancy.Membership) error {
	return s.db.InOrg(ctx, o.ID.UUID(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, organizationInsert, o.ID, o.Name, o.Description, o.Timezone, o.CreatedAt); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, memberUpsert, o.ID, m.Person, m.Role)
		return err
	})
}

const organizationZone = `-- tenancy.OrganizationZone
update organization set timezone = $2 where id = $1 returning id`

// SetTimezone stores an organization's time zone; pgx.ErrNoRows means that there is no such organization.
func (s *Store) SetTimezone(ctx context.Context, org tenancy.OrgID, zone string) error {
	return s.db.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(organizationZone, org, zone).QueryRow(func(row pgx.Row) error { return row.Scan(new(tenancy.OrgID)) })
	})
}

const personInsert = `-- tenancy.PersonInsert
insert into person (id, email, name, password_hash, activated, created_at) values ($1, $2, $3, $4, $5, $6)`

// CreatePerson stores somebody; a taken address is the unique violation person_email_key.
func (s *Store) CreatePerson(ctx context.Context, p tenancy.Person) error {
	return s.db.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(personInsert, p.ID, p.Email, p.Name, p.PasswordHash, p.Activated, p.CreatedAt)
	})
}

const personByEmail = `-- tenancy.PersonByEmail
select id, email, name, password_hash, activated, created_at from person where email = $1`

// PersonByEmail finds somebody by lower-case address, or pgx.ErrNoRows.
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

// SetPassword replaces the password's hash.
func (s *Store) SetPassword(ctx context.Context, person tenancy.PersonID, hash string) error {
	return s.db.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) { b.Queue(personPassword, person, hash) })
}

const keyInsert = `-- tenancy.KeyInsert
insert into api_key (org_id, id, name, prefix, hash, created_by, created_at, expires_at) values ($1, $2, $3, $4, $5, $6, $7, $8)`

// CreateKey stores an API key by its hash.
func (s *Store) CreateKey(ctx context.Context, k tenancy.APIKey, hash []byte) error {
	return s.db.WriteOrg(ctx, k.Org.UUID(), func(b *pgx.Batch) {
		b.Queue(keyInsert, k.Org, k.ID, k.Name, k.Prefix, hash, k.CreatedBy, k.CreatedAt, k.ExpiresAt)
	})
}

const keyDelete = `-- tenancy.KeyDelete
delete from api_key where id = $1 returning hash`

// DeleteKey removes a key and returns its hash, or pgx.ErrNoRows.
func (s *Store) DeleteKey(ctx context.Context, org tenancy.OrgID, key tenancy.KeyID) (hash []byte, err error) {
	err = s.db.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(keyDelete, key).QueryRow(func(row pgx.Row) error { return row.Scan(&hash) })
	})
	return hash, err
}

const keysByHash = `-- tenancy.KeysByHash
select hash, org_id, id, created_by, expires_at from api_key where hash = any ($1)`

// KeysByHash returns the keys that have one of the hashes, by their hash. It uses a connection that nothing else does.
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

// CreateSession stores a session by its token's hash.
func (s *Store) CreateSession(ctx context.Context, session tenancy.SessionID, person tenancy.PersonID, hash []byte, now, expires time.Time) error {
	return s.db.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) { b.Queue(sessionInsert, session, person, hash, now, expires) })
}

// The last use of a session is written at most once a minute, so that reads stay reads. Another process may be writing it:
// whoever comes second leaves it, and waits for nobody.
const sessionsByHash = `-- tenancy.SessionsByHash
with live as (
  select s.hash, s.id, m.org_id, m.person_id, m.role, m.created_at
  from session s join member m on m.person_id = s.person_id and not m.disabled
  where s.hash = any ($1) and s.expires_at > $2 and s.seen_at > $3
), due as (
  select id from session
  where id in (select id from live) and seen_at < $2 - interval '1 minute'
  for update skip locked
), touched as (
  update session s set seen_at = $2 from due where s.id = due.id
)
select hash, id, org_id, person_id, role from live order by created_at, org_id`

// Session is a live session, with where its person is an enabled member: at least one, the oldest membership first.
type Session struct {
	ID          tenancy.SessionID
	Memberships []tenancy.Membership
}

// SessionsByHash returns the live sessions whose tokens have one of the hashes, by their hash, without those of people who
// are members nowhere. Each of them is used now.
func (s *Store) SessionsByHash(ctx context.Context, hashes [][]byte, now time.Time) (sessions map[string]Session, err error) {
	idle := now.Add(-tenancy.SessionIdle)
	err = s.db.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(sessionsByHash, hashes, now, idle).Query(func(rows pgx.Rows) error {
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

// DeleteSession ends a session; one that is gone is no error.
func (s *Store) DeleteSession(ctx context.Context, hash []byte) error {
	return s.db.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) { b.Queue(sessionDelete, hash) })
}
