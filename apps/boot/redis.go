package boot

import (
	"context"
	"time"

	"crier/apps/edge/admission"
	"crier/apps/worker"
	"crier/platform/redis"
)

// openRedis creates the Redis client if REDIS_URL is set. It does not wait for Redis. While Redis
// does not respond, each process limits itself to its share of the rates.
func (a storage) openRedis(context.Context) (err error) {
	if a.cfg.Redis.URL == "" {
		return nil
	}
	redis.LogTo(a.log)
	a.redis, err = redis.Open(a.cfg.Redis.URL)
	return err
}

func (a storage) closeRedis(context.Context) error {
	if a.redis == nil {
		return nil
	}
	return a.redis.Close()
}

// bucket returns the rate limits that the processes share. Without Redis, it returns nil and the
// worker limits rates locally.
func (a storage) bucket() worker.Bucket {
	if a.redis == nil {
		return nil
	}
	return a.redis
}

// attempts returns the login counter that the processes share. Without Redis, it returns nil and
// the edge counts logins locally.
func (a storage) attempts() admission.Attempts {
	if a.redis == nil {
		return nil
	}
	return a.redis.Attempts("log-in", redis.AttemptRules{
		Delays: admission.LoginDelays(), Shared: admission.SharedAfter, Memory: admission.AttemptMemory,
		Most: admission.MaxAttempts, Timeout: a.loginTimeout,
	})
}

// windows returns the request counter that the processes share. Without Redis, it returns nil and
// the edge counts requests locally.
func (a storage) windows() admission.Windows {
	if a.redis == nil {
		return nil
	}
	return a.redis.Windows("edge", windowTimeout)
}

const (
	loginTimeout  = 500 * time.Millisecond // for a call that counts a login
	windowTimeout = 250 * time.Millisecond // for a call that counts a request
)
