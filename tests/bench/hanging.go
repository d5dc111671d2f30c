package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/tests/faultnet"
)

const (
	hangingOrganizations = 256
	// Each organization has as many channels as it may have posts in flight. Together the
	// organizations have as many as a process may have.
	hangingChannels = 8
	hangingLead     = time.Second
	hangingGoal     = time.Second // the goal for the lateness of single posts
)

// hanging measures how late single posts are published while many other organizations have posts
// due on servers that accept connections and never respond. It runs with one server and with four.
// Its floor is the same posts without the other organizations.
func hanging(ctx context.Context, r *rig) error {
	floor, err := hangingRun{}.run(ctx, r)
	if err != nil {
		return err
	}
	for _, servers := range []int{1, 4} {
		ours, err := hangingRun{servers: servers}.run(ctx, r)
		if err != nil {
			return err
		}
		worst := quantile(ours.late, 1)
		if err := r.emit(m{
			"bench": "hanging", "unit": "ms of the latest single post", "servers": servers,
			"organizations": hangingOrganizations, "hangingPosts": hangingOrganizations * hangingChannels,
			"hangingCalls": ours.calls, "singles": len(ours.late), "ours": ms(worst),
			"floor": ms(quantile(floor.late, 1)), "ratio": ms(worst) / ms(quantile(floor.late, 1)),
			"p50Ms": ms(quantile(ours.late, .5)), "floorP50Ms": ms(quantile(floor.late, .5)),
			"goalMs": ms(hangingGoal), "goalMet": worst <= hangingGoal,
			"twice": ours.twice, "outOfOrder": ours.outOfOrder,
		}); err != nil {
			return err
		}
	}
	return nil
}

// hangingRun publishes single posts while a number of servers hang.
type hangingRun struct{ servers int }

// singles is the measurement of single posts.
type singles struct {
	late []time.Duration
	// calls is the number of connections that the hanging servers had accepted when the single
	// posts were published.
	calls             int
	twice, outOfOrder int
}

func (x hangingRun) run(ctx context.Context, r *rig) (out singles, err error) {
	err = r.withDB(ctx, func(b *testDB) (err error) {
		var silent []*faultnet.Proxy
		addresses := []string{}
		for i := range x.servers {
			s, err := faultnet.Listen(fmt.Sprintf("127.0.0.%d:0", i+2), "")
			if err != nil {
				return err
			}
			defer func() { _ = s.Close() }() // closed below unless something failed
			s.Set(faultnet.Swallow)
			silent, addresses = append(silent, s), append(addresses, s.Address)
		}
		due := now().Add(ahead + 10*time.Second).Truncate(time.Second)
		few, err := x.fill(ctx, b, due, addresses)
		if err != nil {
			return err
		}
		b.platform.begin(0)
		n, err := b.serve(ctx, append(slices.Clone(b.opts.settings), "OUTBOUND_ALLOW="+strings.Join(addresses, ","))...)
		if err != nil {
			return err
		}
		defer func() {
			for _, s := range silent {
				// Stopping the service would otherwise wait for its calls to this server.
				err = errors.Join(err, s.Close())
			}
			err = errors.Join(err, n.stop())
		}()
		if err := untilDue(ctx, due); err != nil {
			return err
		}
		if err := b.awaitPosts(ctx, lonely, lonely); err != nil {
			return err
		}
		for _, s := range silent {
			out.calls += s.Accepted()
		}
		s := b.platform.end()
		out.late, out.twice, out.outOfOrder = s.latest(few), s.twice, s.outOfOrder
		return nil
	})
	return out, err
}

// fill inserts all posts. Posts to the hanging servers are due first. The channels of the few come
// before the channels of the other organizations.
func (x hangingRun) fill(ctx context.Context, b *testDB, due time.Time, addresses []string) ([]tenant, error) {
	few, err := b.createTenants(ctx, lonely, 1)
	if err != nil {
		return nil, err
	}
	if err := b.bookSingles(ctx, few, due.Add(hangingLead)); err != nil {
		return nil, err
	}
	if len(addresses) > 0 {
		many, err := b.createTenants(ctx, hangingOrganizations, hangingChannels)
		if err != nil {
			return nil, err
		}
		if err := b.moveChannels(ctx, many, addresses); err != nil {
			return nil, err
		}
		if _, err := b.insertPosts(ctx, hangingOrganizations*hangingChannels, spread(many, due)); err != nil {
			return nil, err
		}
	}
	return few, b.settle(ctx)
}

// moveChannels distributes the channels over the servers with the given addresses.
func (b *testDB) moveChannels(ctx context.Context, all []tenant, addresses []string) error {
	batch := &pgx.Batch{}
	for _, t := range all {
		for i, c := range t.channels {
			sealed, err := b.credential(t.org, "http://"+addresses[i%len(addresses)], t.first+i)
			if err != nil {
				return err
			}
			batch.Queue("update channel set credential = $1 where id = $2", sealed, c)
			batch.Queue("update channel_queue set destination = $1 where channel_id = $2",
				addresses[i%len(addresses)], c)
		}
	}
	return b.super.SendBatch(ctx, batch).Close()
}
