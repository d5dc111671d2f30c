package redis

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// Attempts counts attempts by key for all clients of the server. It is safe for concurrent use.
type Attempts struct {
	rdb    *goredis.Client
	keys   []string
	memory time.Duration
	most   int
}

// Attempts returns the attempts that all clients of the server count under a name. A key is forgotten when its last delay
// has been over for memory, or, of more than so many keys, when its memory ends first.
func (c *Client) Attempts(name string, memory time.Duration, most int) *Attempts {
	name = "crier:attempts:{" + name + "}"
	return &Attempts{rdb: c.rdb, keys: []string{name, name + ":ends"}, memory: memory, most: most}
}

var (
	//go:embed attempt.lua
	attemptSource string
	attemptScript = goredis.NewScript(attemptSource)

	//go:embed forgive.lua
	forgiveSource string
	forgiveScript = goredis.NewScript(forgiveSource)
)

// Begin counts an attempt of the key and returns how many are counted. After the nth the key has to wait for the nth delay,
// the last one when there are fewer, and for least at the least; a delay is no longer than the memory. While it has to,
// nothing is counted and wait is the rest.
func (a *Attempts) Begin(ctx context.Context, key string, delays []time.Duration, least time.Duration) (n int, wait time.Duration, err error) {
	args := []any{key, a.memory.Milliseconds(), a.most, least.Milliseconds()}
	for _, d := range delays {
		args = append(args, d.Milliseconds())
	}
	answer, err := attemptScript.Run(ctx, a.rdb, a.keys, args...).Int64Slice()
	if err != nil {
		return 0, 0, fmt.Errorf("redis attempt: %w", err)
	}
	return int(answer[0]), time.Duration(answer[1]) * time.Millisecond, nil
}

// Forgive takes the key's last attempt back, with the delay after it.
func (a *Attempts) Forgive(ctx context.Context, key string) error {
	if err := forgiveScript.Run(ctx, a.rdb, a.keys, key).Err(); err != nil {
		return fmt.Errorf("redis forgive: %w", err)
	}
	return nil
}
