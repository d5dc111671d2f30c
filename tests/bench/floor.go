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

// floor is how many posts a second the loop does with the best of three numbers of connections.
func (x burst) floor(ctx context.Context, r *rig) (best float64, err error) {
	all, err := x.loops(ctx, r, max(1, x.posts/3), 8, 32, 128)
	for _, l := range all {
		best = max(best, l.rate)
	}
	return best, err
}

// cheapest is the processor time of the loop and Postgres that such a loop takes for a post, which has no platform to call: the least of two numbers of connections.
func (x burst) cheapest(ctx context.Context, r *rig) (least float64, connections int, err error) {
	all, err := x.loops(ctx, r, x.posts, 1, 8)
	if err != nil {
		return 0, 0, err
	}
	best := slices.MinFunc(all, func(a, b looped) int { return cmp.Compare(a.cpu, b.cpu) })
	return x.per(best.cpu), best.connections, nil
}

// loops runs two UPDATEs a post by id, each a transaction of its own, over so many posts with each number of connections,
// on the same table and without any service. Every channel has one post on its way at most, so each part goes round over
// all channels with the loop far behind.
func (x burst) loops(ctx context.Context, r *rig, posts int, connections ...int) (out []looped, err error) {
	err = r.with(ctx, func(b *base) error {
		all, err := b.people(ctx, x.organizations, x.channels)
		if err != nil {
			return err
		}
		ids, err := b.book(ctx, posts*len(connections), spread(all, now()))
		if err == nil {
			err = b.settle(ctx)
		}
		for part := range slices.Chunk(ids, posts) {
			if err != nil {
				return err
			}
			var got looped
			got, err = b.loop(ctx, part, connections[len(out)])
			out = append(out, got)
		}
		return err
	})
	return out, err
}

// looped is what a loop reached and used, its connections already there.
type looped struct {
	connections int
	rate        float64 // posts a second
	cpu         time.Duration
}

func (b *base) loop(ctx context.Context, ids []uuid.UUID, connections int) (out looped, err error) {
	pool, err := b.pool(ctx, connections)
	if err != nil {
		return out, err
	}
	defer pool.Close()
	if err := connected(ctx, pool, connections); err != nil {
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
				if err := pair(ctx, pool, ids[i]); err != nil {
					return err
				}
			}
		})
	}
	err = group.Wait()
	took := now().Sub(began)
	return looped{connections, float64(len(ids)) / max(took, time.Millisecond).Seconds(), used() - before}, err
}

// pair claims a post and finishes it.
func pair(ctx context.Context, pool *pgxpool.Pool, post uuid.UUID) error {
	token := uuid.New()
	if _, err := pool.Exec(ctx, floorClaim, post, token); err != nil {
		return err
	}
	_, err := pool.Exec(ctx, floorFinish, post, token)
	return err
}

// connected opens all connections and has each prepare what it will say: what comes once is not measured.
func connected(ctx context.Context, pool *pgxpool.Pool, connections int) error {
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
