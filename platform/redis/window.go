package redis

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"crier/platform/clock"
)

// Windows counts requests against limits in fixed windows, which all clients of the server share.
// It is safe for concurrent use.
type Windows struct {
	rdb     *goredis.Client
	clock   clock.Clock
	prefix  string
	timeout time.Duration
}

// Windows returns the counter with the given name, which all clients of the server share. timeout
// limits each of its calls.
func (c *Client) Windows(name string, timeout time.Duration) *Windows {
	return &Windows{rdb: c.rdb, clock: clock.System{}, prefix: "crier:window:" + name + ":", timeout: timeout}
}

var (
	//go:embed window.lua
	windowSource string
	windowScript = goredis.NewScript(windowSource)
)

// Take counts one request in the key's window, which begins with the first counted request. It
// returns how many more requests are allowed and when the window ends. If the limit was already
// reached, Take does not count the request and left is -1. The limit may differ between calls; a
// limit below 1 rejects every request.
//
// Every combination of bucket, key and window length counts separately. The length is rounded down
// to milliseconds and must be at least 1 ms. A bucket name must not contain colons. Callers must
// hash keys that are secret or long, because Redis and error texts show keys unchanged.
//
// Take runs a script, which is atomic and takes one round trip once the server has loaded it. The
// server times the window and deletes it at its end. ends is a time on this process's clock, and
// can be late by at most the time that the server took to respond.
//
// Take returns an error if Redis fails or does not respond before the timeout or the end of ctx.
// The request may still have been counted. If the connection breaks, Take retries within the
// timeout, which can count the request twice.
//
// Take also returns an error if the window ends later than a new window would, which happens if the
// server's clock was set back. Calls for the key then fail until the clock has caught up.
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
