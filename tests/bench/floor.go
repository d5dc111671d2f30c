package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

const (
	floorClaim = `update post set state = 'PUBLISHING', phase = 'committing', attempt = attempt + 1, claim_token = $2, claim_holder = $2, claim_epoch = 1,
		claim_until = now() + interval '1 minute', committing_at = now(), updated_at = now() where id = $1 and state = 'QUEUE'`
	floorFinish = `update post set state = 'PUBLISHED', phase = null, claim_holder = null, claim_until = null, release_id = 'r', release_url = 'u', published_at = now(), updated_at = now()
		where id = $1 and claim_token = $2`
)

// floor is what two UPDATEs a post by id, each a transaction of its own, reach on the same table without any service: the best of three numbers of connections.
func (x burst) floor(ctx context.Context, r *rig) (rate float64, connections int, err error) {
	err = r.with(ctx, func(b *base) error {
		all, err := b.people(ctx, x.organizations, x.channels)
		if err != nil {
			return err
		}
		// Every channel has one post on its way at most, so each third goes round over all channels with the loop far behind.
		ids, err := b.book(ctx, x.posts, spread(all, now()))
		if err == nil {
			err = b.settle(ctx)
		}
		if err != nil {
			return err
		}
		third := len(ids) / 3
		for i, n := range []int{8, 32, 128} {
			got, err := b.loop(ctx, ids[i*third:(i+1)*third], n)
			if err != nil {
				return err
			}
			if got > rate {
				rate, connections = got, n
			}
		}
		return nil
	})
	return rate, connections, err
}

func (b *base) loop(ctx context.Context, ids []uuid.UUID, connections int) (rate float64, err error) {
	pool, err := b.pool(ctx, connections)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	var next atomic.Int64
	var group sync.WaitGroup
	errs := make(chan error, connections)
	work := func() error {
		for {
			i := int(next.Add(1)) - 1
			if i >= len(ids) {
				return nil
			}
			token := uuid.New()
			if _, err := pool.Exec(ctx, floorClaim, ids[i], token); err != nil {
				return err
			}
			if _, err := pool.Exec(ctx, floorFinish, ids[i], token); err != nil {
				return err
			}
		}
	}
	began := now()
	for range connections {
		group.Go(func() { errs <- work() })
	}
	group.Wait()
	took := now().Sub(began)
	for range connections {
		if err := <-errs; err != nil {
			return 0, err
		}
	}
	return float64(len(ids)) / max(took, time.Millisecond).Seconds(), nil
}
