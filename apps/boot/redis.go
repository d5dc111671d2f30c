package boot

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"crier/apps/edge/appapi"
	"crier/apps/worker"
	"crier/platform/clock"
	"crier/platform/redis"
	tenancyservice "crier/tenancy/service"
)

// openRedis makes the client of Redis, which several processes share; without REDIS_URL there is none. It does not wait
// for Redis: while it is away each process keeps its part of the rates, and keys are looked up more often.
func (a *App) openRedis(context.Context) (err error) {
	if a.cfg.RedisURL == "" {
		return nil
	}
	redis.LogTo(a.log)
	a.redis, err = redis.Open(a.cfg.RedisURL)
	return err
}

func (a *App) closeRedis(context.Context) error {
	if a.redis == nil {
		return nil
	}
	return a.redis.Close()
}

// bucket returns the rates that the processes share, nil without Redis: the worker has a limiter of its own then.
func (a *App) bucket() worker.Bucket {
	if a.redis == nil {
		return nil
	}
	return a.redis
}

// attempts returns the log-ins that the processes count together, nil without Redis: the edge counts its own then.
func (a *App) attempts() appapi.Attempts {
	if a.redis == nil {
		return nil
	}
	return a.redis.Attempts("log-in", redis.AttemptRules{
		Delays: appapi.LoginDelays(), Shared: appapi.SharedAfter, Memory: appapi.AttemptMemory, Most: appapi.MaxAttempts,
		Timeout: a.loginWait,
	})
}

func (a *App) openAccounts(ctx context.Context) (err error) {
	deps := tenancyservice.Deps{DB: a.db, Clock: clock.System{}}
	if a.redis != nil {
		a.revoked = &revocations{redis: a.redis, log: a.log, later: make(chan string, maxUnpublished)}
		deps.Revocations = a.revoked
	}
	if a.Accounts, err = tenancyservice.New(deps); err != nil {
		return err
	}
	if a.redis != nil {
		a.revoked.listen(ctx, a.Accounts)
	}
	return nil
}

const (
	revokedChannel = "crier:key-revoked"
	publishLimit   = 500 * time.Millisecond
	loginWait      = 500 * time.Millisecond // of a call that counts a log-in
	publishAgain   = time.Second
	maxUnpublished = 1000
)

// revocations publishes revoked keys to the other processes through Redis and receives theirs. While Redis is away no
// process has a healthy subscription, so each looks its keys up again after five seconds. What could not be published
// is published later, for processes that can reach Redis when this one cannot.
type revocations struct {
	redis   *redis.Client
	log     *slog.Logger
	healthy func() bool
	stop    func() // the subscription
	end     context.CancelFunc
	done    sync.WaitGroup
	later   chan string // hashes that could not be published
}

// listen subscribes and waits a moment for the confirmation; when Redis is away it keeps trying in the background.
func (r *revocations) listen(ctx context.Context, accounts *tenancyservice.Accounts) {
	first, cancel := context.WithTimeout(ctx, publishLimit)
	defer cancel()
	r.stop, r.healthy = r.redis.Subscribe(first, revokedChannel, accounts.Forget, accounts.ForgetAll)
	if !r.healthy() {
		r.log.Warn("Redis does not answer; rates are kept by each process, and keys are looked up more often")
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	r.end = end
	r.done.Go(func() { r.retry(life) })
}

func (r *revocations) close() {
	r.end()
	r.done.Wait()
	if n := len(r.later); n > 0 {
		r.log.Warn("revoked keys were not published; other processes may accept them for a minute", "keys", n)
	}
	r.stop()
}

// Publish sends a hash to the other processes, or keeps it for later when Redis does not answer.
func (r *revocations) Publish(ctx context.Context, hash string) {
	if r.publish(ctx, hash) == nil {
		return
	}
	select {
	case r.later <- hash:
	default:
		r.log.Warn("too many revoked keys wait to be published; other processes may accept this one for a minute")
	}
}

func (r *revocations) publish(ctx context.Context, hash string) error {
	ctx, cancel := context.WithTimeout(ctx, publishLimit)
	defer cancel()
	return r.redis.Publish(ctx, revokedChannel, hash)
}

// retry publishes what could not be published, until ctx ends.
func (r *revocations) retry(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case hash := <-r.later:
			for r.publish(ctx, hash) != nil {
				if clock.Sleep(ctx, publishAgain) != nil {
					return
				}
			}
		}
	}
}

// Healthy returns whether revocations of other processes are received here.
func (r *revocations) Healthy() bool { return r.healthy != nil && r.healthy() }
