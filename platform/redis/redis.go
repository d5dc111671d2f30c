// Package redis is a client of Redis, or of a server inside the process when none is configured.
package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
)

// Client talks to one Redis. It is safe for concurrent use.
type Client struct {
	rdb      *goredis.Client
	embedded *miniredis.Miniredis // nil when the server is not ours

	life context.Context // of the subscriptions
	end  context.CancelFunc
	subs sync.WaitGroup
	mu   sync.Mutex
}

// Open makes a client of the server at redis:// or rediss://. It fails only for a URL that is not valid: connections
// are made when they are used, so a server that is away may come later (see Ping).
func Open(url string) (*Client, error) {
	opts, err := goredis.ParseURL(url)
	if err != nil {
		return nil, errors.New("the Redis URL is not valid; want redis://[user:password@]host:port[/db]") // the cause may quote the password
	}
	return wrap(opts), nil
}

// Embedded starts a server inside the process, on loopback, for a single node: its contents end with the process.
func Embedded() (*Client, error) {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		return nil, fmt.Errorf("embedded redis: %w", err)
	}
	server.ClockTTL(true) // else nothing ever expires
	c := wrap(&goredis.Options{Addr: server.Addr()})
	c.embedded = server
	return c, nil
}

// callLimit is the longest that connecting and every answer may take, for callers that set no deadline.
const callLimit = 2 * time.Second

func wrap(opts *goredis.Options) *Client {
	opts.ContextTimeoutEnabled = true // else a server that accepts and says nothing outlasts a caller's deadline
	opts.DialTimeout = cmp.Or(opts.DialTimeout, callLimit)
	opts.ReadTimeout = cmp.Or(opts.ReadTimeout, callLimit)
	opts.WriteTimeout = cmp.Or(opts.WriteTimeout, callLimit)
	c := &Client{rdb: goredis.NewClient(opts)}
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// Address is where the server is reached, host:port.
func (c *Client) Address() string { return c.rdb.Options().Addr }

// Ping tells whether the server answers.
func (c *Client) Ping(ctx context.Context) error {
	if err := c.rdb.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	return nil
}

// Close ends all subscriptions, waits for the calls of their functions to return, and closes the connections.
func (c *Client) Close() error {
	c.mu.Lock()
	c.end()
	c.mu.Unlock()
	c.subs.Wait()
	err := c.rdb.Close()
	if c.embedded != nil {
		c.embedded.Close()
	}
	return err
}

// Publish sends to who listens at this moment; nobody listening is no error.
func (c *Client) Publish(ctx context.Context, channel, msg string) error {
	if err := c.rdb.Publish(ctx, channel, msg).Err(); err != nil {
		return fmt.Errorf("redis publish: %w", err)
	}
	return nil
}
