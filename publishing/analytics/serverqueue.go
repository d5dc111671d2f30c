package analytics

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"crier/platform/clock"
	"crier/platform/limit"
	"crier/publishing/connector"
	"crier/tenancy"
)

// forgetInterval is the minimum time between two removals of unused servers from the map.
const forgetInterval = time.Minute

// serverQueues holds a queue for each platform server, by name. Each server is rate-limited
// separately, so that a failing or busy server does not delay the others. It is safe for concurrent
// use.
type serverQueues struct {
	perSecond float64
	burst     int

	mu        sync.Mutex // protects the fields below and the field users of each server
	servers   map[string]*serverQueue
	forgotten time.Duration // when unused servers were last removed, by clock.Boot
}

// serverQueue limits the rate of reads from one server and counts its failures.
type serverQueue struct {
	// orgs makes organizations take turns. An organization with many reads delays the others by
	// only one read per turn.
	orgs  *limit.Fair[tenancy.OrgID]
	pace  *rate.Limiter
	users int

	mu       sync.Mutex
	failures int // in a row
}

// newServerQueues returns queues that start at most perSecond reads per second from each server,
// and at most burst reads at once.
func newServerQueues(perSecond float64, burst int) *serverQueues {
	return &serverQueues{perSecond: perSecond, burst: burst, servers: map[string]*serverQueue{}}
}

// join returns the queue for the server with the given name. The queue is kept at least until leave
// is called.
func (q *serverQueues) join(name string) *serverQueue {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.forget()
	server := q.servers[name]
	if server == nil {
		server = &serverQueue{
			orgs: limit.NewFair[tenancy.OrgID](1, requestsAtServer),
			pace: rate.NewLimiter(rate.Limit(q.perSecond), q.burst),
		}
		q.servers[name] = server
	}
	server.users++
	return server
}

func (q *serverQueues) leave(server *serverQueue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	server.users--
}

// forget removes unused servers whose rate limiter is back at its full burst. Such a server has no
// state worth keeping.
func (q *serverQueues) forget() {
	now := clock.Boot()
	if now-q.forgotten < forgetInterval {
		return
	}
	q.forgotten = now
	for name, server := range q.servers {
		if server.users == 0 && server.pace.Tokens() >= float64(q.burst) {
			delete(q.servers, name)
		}
	}
}

// wait waits until it is the organization's turn at the server.
func (s *serverQueue) wait(ctx context.Context, org tenancy.OrgID) error {
	leave, err := s.orgs.Enter(ctx, org)
	if err != nil {
		return err
	}
	defer leave()
	return s.pace.Wait(ctx)
}

// isFailing reports whether the server has failed so often in a row that this sweep must not query
// it again.
func (s *serverQueue) isFailing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failures >= snapshotFailures
}

// answered records the result and duration of a call. It counts a failure only if the server may
// have caused it.
func (s *serverQueue) answered(err error, took time.Duration) {
	kind := connector.KindOf(err, false)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case took >= snapshotSlow, err != nil && (kind == connector.KindTransient || kind == connector.KindUnknown):
		s.failures++
	case err == nil:
		s.failures = 0
	}
}
