// Package redis enforces limits that apply to all processes together, through a Redis server that
// they share.
package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// Config identifies the Redis server that the processes share.
type Config struct {
	// URL is the URL of the Redis server. It is empty if this process shares no limits with others.
	// Example: redis://:password@10.0.0.5:6379/0
	URL string `env:"REDIS_URL" doc:"URL (redis:// or rediss://) of the Redis server shared by all processes; not needed for a single process."`
}

// Validate returns an error if URL is set but invalid. The error does not contain the URL, which
// may include a password.
func (c Config) Validate() error {
	if c.URL == "" {
		return nil
	}
	if _, err := parseURL(c.URL); err != nil {
		return fmt.Errorf("REDIS_URL: %w", err)
	}
	return nil
}

// Client is a client of one Redis server. It is safe for concurrent use.
type Client struct{ rdb *goredis.Client }

// callLimit limits how long connecting, sending a command and receiving a response may each take,
// unless the URL sets other limits. The deadline of a call's context applies as well.
const callLimit = 2 * time.Second

// Open returns a client for the server at a redis:// or rediss:// URL. It fails only if the URL is
// invalid; the error does not contain the URL, which may include a password. Connections are opened
// on demand, so the server need not be reachable yet; see Ping.
func Open(url string) (*Client, error) {
	opts, err := parseURL(url)
	if err != nil {
		return nil, fmt.Errorf("the Redis URL is not valid: it %w", err)
	}
	opts.ContextTimeoutEnabled = true // go-redis ignores the deadline of the context otherwise
	opts.DialTimeout = cmp.Or(opts.DialTimeout, callLimit)
	opts.ReadTimeout = cmp.Or(opts.ReadTimeout, callLimit)
	opts.WriteTimeout = cmp.Or(opts.WriteTimeout, callLimit)
	return &Client{rdb: goredis.NewClient(opts)}, nil
}

// parseURL parses a Redis URL into options. The error text is a predicate without a subject. It
// omits the cause, which may contain the password.
func parseURL(url string) (*goredis.Options, error) {
	opts, err := goredis.ParseURL(url)
	if err != nil || opts.Network == "tcp" && !dialable(opts.Addr) {
		return nil, errors.New("must be redis://[user:password@]host:port[/db]")
	}
	return opts, nil
}

// dialable reports whether addr has a port from 1 to 65535, which goredis.ParseURL does not check.
func dialable(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// LogTo logs go-redis's messages about connections, for all clients in this process. It logs them
// at DEBUG, because callers receive the same failures as errors. Without LogTo, go-redis writes its
// messages to standard error.
func LogTo(log *slog.Logger) { goredis.SetLogger(debugLog{log: log}) }

type debugLog struct{ log *slog.Logger }

func (l debugLog) Printf(ctx context.Context, format string, v ...any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, "go-redis: "+fmt.Sprintf(format, v...))
	}
}

// Ping returns an error if the server cannot be reached, rejects the password, or does not respond
// before ctx ends.
func (c *Client) Ping(ctx context.Context) error {
	if err := c.rdb.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	return nil
}

// Close closes the connections. It returns the first error.
func (c *Client) Close() error { return c.rdb.Close() }
