package org

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"crier/actors/cluster"
	"crier/actors/ratelimit"
	"crier/platform/clock"
	"crier/platform/id"
	"crier/tenancy"
)

// Config of an organization's actor.
type Config struct {
	Limit    int           `env:"API_LIMIT, default=60" doc:"Requests a minute that one organization may make."`
	InFlight int           `env:"ORG_IN_FLIGHT, default=8" doc:"Posts of one organization that are sent at the same time."`
	Budget   time.Duration `env:"ACTOR_BUDGET, default=250ms" doc:"How long a request waits for its organization's actor."`
}

// Client reaches an organization's actor wherever it lives.
type Client struct {
	cfg      Config
	clock    clock.Clock
	log      *slog.Logger
	host     *cluster.Host
	skew     atomic.Int64
	mu       sync.Mutex
	fallback map[tenancy.OrgID]*ratelimit.Window
	asking   map[tenancy.OrgID]int // requests that wait for their organization's actor
	silent   map[string]time.Time  // processes that did not answer, by address, until when they are not asked
	place    func(shard int16) (address string, here bool)
	moved    atomic.Int64
	alone    atomic.Int64
	busy     atomic.Int64
}

const busyWait = time.Second

// New makes the actor host and its client. dispatch is asked by the actors; it may be set up later than the first request.
func New(cfg Config, net cluster.Config, c clock.Clock, log *slog.Logger, dispatch Dispatcher) (client *Client, err error) {
	client = &Client{cfg: cfg, clock: c, log: log, fallback: map[tenancy.OrgID]*ratelimit.Window{}, asking: map[tenancy.OrgID]int{}, silent: map[string]time.Time{}}
	client.host, err = cluster.NewHost(net, cluster.Kind{Name: "org", Moved: leave{}, Shard: shard, Produce: func() actor.Actor {
		return &organization{cfg: cfg, clock: c, skew: client.Skew, dispatch: dispatch, log: log}
	}}, log)
	return client, err
}

func shard(identity string) (int16, bool) {
	organization, ok := id.Parse[tenancy.OrgTag](identity)
	return int16(tenancy.Shard(organization)), ok
}

// Address is where other processes reach this one's organizations, "" when alone.
func (c *Client) Address() string { return c.host.Address() }

// Locate tells where organizations live; without it all of them are here.
func (c *Client) Locate(place func(shard int16) (address string, here bool)) {
	c.place = place
	c.host.Locate(place)
}

// silence is how long a process that did not answer is not asked: else every request of its organizations would wait in vain until others have them.
const silence = time.Second

// quiet tells the address of the organization's process if it is another one, and whether that did not answer just now.
func (c *Client) quiet(organization tenancy.OrgID) (address string, quiet bool) {
	if c.place == nil {
		return "", false
	}
	address, here := c.place(int16(tenancy.Shard(organization)))
	if here {
		return "", false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return address, c.clock.Now().Before(c.silent[address])
}

// Evict stops the actors of organizations that live elsewhere by now.
func (c *Client) Evict() { c.host.Evict() }

// maxAsking is how many requests of one organization may wait for its actor; a mailbox itself has no end.
const maxAsking = 256

// queue takes a place among the requests that wait; false when there is none.
func (c *Client) queue(organization tenancy.OrgID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asking[organization] >= maxAsking {
		return false
	}
	c.asking[organization]++
	return true
}

func (c *Client) leave(organization tenancy.OrgID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asking[organization]--; c.asking[organization] == 0 {
		delete(c.asking, organization)
	}
}

// Admit counts one request of the organization. When its actor cannot be reached within the budget, a window of this node decides, so that a dead node refuses nobody.
// Of an organization that has too many waiting already, the next is refused at once.
func (c *Client) Admit(_ context.Context, organization tenancy.OrgID) Admission {
	if !c.queue(organization) {
		c.busy.Add(1)
		return Admission{Limit: c.cfg.Limit, Reset: c.clock.Now().Add(busyWait), RetryAfter: busyWait}
	}
	defer c.leave(organization)
	address, quiet := c.quiet(organization)
	if quiet {
		c.alone.Add(1)
		return c.admitHere(organization, "")
	}
	name := organization.String()
	answer, err := c.host.Request(name, admit(), c.cfg.Budget)
	if isMoved(answer) {
		c.moved.Add(1)
		c.host.Forget(name)
		answer, err = c.host.Request(name, admit(), c.cfg.Budget)
	}
	if a, ok := fromWire(answer); ok && err == nil {
		return a
	}
	c.host.Forget(name)
	c.alone.Add(1)
	c.log.Warn("an organization's actor did not answer; this node admits by itself", "org", organization, "error", err)
	return c.admitHere(organization, address)
}

// admitHere decides by a window of this node. A silent process is not asked again for a while.
func (c *Client) admitHere(organization tenancy.OrgID, silent string) Admission {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	if silent != "" {
		maps.DeleteFunc(c.silent, func(_ string, until time.Time) bool { return until.Before(now) })
		c.silent[silent] = now.Add(silence)
	}
	for org, w := range c.fallback {
		if w.Expired(now) {
			delete(c.fallback, org)
		}
	}
	w := c.fallback[organization]
	if w == nil {
		w = &ratelimit.Window{}
		c.fallback[organization] = w
	}
	v := w.Take(now, c.cfg.Limit)
	return Admission{Allowed: v.Allowed, Limit: c.cfg.Limit, Remaining: v.Remaining, Reset: v.Reset, RetryAfter: v.RetryAfter}
}

// Wake tells the actor when something is due. What is far away is left to the sweep.
func (c *Client) Wake(_ context.Context, organization tenancy.OrgID, due time.Time) {
	if due.Sub(c.clock.Now().Add(c.Skew())) <= horizon {
		c.host.Send(organization.String(), nudge(due))
	}
}

// Granted answers an offer: claimed posts are under way, and next is when there is more; nil for nothing. now is the database's.
func (c *Client) Granted(organization tenancy.OrgID, claimed int, next *time.Time, now time.Time) {
	wait := nothing
	if next != nil {
		wait = max(0, next.Sub(now))
	}
	c.host.SendHere(organization.String(), granted{claimed, wait})
}

// Refused answers an offer that could not be looked at: ask again after wait.
func (c *Client) Refused(organization tenancy.OrgID, wait time.Duration) {
	c.host.SendHere(organization.String(), granted{0, wait})
}

// Done says that posts of the organization have ended.
func (c *Client) Done(organization tenancy.OrgID, posts int) {
	c.host.SendHere(organization.String(), done{posts})
}

// SetNow tells the database's time, which began to be read at asked, by our clock.
func (c *Client) SetNow(now, asked time.Time) { c.skew.Store(int64(now.Sub(asked))) }

// Skew is the database's clock less ours, as far as it is known.
func (c *Client) Skew() time.Duration { return time.Duration(c.skew.Load()) }

// Close stops every actor.
func (c *Client) Close(ctx context.Context) error { return c.host.Close(ctx) }

// Moved is how often an organization was found to live elsewhere by now.
func (c *Client) Moved() int64 { return c.moved.Load() }

// Alone is how often this process had to admit by itself.
func (c *Client) Alone() int64 { return c.alone.Load() }

// Busy is how many requests were refused because too many of their organization waited.
func (c *Client) Busy() int64 { return c.busy.Load() }

// Awake is how many organizations have a living actor here.
func (c *Client) Awake() int { return c.host.Len() }
