package main

import (
	"context"
	"errors"

	"github.com/alicebob/miniredis/v2"

	"crier/tests/faultnet"
)

const loopback = "127.0.0.1:0"

// startRedis starts the Redis server that all nodes share, behind a proxy.
func (w *harness) startRedis() (err error) {
	w.redis, err = miniredis.Run()
	if err != nil {
		return err
	}
	w.closers = append(w.closers, func() error { w.redis.Close(); return nil })
	w.redisProxy, err = faultnet.Listen(loopback, w.redis.Addr())
	if err != nil {
		return err
	}
	w.closers = append(w.closers, w.redisProxy.Close)
	return nil
}

// startNetworkFault injects a network fault in the background. Later faults do not wait until it
// ends.
func (w *harness) startNetworkFault(ctx context.Context, s fault) {
	w.background.Go(func() error {
		w.network.Lock()
		defer w.network.Unlock()
		switch s.Kind {
		case redisLost:
			return w.loseRedis(ctx, s)
		case redisHang:
			holdTraffic(ctx, w.redisProxy, s)
		default:
			holdTraffic(ctx, w.nodes[s.Node].clusterProxy, s)
		}
		return nil
	})
}

// holdTraffic makes the proxy hold back all data until the fault ends.
func holdTraffic(ctx context.Context, p *faultnet.Proxy, s fault) {
	p.Set(faultnet.Hold)
	pause(ctx, s.Hold)
	p.Set(faultnet.Pass)
}

// loseRedis stops the server and later starts an empty one at the same address.
func (w *harness) loseRedis(ctx context.Context, s fault) error {
	if err := w.redisProxy.Close(); err != nil {
		return err
	}
	w.redis.Close()
	pause(ctx, s.Hold)
	w.redis.FlushAll()
	return errors.Join(w.redis.Restart(), w.redisProxy.Open())
}
