package entry

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/db"
)

const deviceSeen = `-- tenancy.DeviceSeen
update device set seen_at = $3, expires_at = $4 where hash = $1 and person_id = $2 and expires_at > $3`

// seeDevice reports whether a browser is one of a person's known browsers. If it is, seeDevice
// remembers the browser for another DeviceMemory.
func seeDevice(ctx context.Context, tx *db.GateTx, person tenancy.PersonID, hash []byte, now time.Time) (bool, error) {
	n, err := db.Exec(ctx, tx, deviceSeen, hash, person, now, now.Add(tenancy.DeviceMemory))
	return n > 0, err
}

const deviceInsert = `-- tenancy.DeviceInsert
insert into device (hash, person_id, seen_at, expires_at) values ($1, $2, $3, $4)`

// maxDevices is the maximum number of browsers that are remembered per person.
const maxDevices = 100

const deviceForget = `-- tenancy.DeviceForget
delete from device where hash in
  (select hash from device where person_id = $1 order by seen_at desc, hash offset $2)`

// addDevice adds a browser to a person's known browsers and reports whether the person already had
// any. If the person has too many, addDevice forgets the least recently seen ones.
func addDevice(ctx context.Context, tx *db.GateTx, person tenancy.PersonID, hash []byte, now time.Time) (bool, error) {
	var others bool
	const any = `-- tenancy.DeviceAny
select exists (select from device where person_id = $1)`
	if err := tx.QueryRow(ctx, any, person).Scan(&others); err != nil {
		return false, err
	}
	if _, err := db.Exec(ctx, tx, deviceForget, person, maxDevices-1); err != nil {
		return false, err
	}
	_, err := db.Exec(ctx, tx, deviceInsert, hash, person, now, now.Add(tenancy.DeviceMemory))
	return others, err
}

// newSession is a session to be inserted.
type newSession struct {
	ID     tenancy.SessionID
	Person tenancy.PersonID
	// Hash is the hash of the session token.
	Hash               []byte
	CreatedAt, Expires time.Time
	From               tenancy.Source
}

const sessionInsert = `-- tenancy.SessionInsert
insert into session (id, person_id, hash, created_at, seen_at, expires_at, address, agent, by_factor)
values ($1, $2, $3, $4, $4, $5, $6, $7,
  exists (select from mfa where person_id = $2 and confirmed_at is not null))`

// maxSessions is the maximum number of sessions per person.
const maxSessions = 100

const sessionForget = `-- tenancy.SessionForget
delete from session where id in
  (select id from session where person_id = $1 order by seen_at desc, id offset $2)`

// createSession inserts a session. If the person has a second factor, the caller must have verified
// it. If the person has too many sessions, createSession deletes the least recently used ones. It
// returns a foreign-key violation if the person does not exist.
func createSession(ctx context.Context, tx *db.GateTx, s newSession) error {
	if _, err := db.Exec(ctx, tx, sessionForget, s.Person, maxSessions-1); err != nil {
		return err
	}
	_, err := db.Exec(ctx, tx, sessionInsert,
		s.ID, s.Person, s.Hash, s.CreatedAt, s.Expires, s.From.Client, s.From.Agent)
	return err
}

const signInCount = `-- tenancy.SignInCount
update person set sign_ins = case when sign_ins_since > $2 then sign_ins + 1 else 1 end,
  sign_ins_since = case when sign_ins_since > $2 then sign_ins_since else $3 end
where id = $1 returning sign_ins, sign_ins_since`

// countSignIn counts a sign-in by a person. It returns the number of sign-ins in the current
// window, including this one, and the time at which that window began.
func countSignIn(ctx context.Context, tx *db.GateTx, person tenancy.PersonID, now time.Time, window time.Duration) (
	n int, since time.Time, err error) {
	err = tx.QueryRow(ctx, signInCount, person, now.Add(-window), now).Scan(&n, &since)
	return n, since, err
}

const sessionEndOthers = `-- tenancy.SessionEndOthers
delete from session where person_id = $1 and id is distinct from $2`

const deviceForgetOthers = `-- tenancy.DeviceForgetOthers
delete from device where person_id = $1 and hash <> $2`

// EndSessions deletes all of a person's sessions except keep, which may be zero, and returns the
// number of deleted sessions. It also deletes the person's sign-in steps and confirmations, so that
// emailed links for a password reset or an address change no longer work. It forgets all of the
// person's browsers except the one with the given device token.
func EndSessions(ctx context.Context, tx *db.GateTx, person tenancy.PersonID, keep tenancy.SessionID, device string) (
	int, error) {
	for _, sql := range []string{
		"-- tenancy.StepsEnd\ndelete from sign_in_step where person_id = $1",
		"-- tenancy.ConfirmationsEnd\ndelete from confirmation where person_id = $1",
	} {
		if _, err := db.Exec(ctx, tx, sql, person); err != nil {
			return 0, err
		}
	}
	if _, err := db.Exec(ctx, tx, deviceForgetOthers, person, secret.HashToken(device)); err != nil {
		return 0, err
	}
	return db.Exec(ctx, tx, sessionEndOthers, person, keep)
}

const sessionFactor = `-- tenancy.SessionFactor
update session set by_factor = true where id = $1`

// SetSessionByFactor records in a session that the second factor was verified.
func SetSessionByFactor(ctx context.Context, tx *db.GateTx, session tenancy.SessionID) error {
	_, err := db.Exec(ctx, tx, sessionFactor, session)
	return err
}

const stepInsert = `-- tenancy.StepInsert
insert into sign_in_step (hash, person_id, purpose, expires_at) values ($1, $2, $3, $4)`

// createStep inserts a sign-in step. hash is the hash of the step's token, which proves that the
// earlier steps have been completed.
func createStep(
	ctx context.Context, tx *db.GateTx, hash []byte, person tenancy.PersonID, purpose tenancy.Step, expires time.Time,
) error {
	_, err := db.Exec(ctx, tx, stepInsert, hash, person, purpose, expires)
	return err
}

const deviceOf = `-- tenancy.DeviceOf
select exists (select from device d join person p on p.id = d.person_id
  where d.hash = $1 and p.email = $2 and d.expires_at > $3)`

// IsDeviceOf reports whether a browser is known to belong to the person with the given email
// address.
func IsDeviceOf(ctx context.Context, d *db.DB, hash []byte, email string, now time.Time) (known bool, err error) {
	err = d.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(deviceOf, hash, email, now).QueryRow(func(row pgx.Row) error { return row.Scan(&known) })
	})
	return known, err
}
