package main

import (
	"context"
	"errors"

	"github.com/alicebob/miniredis/v2"

	"crier/tests/faultnet"
)

const loopback = "127.0.0.1:0"

// startRedis brings up the one Redis of all nodes, behind a proxy.
func (w *world) startRedis() (err error) {
	if w.redis, err = miniredis.Run(); err != nil {
		return err
	}
	w.stops = append(w.stops, func() error { w.redis.Close(); return nil })
	if w.door, err = faultnet.Listen(loopback, w.redis.Addr()); err != nil {
		return err
	}
	w.stops = append(w.stops, w.door.Close)
	return nil
}

// meanwhile lets a fault of the network last while the next faults happen.
func (w *world) meanwhile(ctx context.Context, s strike) {
	w.background.Go(func() error {
		w.network.Lock()
		defer w.network.Unlock()
		switch s.Kind {
		case redisLost:
			return w.loseRedis(ctx, s)
		case redisHang:
			hush(ctx, w.door, s)
		default:
			hush(ctx, w.nodes[s.Node].door, s)
		}
		return nil
	})
}

// hush keeps back what is sent for a while.
func hush(ctx context.Context, door *faultnet.Proxy, s strike) {
	door.Set(faultnet.Hold)
	pause(ctx, s.Hold)
	door.Set(faultnet.Pass)
}

// loseRedis ends the server; an empty one takes its place later.
func (w *world) loseRedis(ctx context.Context, s strike) error {
	if err := w.door.Close(); err != nil {
		return err
	}
	w.redis.Close()
	pause(ctx, s.Hold)
	w.redis.FlushAll()
	return errors.Join(w.redis.Restart(), w.door.Open())
}
