package org

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"crier/actors/cluster"
	"crier/platform/clock"
	"crier/platform/env"
	"crier/platform/id"
	"crier/platform/ratelimit"
	"crier/tenancy"
)

// Config configures a Client and the actors of its process. Each organization is subject to the
// Limit and MaxInFlight of the process that owns it, so both should be the same in all processes.
type Config struct {
	// Limit is the number of requests allowed per fixed one-minute window.
	Limit int `env:"API_LIMIT, default=60" doc:"Maximum number of requests a minute per organization."`
	// MaxInFlight is the maximum number of posts that an organization can have in flight.
	MaxInFlight int `env:"ORG_MAX_IN_FLIGHT, default=8" doc:"Maximum number of posts per organization that are sent at the same time."`
	// Timeout limits how long Admit waits for the actor. After that, Admit decides using this
	// process's own count of requests.
	Timeout time.Duration `env:"ACTOR_TIMEOUT, default=250ms" doc:"How long a request waits for its organization's actor."`
}

// Validate returns all configuration faults as one joined error. errors.As can extract an env.Fault
// from it.
func (c Config) Validate() error {
	var faults env.Faults
	faults.Number("API_LIMIT", int64(c.Limit), 1, math.MaxInt32)
	faults.Number("ORG_MAX_IN_FLIGHT", int64(c.MaxInFlight), 1, 100_000)
	faults.Duration("ACTOR_TIMEOUT", c.Timeout, time.Millisecond, time.Minute)
	return faults.Err()
}

// Client sends messages to organizations' actors in this process and others. It is safe for
// concurrent use.
type Client struct {
	cfg      Config
	clock    clock.Clock
	log      *slog.Logger
	host     *cluster.Host
	skew     atomic.Int64
	fallback *ratelimit.Windows[tenancy.OrgID]

	mu      sync.Mutex
	waiting map[tenancy.OrgID]int // requests that wait for their organization's actor
	peers   map[string]peer       // other processes, by address
	warned  time.Time             // when a missing actor was last logged

	localAdmissions atomic.Int64
	unanswered      atomic.Int64
	busy            atomic.Int64
}

type peer struct {
	heard       time.Time // when it last responded
	silentUntil time.Time // no request is sent to it until then, because it did not respond
}

const (
	busyWait   = time.Second // Admission.RetryAfter of a request that was not counted
	maxWindows = 1 << 17     // organizations a minute that this process limits locally; about 20 MB
	maxPeers   = 1024
)

// Deps holds the dependencies of a Client and of its process's actors.
type Deps struct {
	// Offers receives the actors' offers; see fairqueue.Offers.
	Offers OfferQueue
	// Place returns a shard's owner; see cluster.Kind.
	Place func(shard int16) (address string, here bool)
	Clock clock.Clock
	Log   *slog.Logger
}

// New returns a Client and starts this process's actor host. It returns the same errors as
// cluster.NewHost. The Client must be closed.
func New(cfg Config, net cluster.Config, deps Deps) (*Client, error) {
	client := &Client{
		cfg: cfg, clock: deps.Clock, log: deps.Log, fallback: ratelimit.NewWindows[tenancy.OrgID](maxWindows),
		waiting: map[tenancy.OrgID]int{}, peers: map[string]peer{},
	}
	produce := func(identity string) actor.Actor {
		parsed, _ := id.Parse[tenancy.OrgTag](identity) // all identities are formatted ids
		return &organization{
			cfg: cfg, clock: deps.Clock, skew: client.Skew, offers: deps.Offers, log: deps.Log, org: parsed,
			retire: func(self *actor.PID) { client.host.Retire(identity, self) },
			resend: func(message any) { client.host.Send(identity, message) },
		}
	}
	kind := cluster.Kind{
		Name: "org", Leave: leave{}, Moved: &AdmitResponse{Moved: true},
		Shard: shard, Place: deps.Place, Produce: produce,
	}
	var err error
	client.host, err = cluster.NewHost(net, kind, deps.Log)
	return client, err
}

// shard returns an identity's shard, or false if the identity is not an organization's id.
func shard(identity string) (int16, bool) {
	organization, ok := id.Parse[tenancy.OrgTag](identity)
	return int16(tenancy.Shard(organization)), ok
}

// Address returns the address at which other processes reach this process's actors, or "" if
// cluster.Config.Listen is empty.
func (c *Client) Address() string { return c.host.Address() }

// Evict stops the actors whose shards this process no longer owns. It does not wait for the actors
// to stop.
func (c *Client) Evict() { c.host.Evict() }

// maxWaiting is how many of an organization's requests may wait for its actor at once. Without this
// limit, the actor's mailbox could grow without bound.
const maxWaiting = 256

// enter counts a request as waiting. It returns false if too many requests by the organization are
// already waiting.
func (c *Client) enter(organization tenancy.OrgID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[organization] >= maxWaiting {
		return false
	}
	c.waiting[organization]++
	return true
}

func (c *Client) leave(organization tenancy.OrgID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[organization]--
	if c.waiting[organization] == 0 {
		delete(c.waiting, organization)
	}
}

// Admit counts a request by the organization and reports whether the request is allowed. If the
// actor does not respond within Config.Timeout, Admit decides using this process's own count of
// requests, so that a dead process does not cause requests to be rejected. In that case, an
// organization can make up to Limit requests in each process.
//
// If too many requests by the organization are already waiting for the actor, Admit rejects the
// request immediately and does not count it.
func (c *Client) Admit(_ context.Context, organization tenancy.OrgID) Admission {
	if !c.enter(organization) {
		c.busy.Add(1)
		return Admission{Limit: c.cfg.Limit, Reset: c.clock.Now().Add(busyWait), RetryAfter: busyWait}
	}
	defer c.leave(organization)
	name := organization.String()
	address, here := c.host.Where(name)
	if !here && c.isSilent(address) {
		return c.admitLocally(organization)
	}
	asked := c.clock.Now()
	answer, err := c.host.Request(name, &AdmitRequest{}, c.cfg.Timeout)
	if r, ok := answer.(*AdmitResponse); ok {
		c.markHeard(address, here)
		return admission(r)
	}
	switch {
	case errors.Is(err, cluster.ErrSilent):
		c.markUnanswered(organization, address, asked)
	case c.mayWarn():
		c.log.Warn("no process is running an organization's actor; counting its requests locally",
			"org", organization, "error", err)
	}
	return c.admitLocally(organization)
}

func (c *Client) admitLocally(organization tenancy.OrgID) Admission {
	c.localAdmissions.Add(1)
	limit := c.cfg.Limit
	v := c.fallback.Take(organization, c.clock.Now(), limit)
	return Admission{Allowed: v.Allowed, Limit: limit, Remaining: v.Remaining, Reset: v.Reset, RetryAfter: v.RetryAfter}
}

// silentFor is how long no requests are sent to a process that has failed to respond. Otherwise,
// every request for an organization that the process owns would wait for the full timeout until the
// organization has a new owner.
const silentFor = time.Second

func (c *Client) isSilent(address string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clock.Now().Before(c.peers[address].silentUntil)
}

func (c *Client) markHeard(address string, here bool) {
	if here || address == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setPeer(address, peer{heard: c.clock.Now()})
}

// markUnanswered records that an actor did not respond to a request sent at asked. It marks the
// actor's process as silent, unless the process has responded to another request since then.
func (c *Client) markUnanswered(organization tenancy.OrgID, address string, asked time.Time) {
	c.unanswered.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	p, now := c.peers[address], c.clock.Now()
	if address == "" || !p.heard.Before(asked) || now.Before(p.silentUntil) {
		return
	}
	p.silentUntil = now.Add(silentFor)
	c.setPeer(address, p)
	c.log.Warn("an organization's actor did not respond; counting requests to its process locally",
		"org", organization, "address", address)
}

func (c *Client) setPeer(address string, p peer) {
	// Most peers are processes that no longer exist. Forgetting a live process has an effect for at
	// most a second.
	if len(c.peers) >= maxPeers {
		clear(c.peers)
	}
	c.peers[address] = p
}

// mayWarn returns true at most once a second.
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

// Wake sets the timer of the organization's actor to fire no later than due, a time on the database
// clock. Wake starts the actor if necessary and does not wait for it. The sweep handles posts that
// are due in more than 90 seconds, and posts whose Wake was lost.
func (c *Client) Wake(_ context.Context, organization tenancy.OrgID, due time.Time) {
	if due.Sub(c.clock.Now().Add(c.Skew())) <= horizon {
		c.host.Send(organization.String(), &Wake{DueUnixUs: due.UnixMicro()})
	}
}

// Granted responds to an offer that was made in this process. claimed is the number of posts that
// were claimed and are now in flight. next is when the next post can be claimed, or nil if none is
// known. Both next and now use the database clock.
func (c *Client) Granted(organization tenancy.OrgID, claimed int, next *time.Time, now time.Time) {
	wait := noWait
	if next != nil {
		wait = max(0, next.Sub(now))
	}
	c.host.SendLocal(organization.String(), granted{claimed: claimed, wait: wait})
}

// Refused responds to an offer whose claim failed. The actor makes a new offer after wait.
func (c *Client) Refused(organization tenancy.OrgID, wait time.Duration) {
	c.host.SendLocal(organization.String(), granted{wait: wait})
}

// Done reports how many claimed posts of the organization have ended. If waits is true, a Wake will
// follow once the next posts can be claimed, so the actor does not make an offer now.
func (c *Client) Done(organization tenancy.OrgID, posts int, waits bool) {
	c.host.SendLocal(organization.String(), done{posts: posts, waits: waits})
}

// SetNow updates the clock skew. now is the database's time, as read by a statement. asked is the
// time at which the statement was sent, according to this process's clock.
func (c *Client) SetNow(now, asked time.Time) { c.skew.Store(int64(now.Sub(asked))) }

// Skew returns the difference between the database clock and this process's clock, or 0 before
// SetNow is called. It is positive if the database clock is ahead.
func (c *Client) Skew() time.Duration { return time.Duration(c.skew.Load()) }

// Close stops all of this process's actors and returns the error from cluster.Host.Close. After
// that, requests are counted only in this process.
func (c *Client) Close(ctx context.Context) error { return c.host.Close(ctx) }

// Moved returns how many requests reached a process or an actor that no longer serves the
// organization.
func (c *Client) Moved() int64 { return c.host.Moves() }

// LocalAdmissions returns how many requests were counted by this process itself rather than by an
// actor.
func (c *Client) LocalAdmissions() int64 { return c.localAdmissions.Load() }

// Unanswered returns how many requests received no response from an actor in time.
func (c *Client) Unanswered() int64 { return c.unanswered.Load() }

// Busy returns how many requests were rejected because too many other requests by the same
// organization were waiting for the actor.
func (c *Client) Busy() int64 { return c.busy.Load() }

// ActorCount returns how many organizations have an actor in this process; see
// cluster.Host.ActorCount.
func (c *Client) ActorCount() int { return c.host.ActorCount() }
