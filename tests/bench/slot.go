package main

import (
	"context"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	slotOrgs  = 10
	slotPosts = 2000 // already scheduled, on one channel of each organization
	// slotStep is the interval between the posting times of a channel.
	slotStep = 15 * time.Minute
)

// findingSlots measures find-slot on channels whose next 2,000 posting times are taken. Each call
// holds one more time. Its floor is the statements that any such call needs, in one transaction
// with the same number of connections: the plan, the posts of the next 32 days, and one row for the
// hold.
func findingSlots(ctx context.Context, r *rig) error {
	return r.serving(ctx, func(b *testDB, n *node, all []tenant) error {
		all = all[:slotOrgs]
		from := now().Truncate(slotStep)
		for i := range all {
			if _, err := b.insertPosts(ctx, slotPosts, func(j int) booking {
				return booking{tenant: &all[i], due: from.Add(time.Duration(j+1) * slotStep)}
			}); err != nil {
				return err
			}
		}
		if _, err := b.super.Exec(ctx, `update channel set queue_plan = (
			select jsonb_agg(jsonb_build_object('minute', m, 'days', 127)) from generate_series(0, 1425, 15) m)`); err != nil {
			return err
		}
		if err := b.settle(ctx); err != nil {
			return err
		}
		span := time.Duration(r.opts.seconds) * time.Second / 6
		for _, users := range []int{1, 8} {
			c := newClient(n, users)
			line, err := b.requests(ctx, n, users, span, func(i int) error {
				t := all[i%len(all)]
				return c.call(ctx, t.key, http.MethodGet, "/find-slot/"+t.channels[0].String(), nil, http.StatusOK)
			}, func() (load, error) { return b.holding(ctx, users, span, all) })
			if err != nil {
				return err
			}
			line["bench"], line["postsAhead"] = "find-slot", slotPosts
			if err := r.emit(line); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *testDB) holding(ctx context.Context, users int, span time.Duration, all []tenant) (load, error) {
	pool, err := b.pool(ctx, users)
	if err != nil {
		return load{}, err
	}
	defer pool.Close()
	return drive(users, untilOver(span), func(i int) error {
		t := all[i%len(all)]
		org, channel := t.org.UUID(), t.channels[0]
		batch := &pgx.Batch{}
		batch.Queue(`select timezone, queue_plan from channel where org_id = $1 and id = $2`, org, channel)
		batch.Queue(`select publish_date from post where org_id = $1 and channel_id = $2 and deleted_at is null
			and state <> 'ERROR' and publish_date between now() and now() + interval '32 days'`, org, channel)
		batch.Queue(`insert into slot_hold (org_id, subject, at, expires_at)
			values ($1, gen_random_uuid(), now(), now() + interval '2 minutes')`, org)
		return pool.SendBatch(ctx, batch).Close()
	})
}
