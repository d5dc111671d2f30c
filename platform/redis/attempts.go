package redis

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// AttemptRules configures Attempts. Each attempt counts under three keys, for example the client,
// the account, and the pair of both.
type AttemptRules struct {
	// Delays[0] lists the delays of the first key after its first attempt, its second, and so on.
	// The last delay also applies to all later attempts. Delays[2] lists the delays of the third
	// key in the same way.
	//
	// The second key never waits. Instead, once the third key has Shared attempts, the third key's
	// delay is at least the delay that Delays[1] lists for the second key's number of attempts. No
	// delay may be longer than Memory.
	Delays [3][]time.Duration
	// Shared is how many attempts the third key must have before Delays[1] applies to it; see
	// Delays.
	Shared int
	// Memory is how long a key is kept after its last delay.
	Memory time.Duration
	// Most is the maximum number of keys. If there are more, the keys that expire first are
	// deleted.
	Most int
	// Timeout limits each call.
	Timeout time.Duration
}

// Attempts counts attempts and delays further attempts, across all clients of the Redis server. It
// is safe for concurrent use. Each call runs a script, atomically and in one round trip. A call
// that fails may still have been executed.
type Attempts struct {
	rdb   *goredis.Client
	keys  []string
	rules AttemptRules
}

// Attempts returns the counter with the given name, which all clients of the server share.
func (c *Client) Attempts(name string, rules AttemptRules) *Attempts {
	name = "crier:attempts:{" + name + "}"
	return &Attempts{rdb: c.rdb, keys: []string{name, name + ":ends"}, rules: rules}
}

var (
	//go:embed attempt.lua
	attemptSource string
	attemptScript = goredis.NewScript(attemptSource)

	//go:embed forgive.lua
	forgiveSource string
	forgiveScript = goredis.NewScript(forgiveSource)
)

// Begin counts an attempt under its keys. If any key must wait, Begin counts nothing, and wait is
// the longest remaining delay. Begin returns an error if wait is longer than every delay in the
// rules, which happens if the server's clock was set back.
func (a *Attempts) Begin(ctx context.Context, keys [3]string) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.rules.Timeout)
	defer cancel()
	args := []any{a.rules.Memory.Milliseconds(), a.rules.Most, a.rules.Shared}
	for i, key := range keys {
		args = append(args, key, len(a.rules.Delays[i]))
		for _, d := range a.rules.Delays[i] {
			args = append(args, d.Milliseconds())
		}
	}
	ms, err := attemptScript.Run(ctx, a.rdb, a.keys, args...).Int64()
	if err != nil {
		return 0, fmt.Errorf("redis attempt: %w", err)
	}
	wait = time.Duration(ms) * time.Millisecond
	if wait > a.rules.longest() {
		return 0, fmt.Errorf("redis attempt: a wait of %s is longer than any delay; "+
			"was the clock of the server set back?", wait)
	}
	return wait, nil
}

func (r *AttemptRules) longest() time.Duration {
	var d time.Duration
	for _, delays := range r.Delays {
		for _, delay := range delays {
			d = max(d, delay)
		}
	}
	return d
}

// Forgive removes each key's last attempt and the delay after it. Call it after an attempt that
// succeeded. If Redis fails, Forgive returns the error, and the attempts count until they expire.
func (a *Attempts) Forgive(ctx context.Context, keys [3]string) error {
	ctx, cancel := context.WithTimeout(ctx, a.rules.Timeout)
	defer cancel()
	if err := forgiveScript.Run(ctx, a.rdb, a.keys, keys[0], keys[1], keys[2]).Err(); err != nil {
		return fmt.Errorf("redis forgive: %w", err)
	}
	return nil
}
