package main

import (
	"cmp"
	"context"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
)

const (
	floorClaim = `update post set state = 'PUBLISHING', phase = 'committing', attempt = attempt + 1, claim_token = $2, claim_holder = $2, claim_round = 1,
		claim_until = now() + interval '1 minute', committing_at = now(), updated_at = now() where id = $1 and state = 'QUEUE'`
	floorFinish = `update post set state = 'PUBLISHED', phase = null, claim_holder = null, claim_until = null, release_id = 'r', release_url = 'u', updated_at = now()
		where id = $1 and claim_token = $2`
)

// floor returns the posts per second of the loop with the best of three numbers of connections.
func (x burst) floor(ctx context.Context, r *rig) (best float64, err error) {
	all, err := x.loops(ctx, r, max(1, x.posts/3), 8, 32, 128)
	for _, l := range all {
		best = max(best, l.rate)
	}
	return best, err
}

// cheapest returns the processor time per post of the loop and Postgres, without calls to a
// platform, for the cheaper of two numbers of connections.
func (x burst) cheapest(ctx context.Context, r *rig) (least float64, connections int, err error) {
	all, err := x.loops(ctx, r, x.posts, 1, 8)
	if err != nil {
		return 0, 0, err
	}
	best := slices.MinFunc(all, func(a, b loopResult) int { return cmp.Compare(a.cpu, b.cpu) })
	return x.per(best.cpu), best.connections, nil
}

// loops runs two UPDATEs by id per post, each in a separate transaction, for each number of
// connections, on the same table and without the service. A channel has at most one post in flight,
// so each part cycles through all channels.
func (x burst) loops(ctx context.Context, r *rig, posts int, connections ...int) (out []loopResult, err error) {
	err = r.withDB(ctx, func(b *testDB) error {
		all, err := b.createTenants(ctx, x.organizations, x.channels)
		if err != nil {
			return err
		}
		ids, err := b.insertPosts(ctx, posts*len(connections), spread(all, now()))
		if err != nil {
			return err
		}
		if err := b.settle(ctx); err != nil {
			return err
		}
		for part := range slices.Chunk(ids, posts) {
			got, err := b.loop(ctx, part, connections[len(out)])
			if err != nil {
				return err
			}
			out = append(out, got)
		}
		return nil
	})
	return out, err
}

// loopResult is the measurement of a loop, without the time to connect.
type loopResult struct {
	connections int
	rate        float64 // posts per second
	cpu         time.Duration
}

func (b *testDB) loop(ctx context.Context, ids []uuid.UUID, connections int) (out loopResult, err error) {
	pool, err := b.pool(ctx, connections)
	if err != nil {
		return out, err
	}
	defer pool.Close()
	if err := prepareAll(ctx, pool, connections); err != nil {
		return out, err
	}
	used := func() time.Duration { return usageOf(os.Getpid()).cpu + treeOf(b.server.PID()) }
	var next atomic.Int64
	var group errgroup.Group
	before, began := used(), now()
	for range connections {
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(ids) {
					return nil
				}
				if err := claimAndFinish(ctx, pool, ids[i]); err != nil {
					return err
				}
			}
		})
	}
	err = group.Wait()
	took := now().Sub(began)
	rate := float64(len(ids)) / max(took, time.Millisecond).Seconds()
	return loopResult{connections: connections, rate: rate, cpu: used() - before}, err
}

// claimAndFinish claims a post and finishes it.
func claimAndFinish(ctx context.Context, pool *pgxpool.Pool, post uuid.UUID) error {
	token := uuid.New()
	if _, err := pool.Exec(ctx, floorClaim, post, token); err != nil {
		return err
	}
	_, err := pool.Exec(ctx, floorFinish, post, token)
	return err
}

// prepareAll opens all connections and prepares the statements on each, so that this is not
// measured.
func prepareAll(ctx context.Context, pool *pgxpool.Pool, connections int) error {
	all := make([]*pgxpool.Conn, 0, connections)
	defer func() {
		for _, c := range all {
			c.Release()
		}
	}()
	for range connections {
		c, err := pool.Acquire(ctx)
		if err != nil {
			return err
		}
		all = append(all, c)
		for _, sql := range []string{floorClaim, floorFinish} {
			if _, err := c.Exec(ctx, sql, uuid.Nil, uuid.Nil); err != nil {
				return err
			}
		}
	}
	return nil
}
