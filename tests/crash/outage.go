package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/tests/faultnet"
)

const (
	staleAge   = 25 * time.Hour // longer than MAX_LATENESS
	stalePosts = 4000           // more than several sweeps expire together
	staleWords = "that is too old"
)

// writeStale inserts posts that have been due for longer than MAX_LATENESS, spread over the
// channels of one organization.
const writeStale = `
with fresh as materialized (
  select n, gen_random_uuid() as id, q.org_id, q.channel_id, q.shard, now() - $1 * interval '1 second' + (n - $2) * interval '1 millisecond' as due
  from generate_series($2::int, $3::int) n join (select *, row_number() over (order by channel_id) - 1 as turn from channel_queue where channel_id = any($4::text[]::uuid[])) q
  on q.turn = n % cardinality($4::text[])
), posts as (
  insert into post (org_id, id, group_id, channel_id, shard, state, due, publish_date) select org_id, id, id, channel_id, shard, 'QUEUE', due, due from fresh
), parts as (
  insert into part (org_id, id, post_id, position, content) select org_id, gen_random_uuid(), id, 0, 'post ' || n || ' ` + staleWords + `' from fresh
)
select n, id::text, channel_id::text, due from fresh`

// outlastMaxLate stops all nodes and starts them again when many posts are past MAX_LATENESS. The
// posts are inserted with old due times, so the run does not have to wait.
func (t *traffic) outlastMaxLate(ctx context.Context) error {
	for _, n := range t.nodes {
		if err := n.kill(); err != nil {
			return err
		}
	}
	accounts, channels := map[string]string{}, []string{}
	for _, c := range t.drillChannels[lateOutage] {
		channels = append(channels, t.channels[c].id)
		accounts[t.channels[c].id] = t.channels[c].account
	}
	numbers := t.newNumbers(stalePosts)
	lines, err := t.lines(ctx, func(row pgx.CollectableRow) (line, error) {
		l := line{Do: doStale, Fault: lateOutage}
		channel := ""
		err := row.Scan(&l.Post, &l.ID, &channel, &l.Due)
		l.Account, l.Text = accounts[channel], fmt.Sprintf("post %d %s", l.Post, staleWords)
		t.stale[l.ID] = l.Post
		return l, err
	}, writeStale, staleAge.Seconds(), numbers[0], numbers[stalePosts-1], channels)
	if err := errors.Join(err, t.ledger.write(lines...)); err != nil {
		return err
	}
	for _, n := range t.nodes {
		if err := n.start(ctx, 0); err != nil {
			return err
		}
	}
	return t.hit(lateOutage)
}

// settleStale waits until the posts past MAX_LATENESS have ended, and writes their states to the
// ledger.
func (t *traffic) settleStale(ctx context.Context) error {
	ids := slices.Collect(maps.Keys(t.stale))
	for end := time.Now().Add(settleLimit); ; pause(ctx, time.Second) {
		lines, err := t.lines(ctx, func(row pgx.CollectableRow) (line, error) {
			l := line{Do: doRead}
			err := row.Scan(&l.ID, &l.State, &l.Code)
			l.Post = t.stale[l.ID]
			return l, err
		}, "select id::text, state, coalesce(error_code, '') from post where id = any($1::text[]::uuid[])", ids)
		if err != nil {
			return err
		}
		open := slices.ContainsFunc(lines, func(l line) bool { return l.State != "PUBLISHED" && l.State != "ERROR" })
		if !open || time.Now().After(end) || ctx.Err() != nil {
			return errors.Join(ctx.Err(), t.ledger.write(lines...))
		}
	}
}

const (
	holes   = 12 // number of times that open connections are cut off in the middle of work
	holeGap = 250 * time.Millisecond
	// In every other black hole, new connections get no response for this long either.
	deafFor = 5 * time.Second
	// The time from the last abandoned connection until everything works again: every statement has
	// a deadline.
	recoverTime = 30 * time.Second
	doubtLimit  = 25 * time.Second // for the reconciliation of a lost response
)

// blackHole repeatedly silences open connections to Postgres in the middle of work. Then it checks
// that the service recovers: probe posts are published in time, and a lost response, which only the
// sweep finds, is reconciled.
func (t *traffic) blackHole(ctx context.Context, s fault) error {
	// Outcomes left unknown by earlier faults come first, because the black hole takes up most of
	// the time in which they can be reconciled.
	end := time.Now().Add(t.s.Window)
	for ; time.Now().Before(end) && ctx.Err() == nil; pause(ctx, 200*time.Millisecond) {
		var unknown int
		if err := t.value(ctx, &unknown, "select count(*) from post where state = 'UNKNOWN'"); err != nil {
			return err
		}
		if unknown == 0 {
			break
		}
	}
	start := time.Now().Add(bookingTime(holes * len(t.drillChannels[probe])))
	var burst []booking
	for i := range holes {
		for _, c := range t.drillChannels[probe] {
			burst = append(burst, t.plan(probe, c, start.Add(time.Duration(i)*holeGap), "in a black hole"))
		}
	}
	if err := t.bookAll(ctx, burst); err != nil {
		return err
	}
	swallowed := 0
	for i := range holes {
		pause(ctx, time.Until(start.Add(time.Duration(i)*holeGap+holeGap/2)))
		swallowed += t.postgresProxy.Set(faultnet.Abandon)
		if i < holes-1 || s.Nth%2 == 0 {
			t.postgresProxy.Set(faultnet.Pass)
		}
	}
	if swallowed > 0 {
		if err := t.hit(blackHole); err != nil {
			return err
		}
	}
	pause(ctx, deafFor)
	t.postgresProxy.Set(faultnet.Pass)
	pause(ctx, recoverTime-bookingTime(3*len(t.drillChannels[probe])))
	return t.recovered(ctx)
}

// recovered books posts whose responses are lost, beside probe posts. It records the posts that do
// not end in time.
func (t *traffic) recovered(ctx context.Context) error {
	var lost []booking
	for _, c := range t.drillChannels[blackHole] {
		if err := t.drillPlatform.fault(ctx, t.channels[c].account,
			m{"match": posting(), "action": "drop_answer"}); err != nil {
			return err
		}
	}
	return t.runWithProbes(ctx, blackHole, 0, 3*probeEvery, func(start time.Time) []booking {
		for _, c := range t.drillChannels[blackHole] {
			lost = append(lost, t.plan(blackHole, c, start, "whose answer is lost after a black hole"))
		}
		return lost
	}, func(start time.Time, _ []booking) error {
		if ok, err := t.until(ctx, start.Add(doubtLimit), lost, published); err != nil || ok {
			return err
		}
		for _, b := range lost {
			n, err := t.countWhere(ctx, []booking{b}, published)
			if err != nil {
				return err
			}
			if n > 0 {
				continue
			}
			if err := t.ledger.write(line{Do: doStuck, Post: b.N, Note: "after a black hole"}); err != nil {
				return err
			}
		}
		return nil
	})
}
