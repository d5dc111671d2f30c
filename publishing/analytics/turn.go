package analytics

import (
	"context"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/limit"
	"crier/tenancy"
)

const (
	// turnRate and turnBurst are how many readings a second, and at once, the requests of all organizations begin at one
	// server in one process. A reading is one call, or three when its access is refreshed. With SnapshotRate, three
	// processes make as many calls as a Bluesky server takes from one client.
	turnRate  = 2
	turnBurst = 20
	// turnPlaces is how many readings of requests of one organization are in progress at one server, and turnReadings at
	// all servers, with those that wait.
	turnPlaces   = 4
	turnReadings = 200
	// turnsForget is how often the servers that nobody uses are deleted from the map.
	turnsForget = time.Minute
)

// turns are the turns of the readings of requests, at each server by itself: one that fails or has much to do delays no
// other. At a server the organizations take turns, so that one that asks for much delays the others by one reading each
// time. It is safe for concurrent use.
type turns struct {
	places   *limit.PerKey[turnPlace]
	readings *limit.PerKey[tenancy.OrgID]

	mu        sync.Mutex
	servers   map[string]*turnServer
	forgotten time.Duration // when unused servers were last deleted, by clock.Boot
}

// turnPlace is an organization at a server.
type turnPlace struct {
	org    tenancy.OrgID
	server string
}

type turnServer struct {
	queue *limit.Fair[tenancy.OrgID]
	pace  *rate.Limiter
	users int // readings that wait for their turn
}

func newTurns() *turns {
	return &turns{
		places: limit.New[turnPlace](turnPlaces), readings: limit.New[tenancy.OrgID](turnReadings),
		servers: map[string]*turnServer{},
	}
}

// enter waits for the turn of an organization at each server of a destination, see connector.Destination: one of them
// alone may be any name that the person who connected the channel has made up. The servers are sorted, so that two
// readings never wait for each other. leave must be called once, after the reading. enter returns RateLimited when the
// organization has too many readings in progress, and when its turn does not come within insightTurn or before ctx ends.
func (t *turns) enter(ctx context.Context, org tenancy.OrgID, destination string) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, insightTurn)
	defer cancel()
	leaveAll, ok := t.readings.TryEnter(org)
	if !ok {
		return nil, tooManyReadings(limit.ErrFull)
	}
	held := []func(){leaveAll}
	leave = func() {
		for _, l := range held {
			l()
		}
	}
	for host := range strings.SplitSeq(destination, ",") {
		leavePlace, err := t.places.Enter(ctx, turnPlace{org: org, server: host})
		if err != nil {
			leave()
			return nil, tooManyReadings(err)
		}
		held = append(held, leavePlace)
		if err := t.wait(ctx, org, host); err != nil {
			leave()
			return nil, tooManyReadings(err)
		}
	}
	return leave, nil
}

func (t *turns) wait(ctx context.Context, org tenancy.OrgID, name string) error {
	server := t.join(name)
	defer t.left(server)
	leave, err := server.queue.Enter(ctx, org)
	if err != nil {
		return err
	}
	defer leave()
	return server.pace.Wait(ctx)
}

func (t *turns) join(name string) *turnServer {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget()
	server := t.servers[name]
	if server == nil {
		server = &turnServer{queue: limit.NewFair[tenancy.OrgID](1, turnPlaces), pace: rate.NewLimiter(turnRate, turnBurst)}
		t.servers[name] = server
	}
	server.users++
	return server
}

func (t *turns) left(server *turnServer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	server.users--
}

// forget deletes the servers that nobody uses and whose pace is that of a new one.
func (t *turns) forget() {
	now := clock.Boot()
	if now-t.forgotten < turnsForget {
		return
	}
	t.forgotten = now
	for name, server := range t.servers {
		if server.users == 0 && server.pace.Tokens() >= turnBurst {
			delete(t.servers, name)
		}
	}
}

func tooManyReadings(err error) error {
	return &fault.Error{
		Kind: fault.RateLimited, Op: "publishing.analytics", RetryAfter: 30 * time.Second, Err: err,
		Message: "Too many statistics of this server are asked for; try again in half a minute.",
	}
}
