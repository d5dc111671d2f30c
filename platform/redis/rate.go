package redis

import (
	"context"
	"fmt"
	"time"

	"github.com/go-redis/redis_rate/v10"
)

// Take takes up to n tokens from the named rate limit, which all clients of the server share. The
// bucket's size is posts, and an empty bucket refills evenly over the duration per. Take returns
// the number of tokens taken. If it takes fewer than n, it also returns the time until the next
// token, which never exceeds per.
//
// Take returns an error if the server reports a time longer than per, which happens if the server's
// clock was set back. The limit then grants no tokens until the clock has caught up.
func (c *Client) Take(
	ctx context.Context, name string, posts int, per time.Duration, n int,
) (got int, wait time.Duration, err error) {
	key := "crier:rate:" + name
	limit := redis_rate.Limit{Rate: posts, Burst: posts, Period: per}
	r, err := redis_rate.NewLimiter(c.rdb).AllowAtMost(ctx, key, limit, n)
	if err != nil {
		return 0, 0, fmt.Errorf("redis rate: %w", err)
	}
	// RetryAfter is -1 if tokens were taken. An infinite time can overflow and become negative.
	if r.RetryAfter > per || r.RetryAfter < -1 {
		return 0, 0, fmt.Errorf("redis rate: the key rate:%s allows nothing for longer than the %s of the rate; "+
			"was the clock of Redis set back?", key, per)
	}
	if r.Allowed < n {
		wait = per / time.Duration(posts)
	}
	if r.Allowed == 0 && r.RetryAfter > 0 { // the exact time is known only when no token was taken
		wait = r.RetryAfter
	}
	return r.Allowed, wait, nil
}
