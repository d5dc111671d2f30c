package org

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"crier/actors/cluster"
	"crier/platform/clock"
	"crier/platform/id"
	"crier/platform/ratelimit"
	"crier/tenancy"
)

// Config of an organization's actor.
type Config struct {
	Limit    int           `env:"API_LIMIT, default=60" doc:"Requests a minute that one organization may make."`
	InFlight int           `env:"ORG_IN_FLIGHT, default=8" doc:"Posts of one organization that are sent at the same time."`
	Budget   time.Duration `env:"ACTOR_BUDGET, default=250ms" doc:"How long a request waits for its organization's actor."`
}

// Client reaches an organization's actor wherever it lives. It is safe for concurrent use.
type Client struct {
	cfg      Config
	clock    clock.Clock
	log      *slog.Logger
	host     *cluster.Host
	skew     atomic.Int64
	fallback *ratelimit.Windows[tenancy.OrgID]

	mu     sync.Mutex
	asking map[tenancy.OrgID]int // requests that wait for their organization's actor
	peers  map[string]peer       // other processes, by address
	warned time.Time             // when it was last logged that nobody runs an organization

	alone  atomic.Int64
	silent atomic.Int64
	busy   atomic.Int64
}

// peer is what is known of another process.
type peer struct {
	heard  time.Time // when it last answered
	silent time.Time // it did not answer; until then it is not asked
}

const (
	busyWait   = time.Second
	maxWindows = 1 << 17 // organizations a minute that this process limits by itself; about 20 MB
	maxPeers   = 1024
)

// New makes the actor host and its client. dispatch is asked by the actors; it may be set up later than the first request.
func New(cfg Config, net cluster.Config, c clock.Clock, log *slog.Logger, dispatch Dispatcher) (client *Client, err error) {
	client = &Client{
		cfg: cfg, clock: c, log: log, fallback: ratelimit.NewWindows[tenancy.OrgID](maxWindows),
		asking: map[tenancy.OrgID]int{}, peers: map[string]peer{},
	}
	produce := func(identity string) actor.Actor {
		parsed, _ := id.Parse[tenancy.OrgTag](identity) // callers make identities of ids only
		return &organization{
			cfg: cfg, clock: c, skew: client.Skew, dispatch: dispatch, log: log, org: parsed,
			retire: func(self *actor.PID) { client.host.Retire(identity, self) },
			resend: func(message any) { client.host.Send(identity, message) },
		}
	}
	kind := cluster.Kind{Name: "org", Leave: leave{}, Moved: &AdmitResponse{Moved: true}, Shard: shard, Produce: produce}
	client.host, err = cluster.NewHost(net, kind, log)
	return client, err
}

func shard(identity string) (int16, bool) {
	organization, ok := id.Parse[tenancy.OrgTag](identity)
	return int16(tenancy.Shard(organization)), ok
}

// Address is where other processes reach this one's organizations, "" when alone.
func (c *Client) Address() string { return c.host.Address() }

// Locate tells where organizations live; without it all of them are here. Call it before the first request.
func (c *Client) Locate(place func(shard int16) (address string, here bool)) { c.host.Locate(place) }

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

// Admit counts one request of the organization. When its actor cannot be reached within the budget, a window of this
// process decides, so that a dead process refuses nobody. Of an organization that has too many requests waiting
// already, the next is refused at once.
func (c *Client) Admit(_ context.Context, organization tenancy.OrgID) Admission {
	if !c.queue(organization) {
		c.busy.Add(1)
		return Admission{Limit: c.cfg.Limit, Reset: c.clock.Now().Add(busyWait), RetryAfter: busyWait}
	}
	defer c.leave(organization)
	name := organization.String()
	address, here := c.host.Where(name)
	if !here && c.isSilent(address) {
		return c.admitHere(organization)
	}
	asked := c.clock.Now()
	answer, err := c.host.Request(name, &AdmitRequest{}, c.cfg.Budget)
	if r, ok := answer.(*AdmitResponse); ok {
		c.hear(address, here)
		return admission(r)
	}
	switch {
	case errors.Is(err, cluster.ErrSilent):
		c.unanswered(organization, address, asked)
	case c.mayWarn():
		c.log.Warn("an organization's actor cannot be found; this process admits by itself",
			"org", organization, "error", err)
	}
	return c.admitHere(organization)
}

// admitHere decides by a window of this process.
func (c *Client) admitHere(organization tenancy.OrgID) Admission {
	c.alone.Add(1)
	limit := c.cfg.Limit
	v := c.fallback.Take(organization, c.clock.Now(), limit)
	return Admission{Allowed: v.Allowed, Limit: limit, Remaining: v.Remaining, Reset: v.Reset, RetryAfter: v.RetryAfter}
}

// silence is how long a process that did not answer is not asked: else every request of its organizations would wait in
// vain until others have them.
const silence = time.Second

// isSilent tells whether the process at an address did not answer just now.
func (c *Client) isSilent(address string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clock.Now().Before(c.peers[address].silent)
}

// hear notes that the process at an address has answered.
func (c *Client) hear(address string, here bool) {
	if here || address == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setPeer(address, peer{heard: c.clock.Now()})
}

// unanswered notes that a request waited in vain for an actor. The actor's process counts as silent unless it has
// answered others meanwhile: then it is only this actor that does not.
func (c *Client) unanswered(organization tenancy.OrgID, address string, asked time.Time) {
	c.silent.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	p, now := c.peers[address], c.clock.Now()
	if address == "" || !p.heard.Before(asked) || now.Before(p.silent) {
		return
	}
	p.silent = now.Add(silence)
	c.setPeer(address, p)
	c.log.Warn("an organization's actor did not answer; this process admits by itself",
		"org", organization, "address", address)
}

func (c *Client) setPeer(address string, p peer) {
	if len(c.peers) >= maxPeers { // addresses of years; what is known of them is worth a second
		clear(c.peers)
	}
	c.peers[address] = p
}

// mayWarn returns true once a second.
func (c *Client) mayWarn() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	if now.Sub(c.warned) < time.Second && !now.Before(c.warned) {
		return false
	}
	c.warned = now
	return true
}

// Wake tells the actor when something is due, and wakes it if it sleeps, wherever it lives. What is far away is left to
// the sweep.
func (c *Client) Wake(_ context.Context, organization tenancy.OrgID, due time.Time) {
	if due.Sub(c.clock.Now().Add(c.Skew())) <= horizon {
		c.host.Send(organization.String(), &Wake{DueUnixUs: due.UnixMicro()})
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

// Done says that posts of the organization have ended. waits means that it is woken when what follows them can be
// claimed, and need not ask before.
func (c *Client) Done(organization tenancy.OrgID, posts int, waits bool) {
	c.host.SendHere(organization.String(), done{posts, waits})
}

// SetNow tells the database's time, which began to be read at asked, by our clock.
func (c *Client) SetNow(now, asked time.Time) { c.skew.Store(int64(now.Sub(asked))) }

// Skew is the database's clock less ours, as far as it is known.
func (c *Client) Skew() time.Duration { return time.Duration(c.skew.Load()) }

// Close stops every actor.
func (c *Client) Close(ctx context.Context) error { return c.host.Close(ctx) }

// Moved is how often an organization was found to live elsewhere by now.
func (c *Client) Moved() int64 { return c.host.Moves() }

// Alone is how often this process had to admit by itself.
func (c *Client) Alone() int64 { return c.alone.Load() }

// Unanswered is how many requests waited for their organization's actor in vain.
func (c *Client) Unanswered() int64 { return c.silent.Load() }

// Busy is how many requests were refused because too many of their organization waited.
func (c *Client) Busy() int64 { return c.busy.Load() }

// Awake is how many organizations have a living actor here.
func (c *Client) Awake() int { return c.host.Len() }
