package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/failpoint"
)

const (
	refuseFor = 6 * time.Second // shorter than a claim lasts, so the outcome is refused
	brokenFor = 8 * time.Second
	grantGone = 10 * time.Second
	storeWait = 15 * time.Second // for outcomes that could not be stored during the fault
	panicWait = 15 * time.Second // for the end of a post on which the connector panics
)

// refuseRow makes Postgres refuse the final update of one post, with an unusual error or with the
// error of a check constraint, or makes a channel's queue row contradict its posts.
func (t *traffic) refuseRow(ctx context.Context, s fault) error {
	if s.Nth%3 == 2 {
		return t.breakQueue(ctx, s)
	}
	state := []string{"P0001", "23514"}[s.Nth%3]
	return t.runWithProbes(ctx, refusedRow, 300*time.Millisecond, refuseFor, func(start time.Time) []booking {
		return []booking{t.plan(refusedRow, t.drillChannel(s), start.Add(300*time.Millisecond), "whose end is refused")}
	}, func(start time.Time, aimed []booking) error {
		err := t.exec(ctx, "create sequence crash_refused",
			fmt.Sprintf(`create function crash_refuse() returns trigger language plpgsql security definer set search_path = public, pg_temp as $$
				begin perform nextval('crash_refused'); raise exception 'a test refuses this' using errcode = '%s'; end $$`, state),
			fmt.Sprintf(`create trigger crash_refuse before update on post for each row
				when (new.id = '%s' and new.state not in ('QUEUE', 'PUBLISHING')) execute function crash_refuse()`, t.id(aimed[0].N)))
		if err != nil {
			return err
		}
		pause(ctx, time.Until(start.Add(refuseFor)))
		var refused bool
		err = t.value(ctx, &refused, "select is_called from crash_refused")
		if err == nil && refused {
			err = t.hit(refusedRow)
		}
		return errors.Join(err, t.exec(ctx, "drop trigger crash_refuse on post", "drop function crash_refuse",
			"drop sequence crash_refused"))
	})
}

// breakQueue clears a channel's busy post while that post is being sent, and while the response and
// all reads of the post hang. The next claim then violates the index that allows one post per
// channel.
func (t *traffic) breakQueue(ctx context.Context, s fault) error {
	c, beside := t.drillChannel(s), t.drillChannels[refusedRow][(s.Nth+1)%len(t.drillChannels[refusedRow])]
	account := t.channels[c].account
	err := errors.Join(t.drillPlatform.fault(ctx, account, m{"match": posting(), "action": "hold_answer"}),
		t.drillPlatform.fault(ctx, account, m{"match": m{"method": "GET"}, "action": "hold", "times": always}))
	if err != nil {
		return err
	}
	err = t.runWithProbes(ctx, refusedRow, time.Second, brokenFor, func(start time.Time) []booking {
		return []booking{t.plan(refusedRow, c, start, "on a channel that is freed by hand"),
			t.plan(refusedRow, c, start.Add(time.Second), "that comes after it"),
			t.plan(probe, beside, start.Add(2*time.Second), "on another channel of the same organization")}
	}, func(start time.Time, aimed []booking) error {
		claimed, err := t.until(ctx, start.Add(time.Second), aimed[:1], "state in ('PUBLISHING', 'UNKNOWN')")
		if err == nil && claimed {
			err = errors.Join(t.hit(refusedRow), t.exec(ctx,
				fmt.Sprintf("update channel_queue set busy_post = null where channel_id = '%s'", t.channels[c].id)))
		}
		pause(ctx, time.Until(start.Add(brokenFor)))
		return errors.Join(err, t.drillPlatform.judge().Clear(ctx, account))
	})
	if err != nil {
		return err
	}
	return t.repair(ctx, c)
}

// repair releases a channel that the service parked, as an operator would, once none of its posts
// is being sent.
func (t *traffic) repair(ctx context.Context, channel int) error {
	const idle = `update channel_queue q set parked = false, busy_post = null where q.channel_id = $1
		and not exists (select from post p where p.channel_id = q.channel_id and p.state in ('PUBLISHING', 'UNKNOWN'))`
	end := time.Now().Add(t.s.Window)
	for ; time.Now().Before(end) && ctx.Err() == nil; pause(ctx, 200*time.Millisecond) {
		var done int64
		err := t.query(ctx, func(c *pgx.Conn) error {
			tag, err := c.Exec(ctx, idle, t.channels[channel].id)
			done = tag.RowsAffected()
			return err
		})
		if err != nil || done > 0 {
			return err
		}
	}
	return ctx.Err()
}

// grantedColumns returns the columns of a table that the scheduler may update, as a list in
// parentheses, or "" for the whole table.
const grantedColumns = `select case when has_table_privilege('crier_clock', $1::text, 'update') then '' else
	(select '(' || string_agg(quote_ident(a.attname), ', ') || ')' from pg_attribute a
	 where a.attrelid = $1::regclass and a.attnum > 0 and not a.attisdropped and has_column_privilege('crier_clock', a.attrelid, a.attnum, 'update')) end`

// revokeGrant revokes the scheduler's right to update a table while calls are in progress, and
// later grants it again.
func (t *traffic) revokeGrant(ctx context.Context, s fault) error {
	if _, err := t.awaitRecovery(ctx); err != nil {
		return err
	}
	table := []string{"publication", "post"}[s.Nth%2]
	var all []booking
	due := time.Now().Add(bookingTime(len(t.drillChannels[noGrant])))
	for _, c := range t.drillChannels[noGrant] {
		if err := t.drillPlatform.fault(ctx, t.channels[c].account,
			m{"match": posting(), "action": "slow", "ms": 2500, "times": 1}); err != nil {
			return err
		}
		all = append(all, t.plan(noGrant, c, due, "without a grant"))
	}
	if err := t.bookAll(ctx, all); err != nil {
		return err
	}
	if _, err := t.until(ctx, due.Add(time.Second), all, "phase = 'committing'"); err != nil {
		return err
	}
	var columns string
	if err := t.value(ctx, &columns, grantedColumns, table); err != nil {
		return err
	}
	if err := t.exec(ctx, "revoke update on "+table+" from crier_clock"); err != nil {
		return err
	}
	caught, err := t.countWhere(ctx, all, "phase = 'committing'")
	if err == nil && caught > 0 {
		err = t.hit(noGrant)
	}
	pause(ctx, grantGone)
	if err := errors.Join(err, t.exec(ctx, "grant update "+columns+" on "+table+" to crier_clock")); err != nil {
		return err
	}
	// A kill before that would lose the known outcomes.
	_, err = t.until(ctx, time.Now().Add(storeWait), all, published)
	return err
}

// panicInConnector books a post on which the connector panics after or before its call. If the post
// has not ended after panicWait, it is ended in the database, because otherwise it would crash one
// process after another.
func (t *traffic) panicInConnector(ctx context.Context, s fault) error {
	point := []string{failpoint.Committed, failpoint.Preparing}[s.Nth%2]
	kind := map[string]string{failpoint.Committed: panics, failpoint.Preparing: panicsUnsent}[point]
	b := t.plan(kind, t.drillChannel(s), time.Now().Add(1500*time.Millisecond), "with a panic at "+point)
	if err := errors.Join(t.create(ctx, b), t.hit(panics)); err != nil {
		return err
	}
	over, err := t.until(ctx, time.Now().Add(panicWait), []booking{b}, hasEnded)
	if err != nil || over {
		return err
	}
	return errors.Join(t.ledger.write(line{Do: doStuck, Post: b.N, Note: "its connector panics"}),
		t.exec(ctx, fmt.Sprintf(`update post
			set state = 'ERROR', error = 'taken out by a test', error_code = 'rejected' where id = '%s'`, t.id(b.N)),
			fmt.Sprintf("update channel_queue set busy_post = null where busy_post = '%s'", t.id(b.N))))
}
