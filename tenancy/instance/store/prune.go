package store

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
)

// FindOldSessions returns at most limit sessions that expired more than age ago, oldest first. The
// results start after the given session. The zero OldSession precedes all sessions.
func FindOldSessions(
	ctx context.Context, d *db.DB, age time.Duration, after OldSession, limit int,
) (out []OldSession, err error) {
	err = d.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		q := b.Queue(findOldSessions, age.Milliseconds(), after.At, after.ID.UUID(), limit)
		q.Query(func(rows pgx.Rows) (err error) {
			out, err = pgx.CollectRows(rows, pgx.RowToStructByName[OldSession])
			return err
		})
	})
	return out, err
}

// PruneSessions deletes the given sessions that expired more than age ago, all in one statement. It
// returns the number of deleted sessions. It skips sessions that another transaction has locked. If
// it returns an error, no sessions have been deleted.
func PruneSessions(ctx context.Context, d *db.DB, age time.Duration, sessions []OldSession) (n int, err error) {
	ids := make([][16]byte, len(sessions))
	for i, x := range sessions {
		ids[i] = x.ID.UUID()
	}
	err = d.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(pruneSessions, ids, age.Milliseconds()).Exec(db.Written(&n))
	})
	return n, err
}

// FindExpired returns at most limit expired rows of a kind, oldest first. The results start after
// the given row. The zero ExpiredRow precedes all rows.
func FindExpired(
	ctx context.Context, d *db.DB, kind Expirable, now time.Time, after ExpiredRow, limit int,
) (rows []ExpiredRow, err error) {
	err = d.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		q := b.Queue(expirables[kind].find, kind.until(now), after.At, after.Key, limit)
		q.Query(func(found pgx.Rows) (err error) {
			rows, err = pgx.CollectRows(found, pgx.RowToStructByName[ExpiredRow])
			return err
		})
	})
	return rows, err
}

// PruneExpired deletes the given rows that are still expired, all in one statement. It returns the
// number of deleted rows. If Postgres rejects one row, PruneExpired deletes no rows and returns the
// error; see batch.Sweep.
func PruneExpired(ctx context.Context, d *db.DB, kind Expirable, now time.Time, rows []ExpiredRow) (n int, err error) {
	keys, of := make([]string, len(rows)), make([]*uuid.UUID, len(rows))
	for i, r := range rows {
		keys[i], of[i] = r.Key, r.Of
	}
	args := []any{kind.until(now), keys}
	if kind == ExpiredInvitations {
		args = append(args, of)
	}
	err = d.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(expirables[kind].prune, args...).Exec(db.Written(&n))
	})
	return n, err
}

// OldSession identifies an expired session. It is also the position from which FindOldSessions
// continues.
type OldSession struct {
	// At is when the session expired. FindOldSessions sorts by At, and then by ID.
	At time.Time         `db:"expires_at"`
	ID tenancy.SessionID `db:"id"`
}

const findOldSessions = `-- tenancy.FindOldSessions
select s.expires_at, s.id from session s
where s.expires_at < now() - $1 * interval '1 millisecond' and (s.expires_at, s.id) > ($2::timestamptz, $3::uuid)
order by s.expires_at, s.id limit $4`

const pruneSessions = `-- tenancy.PruneSessions
with old as (
  select s.id from unnest($1::uuid[]) u(id) join session s on s.id = u.id
  where s.expires_at < now() - $2 * interval '1 millisecond' order by s.id for update of s skip locked
)
delete from session s using old where s.id = old.id`

// Expirable is a kind of row that is deleted after it has expired. FindExpired finds these rows,
// and PruneExpired deletes them.
type Expirable string

// The kinds of rows that expire. Emails expire a week after they were queued.
const (
	ExpiredDevices       Expirable = "devices"
	ExpiredConfirmations Expirable = "confirmations"
	ExpiredSteps         Expirable = "sign-in-steps"
	ExpiredStates        Expirable = "sign-in-states"
	ExpiredClaims        Expirable = "identity-claims"
	ExpiredRequests      Expirable = "used-requests"
	ExpiredMails         Expirable = "mails"
	ExpiredInvitations   Expirable = "invitations"
)

// Expirables returns all kinds.
func Expirables() []Expirable { return slices.Sorted(maps.Keys(expirables)) }

// ExpiredRow identifies an expired row. It is also the position from which FindExpired continues.
type ExpiredRow struct {
	At time.Time `db:"at"`
	// Key is the row's id or hash as text. Of is the id of the row's organization, or nil if the
	// row has none.
	Key string     `db:"key"`
	Of  *uuid.UUID `db:"of"`
}

// expirable holds the statements that find and prune one kind of row.
type expirable struct{ find, prune string }

// byHash and byID return the statements for a table that has a hash or an id as its key. The find
// statements read rows in index order.
func byHash(name, table string) expirable {
	return expirable{
		find: `-- tenancy.FindExpired` + name + `
select expires_at as at, encode(hash, 'hex') as key, null::uuid as of from ` + table + `
where expires_at < $1 and (expires_at, encode(hash, 'hex')) > ($2::timestamptz, $3::text)
order by expires_at, encode(hash, 'hex') limit $4`,
		prune: `-- tenancy.PruneExpired` + name + `
delete from ` + table + ` where expires_at < $1
  and hash = any (array(select decode(u.key, 'hex') from unnest($2::text[]) u(key)))`,
	}
}

func byID(name, table, at string) expirable {
	return expirable{
		find: `-- tenancy.FindExpired` + name + `
select ` + at + ` as at, id::text as key, null::uuid as of from ` + table + `
where ` + at + ` < $1 and (` + at + `, id) > ($2::timestamptz, ` + keyAsID + `)
order by ` + at + `, id limit $4`,
		prune: `-- tenancy.PruneExpired` + name + `
delete from ` + table + ` where ` + at + ` < $1 and id = any ($2::text[]::uuid[])`,
	}
}

const keyAsID = `coalesce(nullif($3::text, ''), '00000000-0000-0000-0000-000000000000')::uuid`

var expirables = map[Expirable]expirable{
	ExpiredDevices:       byHash("Devices", "device"),
	ExpiredSteps:         byHash("Steps", "sign_in_step"),
	ExpiredStates:        byHash("States", "sign_in_state"),
	ExpiredClaims:        byHash("Claims", "identity_claim"),
	ExpiredConfirmations: byID("Confirmations", "confirmation", "expires_at"),
	ExpiredMails:         byID("Mails", "mail", "created_at"),
	ExpiredRequests: {
		find: `-- tenancy.FindExpiredRequests
select expires_at as at, id as key, null::uuid as of from used_request
where expires_at < $1 and (expires_at, id || '') > ($2::timestamptz, $3::text)
order by expires_at, id || '' limit $4`,
		prune: `-- tenancy.PruneExpiredRequests
delete from used_request where expires_at < $1 and id = any ($2::text[])`,
	},
	ExpiredInvitations: {
		find: `-- tenancy.FindExpiredInvitations
select expires_at as at, id::text as key, org_id as of from invitation
where expires_at < least($1, now()) and (expires_at, id) > ($2::timestamptz, ` + keyAsID + `)
order by expires_at, id limit $4`,
		prune: `-- tenancy.PruneExpiredInvitations
delete from invitation i using unnest($2::text[]::uuid[], $3::uuid[]) u(id, org)
where i.org_id = u.org and i.id = u.id and i.expires_at < least($1, now())`,
	},
}

// mailAge is how long an email is kept.
const mailAge = 7 * 24 * time.Hour

// until returns the cutoff for rows of this kind. Rows with an earlier time have expired.
func (k Expirable) until(now time.Time) time.Time {
	if k == ExpiredMails {
		return now.Add(-mailAge)
	}
	return now
}
