package store

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
)

// NewSession is a session to be inserted.
type NewSession struct {
	ID     tenancy.SessionID
	Person tenancy.PersonID
	// Hash is that of the token.
	Hash               []byte
	CreatedAt, Expires time.Time
	From               tenancy.Source
}

const sessionInsert = `-- tenancy.SessionInsert
insert into session (id, person_id, hash, created_at, seen_at, expires_at, address, agent, by_factor)
values ($1, $2, $3, $4, $4, $5, $6, $7,
  exists (select from mfa where person_id = $2 and confirmed_at is not null))`

// maxSessions is the number of sessions that a person has.
const maxSessions = 100

const sessionForget = `-- tenancy.SessionForget
delete from session where id in
  (select id from session where person_id = $1 order by seen_at desc, id offset $2)`

// CreateSession inserts a session of a person who has proved the second factor, if there is one. If
// the person has too many sessions, it deletes the least recently used ones. It returns the error
// of Postgres, which is a violation of a foreign key when the person does not exist.
func (t *GateTx) CreateSession(ctx context.Context, s NewSession) error {
	if _, err := exec(ctx, t.tx, sessionForget, s.Person, maxSessions-1); err != nil {
		return err
	}
	_, err := exec(ctx, t.tx, sessionInsert,
		s.ID, s.Person, s.Hash, s.CreatedAt, s.Expires, s.From.Client, s.From.Agent)
	return err
}

const signInCount = `-- tenancy.SignInCount
update person set sign_ins = case when sign_ins_since > $2 then sign_ins + 1 else 1 end,
  sign_ins_since = case when sign_ins_since > $2 then sign_ins_since else $3 end
where id = $1 returning sign_ins, sign_ins_since`

// CountSignIn counts a sign-in of a person. It returns how many there were since a time, at most a window ago.
func (t *GateTx) CountSignIn(ctx context.Context, person tenancy.PersonID, now time.Time, window time.Duration) (
	n int, since time.Time, err error) {
	err = t.tx.QueryRow(ctx, signInCount, person, now.Add(-window), now).Scan(&n, &since)
	return n, since, err
}

//go:embed sql/find_sessions_by_hash.sql
var findSessionsByHash string

// Session is a live session with its person and the organizations that the person can choose.
type Session struct {
	ID     tenancy.SessionID
	Person tenancy.PersonID
	Email  string
	// Instance means that the person is an administrator of the instance.
	Instance bool
	// HasMFA means that the person has a confirmed second factor.
	HasMFA bool
	// Choices are the enabled memberships, the oldest first.
	Choices []Choice
}

// Choice is an organization that a person can choose.
type Choice struct {
	Org         tenancy.OrgID
	Role        tenancy.Role
	Suspended   bool
	RequiresMFA bool
}

type sessionRow struct {
	Hash        []byte            `db:"hash"`
	ID          tenancy.SessionID `db:"id"`
	Person      tenancy.PersonID  `db:"person_id"`
	Email       string            `db:"email"`
	Instance    bool              `db:"instance_admin"`
	HasMFA      bool              `db:"has_mfa"`
	Org         tenancy.OrgID     `db:"org_id"`
	Role        tenancy.Role      `db:"role"`
	Suspended   bool              `db:"suspended"`
	RequiresMFA bool              `db:"mfa_required"`
}

// SessionsByHash returns the live sessions whose tokens have one of the hashes, by their hash. The returned sessions
// count as used at the time now. It uses a connection pool of its own (pg.Sessions), so that other use cases of accounts
// cannot delay it. A hash without a session is no error; it returns the error of Postgres.
func (s *Store) SessionsByHash(
	ctx context.Context, hashes [][]byte, now time.Time,
) (sessions map[string]Session, err error) {
	idle := now.Add(-tenancy.SessionIdle)
	err = s.db.WriteRole(ctx, pg.Sessions, func(b *pgx.Batch) {
		b.Queue(findSessionsByHash, hashes, now, idle).Query(func(rows pgx.Rows) error {
			found, err := pgx.CollectRows(rows, pgx.RowToStructByName[sessionRow])
			sessions = groupSessions(found)
			return err
		})
	})
	return sessions, err
}

// groupSessions returns one session for all rows of a hash.
func groupSessions(rows []sessionRow) map[string]Session {
	out := map[string]Session{}
	for _, r := range rows {
		s, known := out[string(r.Hash)]
		if !known {
			s = Session{ID: r.ID, Person: r.Person, Email: r.Email, Instance: r.Instance, HasMFA: r.HasMFA}
		}
		if !r.Org.IsZero() {
			s.Choices = append(s.Choices, Choice{
				Org: r.Org, Role: r.Role, Suspended: r.Suspended, RequiresMFA: r.RequiresMFA,
			})
		}
		out[string(r.Hash)] = s
	}
	return out
}

const sessionLock = `-- tenancy.SessionLock
select s.id, s.person_id, p.email from session s join person p on p.id = s.person_id where s.hash = $1 for update of s`

// LockSession returns the session of a token's hash, live or not, with the id and the address of its person, and locks
// it until the end of the transaction, or returns pgx.ErrNoRows.
func (t *GateTx) LockSession(ctx context.Context, hash []byte) (
	session tenancy.SessionID, person tenancy.Person, err error) {
	err = t.tx.QueryRow(ctx, sessionLock, hash).Scan(&session, &person.ID, &person.Email)
	return session, person, err
}

const sessionList = `-- tenancy.SessionList
select id, created_at, seen_at, expires_at, address, agent from session
where person_id = $1 and expires_at > $2 and seen_at > $3 order by created_at desc, id desc limit 1000`

// Sessions returns the live sessions of a person, the newest first.
func (t *GateTx) Sessions(ctx context.Context, person tenancy.PersonID, now time.Time) ([]tenancy.SessionInfo, error) {
	return list[tenancy.SessionInfo](ctx, t.tx, sessionList, person, now, now.Add(-tenancy.SessionIdle))
}

const sessionEnd = `-- tenancy.SessionEnd
delete from session where person_id = $1 and id = $2`

// EndSession deletes a session of a person, or returns pgx.ErrNoRows.
func (t *GateTx) EndSession(ctx context.Context, person tenancy.PersonID, session tenancy.SessionID) error {
	return change(ctx, t.tx, sessionEnd, person, session)
}

const sessionEndOthers = `-- tenancy.SessionEndOthers
delete from session where person_id = $1 and id is distinct from $2`

const deviceForgetOthers = `-- tenancy.DeviceForgetOthers
delete from device where person_id = $1 and hash <> $2`

// EndSessions deletes all sessions of a person but the one to keep, which may be zero, and returns their number. It
// also ends what had been begun with the credentials that the person had: steps of sign-ins, and mailed links for a new
// password and for a change of address. Other browsers than that of the token device are not known any more.
func (t *GateTx) EndSessions(ctx context.Context, person tenancy.PersonID, keep tenancy.SessionID, device string) (
	int, error) {
	for _, sql := range []string{
		"-- tenancy.StepsEnd\ndelete from sign_in_step where person_id = $1",
		"-- tenancy.ConfirmationsEnd\ndelete from confirmation where person_id = $1",
	} {
		if _, err := exec(ctx, t.tx, sql, person); err != nil {
			return 0, err
		}
	}
	if _, err := exec(ctx, t.tx, deviceForgetOthers, person, secret.HashToken(device)); err != nil {
		return 0, err
	}
	return exec(ctx, t.tx, sessionEndOthers, person, keep)
}

const sessionFactor = `-- tenancy.SessionFactor
update session set by_factor = true where id = $1`

// SetSessionByFactor stores that the person of a session has proved the second factor in it.
func (t *GateTx) SetSessionByFactor(ctx context.Context, session tenancy.SessionID) error {
	_, err := exec(ctx, t.tx, sessionFactor, session)
	return err
}

const sessionProof = `-- tenancy.SessionProof
select created_at, by_factor,
  exists (select from mfa where person_id = s.person_id and confirmed_at is not null) has_factor
from session s where id = $1`

// SessionProof is what the sign-in of a session proved.
type SessionProof struct {
	CreatedAt time.Time `db:"created_at"`
	// ByFactor means that the sign-in proved the second factor, or that the factor was enabled in the session.
	ByFactor bool `db:"by_factor"`
	// HasFactor means that the person has a second factor now.
	HasFactor bool `db:"has_factor"`
}

// SessionProof returns what the sign-in of a session proved, or pgx.ErrNoRows.
func (t *GateTx) SessionProof(ctx context.Context, session tenancy.SessionID) (SessionProof, error) {
	return one[SessionProof](ctx, t.tx, sessionProof, session)
}

const deviceSeen = `-- tenancy.DeviceSeen
update device set seen_at = $3, expires_at = $4 where hash = $1 and person_id = $2 and expires_at > $3`

// SeeDevice extends the memory of a browser and returns whether it is one of the person's.
func (t *GateTx) SeeDevice(ctx context.Context, person tenancy.PersonID, hash []byte, now time.Time) (bool, error) {
	n, err := exec(ctx, t.tx, deviceSeen, hash, person, now, now.Add(tenancy.DeviceMemory))
	return n > 0, err
}

const deviceInsert = `-- tenancy.DeviceInsert
insert into device (hash, person_id, seen_at, expires_at) values ($1, $2, $3, $4)`

// maxDevices is the number of browsers that are remembered of a person.
const maxDevices = 100

const deviceForget = `-- tenancy.DeviceForget
delete from device where hash in
  (select hash from device where person_id = $1 order by seen_at desc, hash offset $2)`

// AddDevice inserts a browser of a person and returns whether the person had others. It forgets those that were not
// seen for the longest time, if there are too many.
func (t *GateTx) AddDevice(ctx context.Context, person tenancy.PersonID, hash []byte, now time.Time) (bool, error) {
	var others bool
	const any = `-- tenancy.DeviceAny
select exists (select from device where person_id = $1)`
	if err := t.tx.QueryRow(ctx, any, person).Scan(&others); err != nil {
		return false, err
	}
	if _, err := exec(ctx, t.tx, deviceForget, person, maxDevices-1); err != nil {
		return false, err
	}
	_, err := exec(ctx, t.tx, deviceInsert, hash, person, now, now.Add(tenancy.DeviceMemory))
	return others, err
}

const deviceOf = `-- tenancy.DeviceOf
select exists (select from device d join person p on p.id = d.person_id
  where d.hash = $1 and p.email = $2 and d.expires_at > $3)`

// IsDeviceOf returns whether a browser is known for the person with the address.
func (s *Store) IsDeviceOf(ctx context.Context, hash []byte, email string, now time.Time) (known bool, err error) {
	err = s.db.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(deviceOf, hash, email, now).QueryRow(func(row pgx.Row) error { return row.Scan(&known) })
	})
	return known, err
}

const impersonationBegin = `-- tenancy.ImpersonationBegin
insert into impersonation (session_id, org_id, person_id, started_at) values ($1, $2, $3, $4) on conflict do nothing`

// BeginImpersonation stores that a session acts as a member, and returns false if that was stored before.
func (t *GateTx) BeginImpersonation(
	ctx context.Context, session tenancy.SessionID, org tenancy.OrgID, person tenancy.PersonID, now time.Time,
) (bool, error) {
	n, err := exec(ctx, t.tx, impersonationBegin, session, org, person, now)
	return n > 0, err
}

const impersonationEnd = `-- tenancy.ImpersonationEnd
delete from impersonation i using person p where i.session_id = $1 and p.id = i.person_id
returning i.org_id, i.person_id, p.email`

// Impersonation is a member that a session acts as.
type Impersonation struct {
	Org    tenancy.OrgID    `db:"org_id"`
	Person tenancy.PersonID `db:"person_id"`
	Email  string           `db:"email"`
}

// EndImpersonations deletes what a session acts as, and returns it.
func (t *GateTx) EndImpersonations(ctx context.Context, session tenancy.SessionID) ([]Impersonation, error) {
	return list[Impersonation](ctx, t.tx, impersonationEnd, session)
}

const actingSessions = `-- tenancy.ActingSessions
select s.id from session s
where s.person_id = $1 and exists (select from impersonation i where i.session_id = s.id) order by s.id for update`

// ActingSessions returns an administrator's sessions that are impersonating somebody, and locks
// them until the end of the transaction.
func (t *GateTx) ActingSessions(ctx context.Context, admin tenancy.PersonID) ([]tenancy.SessionID, error) {
	rows, err := t.tx.Query(ctx, actingSessions, admin)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[tenancy.SessionID])
}
