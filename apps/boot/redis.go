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

// openRedis creates the client of Redis if REDIS_URL is set. It does not wait for Redis: while Redis does not answer,
// each process keeps its part of the rates, and API keys are looked up more often.
func (a *App) openRedis(context.Context) (err error) {
	if a.cfg.Redis.URL == "" {
		return nil
	}
	redis.LogTo(a.log)
	a.redis, err = redis.Open(a.cfg.Redis.URL)
	return err
}

func (a *App) closeRedis(context.Context) error {
	if a.redis == nil {
		return nil
	}
	return a.redis.Close()
}

// bucket returns the rates that the processes share, nil without Redis: the worker then limits by itself.
func (a *App) bucket() worker.Bucket {
	if a.redis == nil {
		return nil
	}
	return a.redis
}

// attempts returns the log-ins that the processes count together, nil without Redis: the edge then counts its own.
func (a *App) attempts() appapi.Attempts {
	if a.redis == nil {
		return nil
	}
	return a.redis.Attempts("log-in", redis.AttemptRules{
		Delays: appapi.LoginDelays(), Shared: appapi.SharedAfter, Memory: appapi.AttemptMemory,
		Most: appapi.MaxAttempts, Timeout: a.loginTimeout,
	})
}

// windows returns the requests that the processes count together, nil without Redis: the edge then counts its own.
func (a *App) windows() appapi.Windows {
	if a.redis == nil {
		return nil
	}
	return a.redis.Windows("edge", windowTimeout)
}

// openAccounts creates the use cases of accounts. With Redis the processes share the revocations of keys.
func (a *App) openAccounts(ctx context.Context) (err error) {
	deps, err := a.accountDeps()
	if err != nil {
		return err
	}
	if a.redis == nil {
		a.Accounts, err = tenancyservice.New(a.cfg.Accounts, deps)
		return err
	}
	a.revoked = &revocations{redis: a.redis, log: a.log, unpublished: make(chan string, maxUnpublished)}
	deps.Revocations = a.revoked
	a.Accounts, err = tenancyservice.New(a.cfg.Accounts, deps)
	if err != nil {
		return err
	}
	a.revoked.listen(ctx, a.Accounts)
	return nil
}

func (a *App) closeAccounts(context.Context) error {
	if a.revoked != nil {
		a.revoked.close()
	}
	return nil
}

const (
	revokedChannel    = "crier:key-revoked"
	publishTimeout    = 500 * time.Millisecond
	loginTimeout      = 500 * time.Millisecond // for a call that counts a log-in
	windowTimeout     = 250 * time.Millisecond // for a call that counts a request
	publishRetryDelay = time.Second
	maxUnpublished    = 1000
)

// revocations publishes revoked keys to the other processes through Redis and receives theirs. While Redis does not
// answer, no process has a healthy subscription, so each looks its keys up again after five seconds. Revocations that
// could not be published are retried, because other processes may reach Redis when this one does not. They are lost
// when this process ends: the others then accept the keys for up to a minute.
type revocations struct {
	redis       *redis.Client
	log         *slog.Logger
	healthy     func() bool
	stop        func()             // ends the subscription
	end         context.CancelFunc // ends retry
	done        sync.WaitGroup
	unpublished chan string // hashes that could not be published
}

// listen subscribes and waits for the confirmation, at most publishTimeout. The subscription is retried in the
// background.
func (r *revocations) listen(ctx context.Context, accounts *tenancyservice.Accounts) {
	first, cancel := context.WithTimeout(ctx, publishTimeout)
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
	if n := len(r.unpublished); n > 0 {
		r.log.Warn("revoked keys were not published; other processes may accept them for a minute", "keys", n)
	}
	r.stop()
}

// Publish sends the hash of a revoked key to the other processes. When Redis does not answer, the hash is sent later.
func (r *revocations) Publish(ctx context.Context, hash string) {
	if r.publish(ctx, hash) == nil {
		return
	}
	select {
	case r.unpublished <- hash:
	default:
		r.log.Warn("too many revoked keys wait to be published; other processes may accept this one for a minute")
	}
}

func (r *revocations) publish(ctx context.Context, hash string) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	return r.redis.Publish(ctx, revokedChannel, hash)
}

// retry sends the hashes in their order. One that cannot be sent holds back the later ones.
func (r *revocations) retry(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case hash := <-r.unpublished:
			for r.publish(ctx, hash) != nil {
				if clock.Sleep(ctx, publishRetryDelay) != nil {
					return
				}
			}
		}
	}
}

func (r *revocations) Healthy() bool { return r.healthy != nil && r.healthy() }
