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

// The session's last use is written at most once a minute, so that reads stay reads.
const sessionMembership = `-- tenancy.SessionMembership
with found as (
  select s.id, m.org_id, m.person_id, m.role
  from session s join member m on m.person_id = s.person_id and not m.disabled
  where s.hash = $1 and s.expires_at > $2 and s.seen_at > $3 and ($4::uuid is null or m.org_id = $4)
  order by m.created_at, m.org_id limit 1
), touched as (
  update session s set seen_at = $2 from found where s.id = found.id and s.seen_at < $2 - interval '1 minute'
)
select id, org_id, person_id, role from found`

// SessionMembership finds the person of a live session and their place in the organization (zero = the first), or pgx.ErrNoRows.
func (s *Store) SessionMembership(ctx context.Context, hash []byte, org tenancy.OrgID, now time.Time) (session tenancy.SessionID, m tenancy.Membership, err error) {
	idle := now.Add(-tenancy.SessionIdle)
	err = s.db.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(sessionMembership, hash, now, idle, org).QueryRow(func(row pgx.Row) error {
			return row.Scan(&session, &m.Org, &m.Person, &m.Role)
		})
	})
	return session, m, err
}

const sessionDelete = `-- tenancy.SessionDelete
delete from session where hash = $1`

// DeleteSession ends a session; one that is gone is no error.
func (s *Store) DeleteSession(ctx context.Context, hash []byte) error {
	return s.db.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) { b.Queue(sessionDelete, hash) })
}
