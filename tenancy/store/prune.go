package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/pg"
	"crier/tenancy"
)

// OldSession is an expired session. It is also the position from which FindOldSessions continues.
type OldSession struct {
	// At is the time at which the session expired. It is the first sort key of FindOldSessions, and ID the second.
	At time.Time         `db:"expires_at"`
	ID tenancy.SessionID `db:"id"`
}

const findOldSessions = `-- tenancy.FindOldSessions
select s.expires_at, s.id from session s
where s.expires_at < now() - $1 * interval '1 millisecond' and (s.expires_at, s.id) > ($2::timestamptz, $3::uuid)
order by s.expires_at, s.id limit $4`

// FindOldSessions returns at most limit sessions that expired longer than age ago, the oldest first, starting behind
// the session after. The zero OldSession starts at the oldest. It returns the error of Postgres.
func (s *Store) FindOldSessions(
	ctx context.Context, age time.Duration, after OldSession, limit int,
) (out []OldSession, err error) {
	err = s.db.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		q := b.Queue(findOldSessions, age.Milliseconds(), after.At, after.ID.UUID(), limit)
		q.Query(func(rows pgx.Rows) (err error) {
			out, err = pgx.CollectRows(rows, pgx.RowToStructByName[OldSession])
			return err
		})
	})
	return out, err
}

const pruneSessions = `-- tenancy.PruneSessions
with old as (
  select s.id from unnest($1::uuid[]) u(id) join session s on s.id = u.id
  where s.expires_at < now() - $2 * interval '1 millisecond' order by s.id for update of s skip locked
)
delete from session s using old where s.id = old.id`

// PruneSessions deletes those of the sessions that expired longer than age ago, in one statement, and returns their
// number. It skips sessions that another transaction has locked. It returns the error of Postgres, after which none is
// deleted.
func (s *Store) PruneSessions(ctx context.Context, age time.Duration, sessions []OldSession) (n int, err error) {
	ids := make([][16]byte, len(sessions))
	for i, x := range sessions {
		ids[i] = x.ID.UUID()
	}
	err = s.db.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(pruneSessions, ids, age.Milliseconds()).Exec(func(tag pgconn.CommandTag) error {
			n = int(tag.RowsAffected())
			return nil
		})
	})
	return n, err
}
