package redis

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"crier/platform/clock"
)

// Windows counts requests against limits in fixed windows, for all clients of the server together.
// It is safe for concurrent use.
type Windows struct {
	rdb     *goredis.Client
	clock   clock.Clock
	prefix  string
	timeout time.Duration
}

// Windows returns the counter that all clients of the server share under this name. Each of its
// calls ends after the timeout.
func (c *Client) Windows(name string, timeout time.Duration) *Windows {
	return &Windows{rdb: c.rdb, clock: clock.System{}, prefix: "crier:window:" + name + ":", timeout: timeout}
}

var (
	//go:embed window.lua
	windowSource string
	windowScript = goredis.NewScript(windowSource)
)

// Take counts one request of the key in its window, which begins with the first counted request. It
// returns how many more requests are allowed and when the window ends. If none was left, Take does
// not count the request and left is -1. The limit may differ between calls; a limit below 1 refuses
// every request.
//
// Every combination of bucket, key and window length counts separately. The length is rounded down
// to milliseconds and must be at least one. A bucket is a name without colons. Callers must hash
// keys that are secret or long, because Redis and error texts show them unchanged.
//
// Take is a script: it is atomic and takes one round trip once the server has loaded it. The server
// measures and deletes the window. The result ends uses the clock of this process, and may be late
// by at most the time that the response took.
//
// Take returns an error if Redis fails or does not respond before the timeout or the end of ctx;
// the request may still have been counted. If the connection breaks, Take tries again within the
// timeout, which may count the request twice. It also returns an error if the window ends later
// than a new one would, which happens if the server's clock was set back; the key then fails until
// the clock has caught up.
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
