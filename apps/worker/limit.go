package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"crier/platform/clock"
	publishingservice "crier/publishing/service"
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
	// Take takes up to n of what a rate allows now, and tells how long it is until there is one more.
	Take(ctx context.Context, name string, posts int, per time.Duration, n int) (got int, wait time.Duration, err error)
}

// limits keeps to what all channels of a platform share: posts under way in this process, and a rate over all processes.
// An organization that is held back by one stands in line and is woken when it is its turn; were that lost, the sweep would wake it.
type limits struct {
	heads  func(ctx context.Context, l publishingservice.Lease, wants []publishingservice.Want, platforms []string) (map[string]int, error)
	bucket Bucket
	wake   func(tenancy.OrgID)
	clock  clock.Clock
	log    *slog.Logger

	rated []string  // the platforms with a rate
	away  time.Time // the bucket did not answer; until then it is not asked again
	mu    sync.Mutex
	over  bool // nobody is woken any more
	all   map[string]*limit
}

// limit of one platform.
type limit struct {
	rate  Rate // zero: none
	cap   int  // posts at once; 0: no cap
	busy  int
	spare int // taken from the bucket and not used; good for the next claim
	alone *rate.Limiter
	line  []tenancy.OrgID
	in    map[tenancy.OrgID]bool // the line
	ready time.Time              // when the bucket has one more
	timer *time.Timer
}

// The bucket is asked before a claim, which must not wait for it long.
const (
	bucketBudget = 100 * time.Millisecond
	bucketRest   = time.Second
)

func newLimit(most int) *limit { return &limit{cap: most, in: map[tenancy.OrgID]bool{}} }

func newLimits(rates Rates, caps map[string]int, l *limits) *limits {
	l.all = map[string]*limit{}
	for name, n := range caps {
		if n > 0 {
			l.all[name] = newLimit(n)
		}
	}
	for name, r := range rates {
		if l.all[name] == nil {
			l.all[name] = newLimit(0)
		}
		l.all[name].rate, l.all[name].alone = r, rate.NewLimiter(rate.Every(r.gap()), r.Posts)
		l.rated = append(l.rated, name)
	}
	return l
}

// open tells how many posts of each limited platform may be claimed now. What it takes from a bucket is settled by taken.
func (l *limits) open(ctx context.Context, lease publishingservice.Lease, wants []publishingservice.Want) (map[string]int, error) {
	if len(l.all) == 0 {
		return nil, nil
	}
	heads := map[string]int{}
	if len(l.rated) > 0 {
		var err error
		if heads, err = l.heads(ctx, lease, wants, l.rated); err != nil {
			return nil, err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range l.rated {
		x := l.all[name]
		if more := min(heads[name], x.free()) - x.spare; more > 0 {
			l.mu.Unlock()
			got, wait := l.take(ctx, name, x, more, len(lease.Shards))
			l.mu.Lock()
			x.spare, x.ready = x.spare+got, l.clock.Now().Add(wait)
		}
	}
	out := map[string]int{}
	for name, x := range l.all {
		out[name] = x.free()
		if x.rate.Posts > 0 {
			out[name] = min(out[name], heads[name], x.spare)
		}
	}
	return out, nil
}

// free is how many posts may begin by the cap alone.
func (x *limit) free() int {
	if x.cap == 0 {
		return math.MaxInt32
	}
	return max(0, x.cap-x.busy)
}

// take asks the bucket, and when there is none or it cannot be asked, allows this process the part of the rate that its shards are of all. Only open calls it.
func (l *limits) take(ctx context.Context, name string, x *limit, n, shards int) (got int, wait time.Duration) {
	now := l.clock.Now()
	if l.bucket != nil && !now.Before(l.away) {
		ctx, cancel := context.WithTimeout(ctx, bucketBudget)
		defer cancel()
		got, wait, err := l.bucket.Take(ctx, name, x.rate.Posts, x.rate.Per, n)
		if err == nil {
			return got, wait
		}
		l.log.Warn("the shared rates cannot be asked for; this process keeps to its part of them", "error", err)
		l.away = now.Add(bucketRest)
	}
	part := float64(shards) / tenancy.Shards
	x.alone.SetLimitAt(now, rate.Limit(part*float64(x.rate.Posts)/x.rate.Per.Seconds()))
	x.alone.SetBurstAt(now, max(1, int(part*float64(x.rate.Posts))))
	if got = min(n, int(x.alone.TokensAt(now))); got < 1 || !x.alone.AllowN(now, got) {
		got = 0
	}
	return got, x.rate.gap()
}

// taken books what was claimed.
func (l *limits) taken(claimed []publishingservice.Claimed) {
	if len(l.all) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range claimed {
		if x := l.all[c.Connector]; x != nil {
			x.busy++
			x.spare = max(0, x.spare-1)
		}
	}
}

// hold puts an organization in the line of every platform that has nothing left for it.
func (l *limits) hold(org tenancy.OrgID, platforms []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range platforms {
		if x := l.all[name]; x != nil && !x.in[org] {
			x.line, x.in[org] = append(x.line, org), true
			l.call(x)
		}
	}
}

// done ends a post under way.
func (l *limits) done(platform string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if x := l.all[platform]; x != nil {
		x.busy--
		l.call(x)
	}
}

// leastGap is how close together organizations of one line are woken by time.
const leastGap = 20 * time.Millisecond

// call wakes whoever has been in line longest, as many as there is room for; when only time makes room, a timer goes on.
func (l *limits) call(x *limit) {
	if l.over {
		return
	}
	now := l.clock.Now()
	for room := x.room(now); room > 0 && len(x.line) > 0; room-- {
		org := x.line[0]
		x.line = x.line[1:]
		delete(x.in, org)
		go l.wake(org)
	}
	if len(x.line) > 0 && x.timer == nil && x.free() > 0 {
		x.timer = time.AfterFunc(max(leastGap, x.ready.Sub(now)), func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			x.timer = nil
			l.call(x)
		})
	}
}

// room is for how many more there probably is room; the claim that follows asks for it.
func (x *limit) room(now time.Time) int {
	if x.rate.Posts == 0 {
		return x.free()
	}
	in := x.spare
	if since := now.Sub(x.ready); since >= 0 {
		in += 1 + int(since/x.rate.gap())
		x.ready = now.Add(x.rate.gap())
	}
	return min(x.free(), in)
}

// close ends the waiting: nothing more is claimed.
func (l *limits) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for _, x := range l.all {
		if x.timer != nil {
			x.timer.Stop()
		}
	}
}
