package worker

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"crier/actors/fairqueue"
	"crier/platform/clock"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
)

// Rate limits how many posts all processes together send to a platform. It allows a burst of Posts
// posts. After that, it allows Posts posts every Per, evenly spaced.
type Rate struct {
	// Posts is at least 1.
	Posts int
	// Per is at least a millisecond, and at least a microsecond per post.
	Per time.Duration
}

func (r Rate) gap() time.Duration { return r.Per / time.Duration(r.Posts) }

// Rates maps connector names to their platforms' limits. A platform without an entry has no limit.
type Rates map[string]Rate

// UnmarshalText parses comma-separated entries such as bluesky=600/1m. Its error names the invalid
// entry.
func (r *Rates) UnmarshalText(text []byte) error {
	*r = Rates{}
	for entry := range strings.SplitSeq(string(text), ",") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		name, value, _ := strings.Cut(entry, "=")
		posts, per, _ := strings.Cut(value, "/")
		n, err := strconv.Atoi(posts)
		d, wrong := time.ParseDuration(per)
		valid := err == nil && wrong == nil && name != "" &&
			n >= 1 && d >= time.Millisecond && d/time.Duration(n) >= time.Microsecond
		if !valid {
			return fmt.Errorf("%q must look like bluesky=600/1m: "+
				"a platform, a number of posts and a time span", entry)
		}
		(*r)[name] = Rate{Posts: n, Per: d}
	}
	return nil
}

// Bucket enforces rate limits that are shared across processes. redis.Client implements it.
type Bucket interface {
	// Take takes up to n tokens of the named rate. It returns how many tokens it took and the time
	// until the next token is available. If Take returns an error, it may have taken some tokens
	// anyway.
	Take(
		ctx context.Context, name string, posts int, per time.Duration, n int,
	) (got int, wait time.Duration, err error)
}

// limits enforces platform rates across all processes. Each post to a platform with a rate needs a
// token from the shared bucket, and a claim takes no more posts than there are tokens.
// Organizations that get no token are queued, and are woken once tokens have been taken for them.
// If a wake-up is lost, the sweep wakes the organization.
type limits struct {
	// bucket is nil if the processes share no rate limits.
	bucket Bucket
	wake   func(tenancy.OrgID)
	// free returns the number of permits that no post holds.
	free func() int
	// share returns the fraction of all shards that this process owns.
	share func() float64
	clock clock.Clock
	log   *slog.Logger

	ctx     context.Context
	end     context.CancelFunc
	servers sync.WaitGroup

	mu  sync.Mutex
	all map[string]*limit
}

type limit struct {
	name string
	rate Rate
	// tokens holds the expiry times of the tokens that were taken but not used.
	tokens []time.Time
	line   fairqueue.Queue
	// served is true while a goroutine serves the queue.
	served bool

	// Only the goroutine that serves the queue uses localRate and retryBucketAt. After an error
	// from the bucket, the goroutine does not use the bucket again until retryBucketAt.
	localRate     *rate.Limiter
	retryBucketAt time.Time
}

const (
	bucketBudget = 100 * time.Millisecond
	bucketRetry  = time.Second
	// minPause and maxPause bound the pause between two calls that take tokens.
	minPause = 20 * time.Millisecond
	maxPause = time.Second
	// unusedPause is how long a token may remain unused before another organization is woken to use
	// it.
	unusedPause = 200 * time.Millisecond
	// maxTokens is the maximum number of tokens that a process may hold at a time.
	maxTokens = 64
	// tokenLife is how long a token can be used. The limit prevents old tokens from being used
	// together with tokens from a later period.
	tokenLife = 2 * time.Second
)

func newLimits(rates Rates, l *limits) *limits {
	l.ctx, l.end = context.WithCancel(context.Background())
	l.all = map[string]*limit{}
	for name, r := range rates {
		l.all[name] = &limit{name: name, rate: r, localRate: rate.NewLimiter(rate.Every(r.gap()), r.Posts)}
	}
	return l
}

// left returns how many posts may be claimed now for each platform that has a rate.
func (l *limits) left() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]int{}
	for name, x := range l.all {
		out[name] = x.left(l.clock.Now())
	}
	return out
}

func (x *limit) left(now time.Time) int {
	for len(x.tokens) > 0 && !now.Before(x.tokens[0]) {
		x.tokens = x.tokens[1:]
	}
	return len(x.tokens)
}

func (l *limits) spend(claimed []dispatch.Claimed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range claimed {
		if x := l.all[c.Connector]; x != nil && len(x.tokens) > 0 {
			x.tokens = x.tokens[1:]
		}
	}
}

// enqueue adds an organization to a platform's queue. It is called if the platform had no tokens
// for the organization.
func (l *limits) enqueue(org tenancy.OrgID, platform string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.all[platform]
	if x == nil {
		return
	}
	if x.line.Offer(org, 1); !x.served {
		x.served = true
		l.servers.Go(func() { l.serve(x) })
	}
}

// serve takes tokens and wakes an organization for each, until the queue is empty or the limits are
// closed.
func (l *limits) serve(x *limit) {
	for l.ctx.Err() == nil {
		n, waiting := l.wanted(x)
		if !waiting {
			return
		}
		got, wait := 0, time.Duration(0)
		if n > 0 {
			got, wait = l.take(x, n)
		}
		for _, g := range l.book(x, got) {
			l.wake(g.Org)
		}
		pause := min(max(minPause, wait), maxPause)
		if l.unused(x) {
			pause = min(pause, unusedPause)
		}
		select {
		case <-time.After(pause):
		case <-l.ctx.Done():
		}
	}
}

// wanted returns the number of tokens to take. There should be one token for each queued
// organization, because most organizations have one post for a platform. Some have more, so wanted
// adds the number of tokens that the bucket gains in a quarter of tokenLife.
//
// A process never holds more than a quarter of a bucket, or more tokens than there are free
// permits. waiting is false if the queue is empty.
func (l *limits) wanted(x *limit) (n int, waiting bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x.served = x.line.Len() > 0
	n = min(x.line.Len()+int(tokenLife/4/x.rate.gap()), maxTokens, max(1, x.rate.Posts/4), l.free())
	return n - x.left(l.clock.Now()), x.served
}

// unused reports whether any tokens are left. If so, the organizations that were woken for these
// tokens may no longer have anything to send.
func (l *limits) unused(x *limit) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return x.left(l.clock.Now()) > 0
}

// take takes tokens from the bucket. If there is no bucket or the bucket has failed, take limits
// posts to this process's share of the rate.
func (l *limits) take(x *limit, n int) (got int, wait time.Duration) {
	now := l.clock.Now()
	if l.bucket != nil && !now.Before(x.retryBucketAt) {
		ctx, cancel := context.WithTimeout(l.ctx, bucketBudget)
		defer cancel()
		got, wait, err := l.bucket.Take(ctx, x.name, x.rate.Posts, x.rate.Per, n)
		if err == nil {
			return got, wait
		}
		l.log.Warn("the shared rates are unavailable; this process keeps to its share of them", "error", err)
		x.retryBucketAt = now.Add(bucketRetry)
	}
	part := l.share()
	x.localRate.SetLimitAt(now, rate.Limit(part*float64(x.rate.Posts)/x.rate.Per.Seconds()))
	x.localRate.SetBurstAt(now, max(1, int(part*float64(x.rate.Posts))))
	for got < n && x.localRate.AllowN(now, 1) {
		got++
	}
	return got, 0
}

// book stores tokens for the next claims and returns the organizations to wake, one per token. If
// there are no new tokens but some earlier tokens are unused, it returns one organization.
func (l *limits) book(x *limit, tokens int) []fairqueue.Grant {
	l.mu.Lock()
	defer l.mu.Unlock()
	end := l.clock.Now().Add(tokenLife)
	for range tokens {
		x.tokens = append(x.tokens, end)
	}
	n := max(tokens, min(1, x.left(l.clock.Now())))
	return x.line.Take(n, n)
}

func (l *limits) close() {
	l.end()
	l.servers.Wait()
}
