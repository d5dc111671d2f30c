// Package redis is a client of the Redis that several processes share.
package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// Client talks to one Redis. It is safe for concurrent use.
type Client struct {
	rdb *goredis.Client

	life context.Context // of the subscriptions
	end  context.CancelFunc
	subs sync.WaitGroup
	mu   sync.Mutex // held while Close waits, so that subs does not grow meanwhile
}

// callLimit is the longest that connecting and every answer may take, for callers that set no deadline.
const callLimit = 2 * time.Second

// Open returns a client of the server at a redis:// or rediss:// URL. It fails only if the URL is not valid:
// connections are made when they are used, so a server that is not reachable may come later (see Ping).
func Open(url string) (*Client, error) {
	opts, err := goredis.ParseURL(url)
	if err != nil || opts.Network == "tcp" && !dialable(opts.Addr) {
		// The cause may quote the password.
		return nil, errors.New("the Redis URL is not valid; want redis://[user:password@]host:port[/db]")
	}
	opts.ContextTimeoutEnabled = true // without it a silent server outlasts the deadline of the caller
	opts.DialTimeout = cmp.Or(opts.DialTimeout, callLimit)
	opts.ReadTimeout = cmp.Or(opts.ReadTimeout, callLimit)
	opts.WriteTimeout = cmp.Or(opts.WriteTimeout, callLimit)
	c := &Client{rdb: goredis.NewClient(opts)}
	c.life, c.end = context.WithCancel(context.Background())
	return c, nil
}

// dialable returns whether addr, host:port, has a port that exists.
func dialable(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// LogTo logs what go-redis reports of its connections, in all clients of this process, as DEBUG: their users report the
// same as errors. Without it go-redis writes lines of its own to the standard error.
func LogTo(log *slog.Logger) { goredis.SetLogger(debugLog{log}) }

type debugLog struct{ log *slog.Logger }

func (l debugLog) Printf(ctx context.Context, format string, v ...any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, "go-redis: "+fmt.Sprintf(format, v...))
	}
}

// Ping returns an error when the server does not answer.
func (c *Client) Ping(ctx context.Context) error {
	if err := c.rdb.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	return nil
}

// Close ends all subscriptions, waits for the calls of their functions to return, and closes the connections.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end()
	c.subs.Wait()
	return c.rdb.Close()
}

// Publish sends msg to the subscriptions that stand at this moment; that there are none is no error.
func (c *Client) Publish(ctx context.Context, channel, msg string) error {
	if err := c.rdb.Publish(ctx, channel, msg).Err(); err != nil {
		return fmt.Errorf("redis publish: %w", err)
	}
	return nil
}
