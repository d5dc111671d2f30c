package redis

import (
	"context"
	"fmt"
	"time"

	"github.com/go-redis/redis_rate/v10"
)

// Take takes up to n of a rate that all clients of the server share by its name: posts at once, and as many again, evenly, in every span per after that.
// It returns how many it got, and how long it is until there is one more, which is never longer than per. A server that says otherwise,
// such as one whose clock was put back, is an error: what it keeps of the rate cannot be used until that time has come.
func (c *Client) Take(ctx context.Context, name string, posts int, per time.Duration, n int) (got int, wait time.Duration, err error) {
	key := "crier:rate:" + name
	r, err := redis_rate.NewLimiter(c.rdb).AllowAtMost(ctx, key, redis_rate.Limit{Rate: posts, Burst: posts, Period: per}, n)
	if err != nil {
		return 0, 0, fmt.Errorf("redis rate: %w", err)
	}
	if r.RetryAfter > per || r.RetryAfter < -1 { // -1 = some were allowed; an infinite time may be converted to a negative one
		return 0, 0, fmt.Errorf("redis rate: the key rate:%s allows nothing for longer than the %s of the rate; was the clock of Redis put back?", key, per)
	}
	if r.Allowed < n {
		wait = per / time.Duration(posts)
	}
	if r.Allowed == 0 && r.RetryAfter > 0 { // known only when there was none
		wait = r.RetryAfter
	}
	return r.Allowed, wait, nil
}
