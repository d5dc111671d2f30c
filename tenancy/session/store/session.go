// Package store reads and writes sessions and impersonations. Only tenancy/session uses it.
package store

import (
	"context"
	"time"

	"crier/tenancy"
	"crier/tenancy/db"
)

const sessionLock = `-- tenancy.SessionLock
select s.id, s.person_id, p.email from session s join person p on p.id = s.person_id where s.hash = $1 for update of s`

// LockSession finds the session whose token has the given hash and locks it until the end of the
// transaction. The session need not be live. LockSession returns the session's id, and the id and
// email address of the session's person. It returns pgx.ErrNoRows if the session does not exist.
func LockSession(ctx context.Context, tx *db.GateTx, hash []byte) (
	session tenancy.SessionID, person tenancy.Person, err error) {
	err = tx.QueryRow(ctx, sessionLock, hash).Scan(&session, &person.ID, &person.Email)
	return session, person, err
}

const sessionList = `-- tenancy.SessionList
select id, created_at, seen_at, expires_at, address, agent from session
where person_id = $1 and expires_at > $2 and seen_at > $3 order by created_at desc, id desc limit 1000`

// ListSessions returns up to 1,000 live sessions of a person, newest first.
func ListSessions(
	ctx context.Context, tx *db.GateTx, person tenancy.PersonID, now time.Time,
) ([]tenancy.SessionInfo, error) {
	return db.List[tenancy.SessionInfo](ctx, tx, sessionList, person, now, now.Add(-tenancy.SessionIdle))
}

const sessionEnd = `-- tenancy.SessionEnd
delete from session where person_id = $1 and id = $2`

// EndSession deletes one of a person's sessions. It returns pgx.ErrNoRows if there is no such
// session.
func EndSession(ctx context.Context, tx *db.GateTx, person tenancy.PersonID, session tenancy.SessionID) error {
	return db.Change(ctx, tx, sessionEnd, person, session)
}
