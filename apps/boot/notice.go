package boot

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"crier/platform/redis"
	tenancyservice "crier/tenancy/service"
)

const (
	revoked       = "crier:key-revoked" // the channel of the notifications
	noticeLimit   = 500 * time.Millisecond
	noticeAgain   = time.Second
	noticesQueued = 1000
)

// notice publishes revoked keys to the other processes and hears of theirs. Without Redis nothing is lost: no
// subscription is healthy then, so every process looks keys up again within five seconds; and what could not be
// published is published when Redis answers again, for processes that did not lose their own connection.
type notice struct {
	redis *redis.Client
	log   *slog.Logger
	end   context.CancelFunc
	sub   func()
	done  sync.WaitGroup
	well  func() bool

	mu    sync.Mutex
	queue []string // hashes that could not be published
}

func newNotice(client *redis.Client, log *slog.Logger) *notice {
	return &notice{redis: client, log: log}
}

// listen subscribes, and waits a moment for it; when Redis is away it goes on trying in the background.
func (n *notice) listen(ctx context.Context, accounts *tenancyservice.Accounts) {
	first, cancel := context.WithTimeout(ctx, noticeLimit)
	defer cancel()
	n.sub, n.well = n.redis.Subscribe(first, revoked, accounts.Forget, accounts.ForgetAll)
	if !n.well() {
		n.log.Warn("Redis does not answer; going on without it until it does")
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	n.end = end
	n.done.Go(func() { n.retry(life) })
}

func (n *notice) close() {
	if n.sub == nil {
		return
	}
	n.end()
	n.done.Wait()
	n.sub()
}

// Publish tells the other processes of a revoked key. When Redis does not answer it is done later: the key itself is
// revoked already.
func (n *notice) Publish(ctx context.Context, hash string) error {
	if n.publish(ctx, hash) == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.queue) >= noticesQueued {
		n.log.Warn("too many revoked keys wait to be published; other processes may accept this one for a minute")
		return nil
	}
	n.queue = append(n.queue, hash)
	return nil
}

func (n *notice) publish(ctx context.Context, hash string) error {
	ctx, cancel := context.WithTimeout(ctx, noticeLimit)
	defer cancel()
	return n.redis.Publish(ctx, revoked, hash)
}

// retry publishes what could not be published, until ctx ends.
func (n *notice) retry(ctx context.Context) {
	tick := time.NewTicker(noticeAgain)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			n.flush(ctx)
		}
	}
}

func (n *notice) flush(ctx context.Context) {
	n.mu.Lock()
	waiting := slices.Clone(n.queue)
	n.mu.Unlock()
	for _, hash := range waiting {
		if n.publish(ctx, hash) != nil {
			return
		}
		n.mu.Lock()
		n.queue = n.queue[1:]
		n.mu.Unlock()
	}
}

// Healthy tells whether revocations of other processes are heard here.
func (n *notice) Healthy() bool { return n.well != nil && n.well() }
