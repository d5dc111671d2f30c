package redis

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// AttemptRules say how attempts are counted, each under three keys, such as who makes it, what it is made on, and both.
type AttemptRules struct {
	// Delays[0] is how long the first key has to wait after its first attempt, its second, and so on; the last one goes on.
	// Delays[2] is that of the third key, which also has to wait for Delays[1], by the count of the second key, after its
	// own attempt of number Shared and all later ones. The second key itself does not wait. No delay is longer than Memory.
	Delays [3][]time.Duration
	Shared int
	// Memory is how long a key is remembered after its last delay.
	Memory time.Duration
	// Most is how many keys are remembered; of more, those whose memory ends first are forgotten.
	Most int
	// Timeout is the longest that a call may take.
	Timeout time.Duration
}

// Attempts counts attempts for all clients of the server. It is safe for concurrent use. Each call is one script, and so
// one round trip that the server carries out whole or not at all; one that fails may have been carried out.
type Attempts struct {
	rdb   *goredis.Client
	keys  []string
	rules AttemptRules
}

// Attempts returns the attempts that all clients of the server count under a name.
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

// Begin counts an attempt under its keys. When one of them has to wait nothing is counted, and wait is the longest rest. A
// rest longer than every delay is an error: the clock of the server was set back since the delay began.
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
		return 0, fmt.Errorf("redis attempt: a wait of %s is longer than any delay; was the clock of the server set back?", wait)
	}
	return wait, nil
}

// longest returns the longest delay.
func (r *AttemptRules) longest() (d time.Duration) {
	for _, delays := range r.Delays {
		for _, delay := range delays {
			d = max(d, delay)
		}
	}
	return d
}

// Forgive takes the last attempt of each key back, with the delay after it.
func (a *Attempts) Forgive(ctx context.Context, keys [3]string) error {
	ctx, cancel := context.WithTimeout(ctx, a.rules.Timeout)
	defer cancel()
	if err := forgiveScript.Run(ctx, a.rdb, a.keys, keys[0], keys[1], keys[2]).Err(); err != nil {
		return fmt.Errorf("redis forgive: %w", err)
	}
	return nil
}
