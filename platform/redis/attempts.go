package redis

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// AttemptRules configures Attempts. Each attempt counts under three keys, such as the client, the account, and the pair
// of both.
type AttemptRules struct {
	// Delays[0] are the delays of the first key after its first attempt, its second, and so on; the last delay applies
	// to all later attempts. Delays[2] are those of the third key. From its attempt number Shared on, the third key
	// also waits for Delays[1], chosen by the count of the second key. The second key itself does not wait. No delay
	// may be longer than Memory.
	Delays [3][]time.Duration
	// Shared is a number of attempts; see Delays.
	Shared int
	// Memory is how long a key is kept after its last delay.
	Memory time.Duration
	// Most is the largest number of keys that are kept. Beyond it, the keys whose memory ends first are deleted.
	Most int
	// Timeout limits each call.
	Timeout time.Duration
}

// Attempts counts attempts for all clients of the server, and delays the next ones. It is safe for concurrent use. Each
// call is one script, hence one atomic round trip; a call that fails may have been executed.
type Attempts struct {
	rdb   *goredis.Client
	keys  []string
	rules AttemptRules
}

// Attempts returns the counter that all clients of the server share by its name.
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

// Begin counts an attempt under its keys. If one of them has to wait, nothing is counted and wait is the longest
// remaining delay. It is an error when that is longer than every delay of the rules, as after the clock of the server
// was set back.
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

// Forgive removes the last attempt of each key and the delay after it, as for an attempt that succeeded. It returns the
// error of Redis; the attempts then count until they expire.
func (a *Attempts) Forgive(ctx context.Context, keys [3]string) error {
	ctx, cancel := context.WithTimeout(ctx, a.rules.Timeout)
	defer cancel()
	if err := forgiveScript.Run(ctx, a.rdb, a.keys, keys[0], keys[1], keys[2]).Err(); err != nil {
		return fmt.Errorf("redis forgive: %w", err)
	}
	return nil
}
