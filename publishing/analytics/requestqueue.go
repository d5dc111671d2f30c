package analytics

import (
	"context"
	"strings"
	"time"

	"crier/platform/fault"
	"crier/platform/limit"
	"crier/tenancy"
)

const (
	// Requests of all organizations begin at most requestRate readings per second, and requestBurst
	// at once, at one server in one process. A reading is one call, or three if its access is
	// refreshed. Together with SnapshotRate, three processes make as many calls as a Bluesky server
	// accepts from one client.
	requestRate  = 2
	requestBurst = 20
	// requestsAtServer is how many readings one organization may have in progress at one server.
	// requestsOfOrg is the same limit for all servers, including readings that wait.
	requestsAtServer = 4
	requestsOfOrg    = 200
)

// requestQueue limits the readings that requests cause. It is safe for concurrent use.
type requestQueue struct {
	atServer *limit.PerKey[orgAtServer]
	ofOrg    *limit.PerKey[tenancy.OrgID]
	servers  *serverQueues
}

type orgAtServer struct {
	org    tenancy.OrgID
	server string
}

func newRequestQueue() *requestQueue {
	return &requestQueue{
		atServer: limit.New[orgAtServer](requestsAtServer), ofOrg: limit.New[tenancy.OrgID](requestsOfOrg),
		servers: newServerQueues(requestRate, requestBurst),
	}
}

// enter waits for the turn of an organization at every server of a destination (see
// connector.Destination), because a single one of them may be a name made up by the person who
// connected the channel. The servers are sorted, so that two readings never wait for each other.
//
// leave must be called once, after the reading. enter returns RateLimited if the organization has
// too many readings in progress, or if its turn does not come within insightTurn or before ctx
// ends.
func (q *requestQueue) enter(ctx context.Context, org tenancy.OrgID, destination string) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, insightTurn)
	defer cancel()
	leaveOrg, ok := q.ofOrg.TryEnter(org)
	if !ok {
		return nil, tooManyReadings(limit.ErrFull)
	}
	held := []func(){leaveOrg}
	leave = func() {
		for _, l := range held {
			l()
		}
	}
	for host := range strings.SplitSeq(destination, ",") {
		leaveServer, err := q.atServer.Enter(ctx, orgAtServer{org: org, server: host})
		if err != nil {
			leave()
			return nil, tooManyReadings(err)
		}
		held = append(held, leaveServer)
		if err := q.wait(ctx, org, host); err != nil {
			leave()
			return nil, tooManyReadings(err)
		}
	}
	return leave, nil
}

func (q *requestQueue) wait(ctx context.Context, org tenancy.OrgID, name string) error {
	server := q.servers.join(name)
	defer q.servers.leave(server)
	return server.wait(ctx, org)
}

func tooManyReadings(err error) error {
	return &fault.Error{
		Kind: fault.RateLimited, Op: "publishing.analytics", RetryAfter: 30 * time.Second, Err: err,
		Message: "Too many requests for statistics from this server are waiting; try again in 30 seconds.",
	}
}
