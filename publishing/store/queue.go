package store

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/tenancy"
)

// ClaimRules is what every claim of a process has in common.
type ClaimRules struct {
	Hold    time.Duration // how long the claim lasts unless it is renewed
	MaxLate time.Duration // a post that is later than this is not claimed
	Window  int           // how many channels of one organization one claim looks at
	Node    string        // name of the process in timelines
}

//go:embed sql/claim.sql
var claim string

// Claim takes due posts, at most one a channel, and returns when each organization has more. A stale lease takes
// nothing. number identifies this statement among those of the process: see GiveBack.
func (s *Store) Claim(ctx context.Context, l publishing.Lease, wants []publishing.Want, limits publishing.ClaimLimits, number int64, rules ClaimRules) (r publishing.ClaimResult, err error) {
	orgs, permits, after := columns(wants)
	names, most, spent := platformLimits(limits)
	err = s.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		r = publishing.NewClaimResult()
		b.Queue(claim, l.Shards, l.Holder, orgs, permits, after, rules.Window, rules.MaxLate.Milliseconds(), append(spent, fullDestinations(limits)...),
			number, rules.Hold.Milliseconds(), rules.Node, names, most, limits.Busy, int64(limits.Free)).Query(func(rows pgx.Rows) error { return readClaims(rows, &r) })
	})
	return r, err
}

func columns(wants []publishing.Want) (orgs [][16]byte, permits []int32, after [][16]byte) {
	orgs, permits, after = make([][16]byte, len(wants)), make([]int32, len(wants)), make([][16]byte, len(wants))
	for i, w := range wants {
		orgs[i], permits[i], after[i] = w.Org.UUID(), int32(w.Permits), w.After.UUID()
	}
	return orgs, permits, after
}

// readClaims adds to r the claimed posts and, from the rows without a post, what each organization has left.
func readClaims(rows pgx.Rows, r *publishing.ClaimResult) error {
	defer rows.Close()
	for rows.Next() {
		var c publishing.Claimed
		var name, place *string
		var attempt *int
		var at *time.Time
		var held []string
		if err := rows.Scan(&c.Org, &c.Post, &c.Channel, &name, &place, &c.Token, &attempt, &c.Due, &at, &held); err != nil {
			return err
		}
		if !c.Post.IsZero() {
			c.Connector, c.Destination, c.Attempt = *name, *place, *attempt
			r.Claimed = append(r.Claimed, c)
			continue
		}
		if r.Now = c.Due; at != nil {
			r.Next[c.Org] = *at
		}
		if !c.Channel.IsZero() {
			r.More[c.Org] = c.Channel
		}
		if len(held) > 0 {
			r.AtLimit[c.Org] = held
		}
	}
	return rows.Err()
}

// platformLimits returns the platforms with their limits, and those that are at their limit.
func platformLimits(l publishing.ClaimLimits) (names []string, most []int32, spent []string) {
	names, most, spent = []string{}, []int32{}, []string{}
	for name, n := range l.Platforms {
		names, most = append(names, name), append(most, int32(n))
		if n <= 0 {
			spent = append(spent, name)
		}
	}
	return names, most, spent
}

// fullDestinations returns the destinations that get no more permits.
func fullDestinations(l publishing.ClaimLimits) (out []string) {
	for name, n := range l.Busy {
		if n >= l.Free {
			out = append(out, name)
		}
	}
	return out
}

//go:embed sql/sweep.sql
var sweep string

//go:embed sql/sweep_channels.sql
var sweepChannels string

// sweepPosts is how many due posts a sweep reads before it goes by channels instead: one organization may schedule any
// number for one moment. On 100,000 channels, 500,000 due posts take 0.6 seconds, 2,000,000 took 2 to 3, and to go by
// channels takes 0.3, also when nothing is due.
const sweepPosts = 500_000

// Sweep finds every organization of the lease with something due within the horizon, and not too late, on a channel
// that is free.
func (s *Store) Sweep(ctx context.Context, l publishing.Lease, horizon, maxLate time.Duration) (next map[tenancy.OrgID]time.Time, now time.Time, err error) {
	return s.sweep(ctx, l, horizon, maxLate, sweepPosts)
}

// sweep goes by channels when as many posts as most are due.
func (s *Store) sweep(
	ctx context.Context, l publishing.Lease, horizon, maxLate time.Duration, most int64,
) (next map[tenancy.OrgID]time.Time, now time.Time, err error) {
	next, now, read, err := s.sweepBy(ctx, sweep, l, horizon, maxLate, most)
	if err != nil || read < most {
		return next, now, err
	}
	next, now, _, err = s.sweepBy(ctx, sweepChannels, l, horizon, maxLate, most)
	return next, now, err
}

// sweepBy carries out one of the statements; read is how many due posts it has read.
func (s *Store) sweepBy(
	ctx context.Context, sql string, l publishing.Lease, horizon, maxLate time.Duration, most int64,
) (next map[tenancy.OrgID]time.Time, now time.Time, read int64, err error) {
	err = s.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		next, read = map[tenancy.OrgID]time.Time{}, 0
		var org tenancy.OrgID
		var at *time.Time
		var posts int64
		b.Queue(sql, l.Shards, l.Holder, horizon.Milliseconds(), maxLate.Milliseconds(), most).Query(func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&org, &at, &now, &posts}, func() error {
				if read += posts; at != nil {
					next[org] = *at
				}
				return nil
			})
			return err
		})
	})
	return next, now, read, err
}
