package main

import (
	"context"

	"github.com/alicebob/miniredis/v2"
)

// startRedis brings up the one Redis of all nodes, behind a gate.
func (w *world) startRedis() (err error) {
	if w.redis, err = miniredis.Run(); err != nil {
		return err
	}
	w.stops = append(w.stops, func() error { w.redis.Close(); return nil })
	if w.door, err = newGate(w.redis.Addr()); err != nil {
		return err
	}
	w.stops = append(w.stops, w.door.close)
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
			return hush(ctx, w.door, s)
		default:
			return hush(ctx, w.nodes[s.Node].gate, s)
		}
	})
}

// hush keeps a gate silent for a while.
func hush(ctx context.Context, g *gate, s strike) error {
	g.silence(true)
	pause(ctx, s.Hold)
	g.silence(false)
	return nil
}

// loseRedis ends the server; an empty one takes its place later.
func (w *world) loseRedis(ctx context.Context, s strike) error {
	if err := w.door.close(); err != nil {
		return err
	}
	w.redis.Close()
	pause(ctx, s.Hold)
	fresh, err := miniredis.Run()
	if err != nil {
		return err
	}
	w.redis = fresh
	return w.door.open(fresh.Addr())
}
