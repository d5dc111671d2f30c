package redis

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"crier/platform/clock"
)

// Windows counts requests against limits in fixed windows, for all clients of the server together. It is safe for
// concurrent use.
type Windows struct {
	rdb     *goredis.Client
	clock   clock.Clock
	prefix  string
	timeout time.Duration
}

// Windows returns the counter that all clients of the server share by its name. Each call of it ends after the timeout.
func (c *Client) Windows(name string, timeout time.Duration) *Windows {
	return &Windows{rdb: c.rdb, clock: clock.System{}, prefix: "crier:window:" + name + ":", timeout: timeout}
}

var (
	//go:embed window.lua
	windowSource string
	windowScript = goredis.NewScript(windowSource)
)

// Take counts one request of the key in its window, which begins with the first counted request. It returns how many
// more are allowed and when the window ends. When none was left, left is -1 and the request is not counted. The limit
// may differ from call to call; one below 1 refuses every request.
//
// Each bucket, key and length of window counts separately. The length is rounded down to milliseconds and must be at
// least one. A bucket is a name without colons. Callers hash keys that are secret or long, because Redis and errors
// have them as they are.
//
// Take is one script, hence atomic and one round trip after the server has loaded it. The server measures the window,
// and ends is by the clock of this process, at most the time of the answer too late. The server deletes the window when
// it has ended.
//
// Take returns the error of Redis, and one when the server does not answer within the timeout or before ctx ends; the
// request may have been counted then. A call whose connection broke is repeated within the timeout, which may count the
// request twice. It is also an error when the window ends later than a new one would, as after the clock of the server
// was set back: the key then gives errors until the clock has caught up.
func (w *Windows) Take(
	ctx context.Context, bucket, key string, limit int, window time.Duration,
) (left int, ends time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	length := window.Milliseconds()
	if length < 1 {
		return 0, time.Time{}, fmt.Errorf("redis window: the length %s must be at least 1ms", window)
	}
	name := fmt.Sprintf("%s%s:%d:%s", w.prefix, bucket, length, key)
	answer, err := windowScript.Run(ctx, w.rdb, []string{name}, limit, length).Int64Slice()
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("redis window: %w", err)
	}
	if len(answer) != 2 {
		return 0, time.Time{}, fmt.Errorf("redis window: the script returned %d numbers, want 2", len(answer))
	}
	remaining := answer[1]
	if remaining > length {
		return 0, time.Time{}, fmt.Errorf("redis window: the key %s ends in %d ms, later than its length of %s; "+
			"was the clock of the server set back?", name, remaining, window)
	}
	return int(answer[0]), w.clock.Now().Add(time.Duration(remaining) * time.Millisecond), nil
}
