package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"crier/actors/fairqueue"
	"crier/platform/clock"
	"crier/publishing"
	"crier/tenancy"
)

// Rate is what a platform takes from all processes together: so many posts at once, and as many again, evenly, in every span after that.
type Rate struct {
	Posts int
	Per   time.Duration
}

func (r Rate) gap() time.Duration { return r.Per / time.Duration(r.Posts) }

// Rates are by platform.
type Rates map[string]Rate

// UnmarshalText reads entries like bluesky=600/1m, separated by commas.
func (r *Rates) UnmarshalText(text []byte) error {
	*r = Rates{}
	for entry := range strings.SplitSeq(string(text), ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		name, value, _ := strings.Cut(entry, "=")
		posts, per, _ := strings.Cut(value, "/")
		n, err := strconv.Atoi(posts)
		d, wrong := time.ParseDuration(per)
		if errors.Join(err, wrong) != nil || name == "" || n < 1 || d < time.Millisecond || d/time.Duration(n) < time.Microsecond {
			return fmt.Errorf("%q must look like bluesky=600/1m: a platform, a number of posts and the span that they are for", entry)
		}
		(*r)[name] = Rate{n, d}
	}
	return nil
}

// Bucket shares rates between processes.
type Bucket interface {
	// Take takes up to n of what a rate allows now, and returns how many it got, and how long it is until there is one more.
	Take(ctx context.Context, name string, posts int, per time.Duration, n int) (got int, wait time.Duration, err error)
}

// limits keeps to the rates of platforms over all processes: each post of a platform that has one costs a token from
// the shared bucket. A claim takes no more posts than there are tokens. The organizations that it leaves out wait in
// line, and only for them tokens are taken: they are woken as the tokens come. Were a wake-up lost, the sweep would
// wake the organization.
type limits struct {
	bucket Bucket // nil: the processes share none
	wake   func(tenancy.OrgID)
	free   func() int     // permits that nobody holds
	share  func() float64 // the part of all shards that this process holds
	clock  clock.Clock
	log    *slog.Logger

	ctx     context.Context
	end     context.CancelFunc
	servers sync.WaitGroup

	mu  sync.Mutex
	all map[string]*limit
}

// limit is the rate of one platform.
type limit struct {
	name   string
	rate   Rate
	tokens []time.Time // when each of those ends that are taken and not used
	line   fairqueue.Queue
	served bool // a goroutine serves the line

	// These are of the goroutine that serves the line.
	localRate     *rate.Limiter
	retryBucketAt time.Time // the bucket did not answer; until then it is not asked again
}

const (
	bucketBudget = 100 * time.Millisecond
	bucketRetry  = time.Second
	minPause     = 20 * time.Millisecond  // the least, between two times that tokens are taken
	maxPause     = time.Second            // the most, whatever the bucket answers
	unusedPause  = 200 * time.Millisecond // until the next in line is woken for a token that is not used
	maxTokens    = 64                     // by one process, at most
	tokenLife    = 2 * time.Second        // of a token that is not used: it must not be sent beside those of a later span
)

func newLimits(rates Rates, l *limits) *limits {
	l.ctx, l.end = context.WithCancel(context.Background())
	l.all = map[string]*limit{}
	for name, r := range rates {
		l.all[name] = &limit{name: name, rate: r, localRate: rate.NewLimiter(rate.Every(r.gap()), r.Posts)}
	}
	return l
}

// left is how many posts may be claimed now of each platform that has a rate.
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

// spend books what was claimed.
func (l *limits) spend(claimed []publishing.Claimed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range claimed {
		if x := l.all[c.Connector]; x != nil && len(x.tokens) > 0 {
			x.tokens = x.tokens[1:]
		}
	}
}

// enqueue puts an organization in the line of a platform that had no tokens for it.
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

// serve takes tokens and wakes as many organizations, until none waits.
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

// wanted is how many tokens are needed: one for each organization that waits, as most have one post to a platform, and
// as many besides as come back in a quarter of a token's life, because some have more. A process keeps no more than a
// quarter of a bucket, and takes none that it has no permits for.
func (l *limits) wanted(x *limit) (n int, waiting bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x.served = x.line.Len() > 0
	n = min(x.line.Len()+int(tokenLife/4/x.rate.gap()), maxTokens, max(1, x.rate.Posts/4), l.free())
	return n - x.left(l.clock.Now()), x.served
}

// unused returns true while there are tokens: those who were woken for them may have nothing to send any more.
func (l *limits) unused(x *limit) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return x.left(l.clock.Now()) > 0
}

// take asks the bucket, and when there is none or it cannot be asked, allows this process its part of the rate.
func (l *limits) take(x *limit, n int) (got int, wait time.Duration) {
	now := l.clock.Now()
	if l.bucket != nil && !now.Before(x.retryBucketAt) {
		ctx, cancel := context.WithTimeout(l.ctx, bucketBudget)
		defer cancel()
		got, wait, err := l.bucket.Take(ctx, x.name, x.rate.Posts, x.rate.Per, n)
		if err == nil {
			return got, wait
		}
		l.log.Warn("the shared rates cannot be asked for; this process keeps to its part of them", "error", err)
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

// book keeps tokens for the next claims, and returns the organizations that may use them: one for each token, and one
// while there are tokens that others were woken for and have not used yet.
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

// close ends the waiting: nothing more is claimed.
func (l *limits) close() {
	l.end()
	l.servers.Wait()
}
