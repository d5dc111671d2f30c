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
	// requestRate is how many reads per second one process can start per server, for all
	// organizations' requests together. requestBurst is how many of these reads it can start at
	// once. A read takes one call, or three if the credential is refreshed.
	//
	// Together, three processes at requestRate and one at SnapshotRate make as many calls as a
	// Bluesky server accepts from one client.
	requestRate  = 2
	requestBurst = 20
	// requestsAtServer limits an organization's concurrent reads from one server. requestsOfOrg
	// limits an organization's reads across all servers, including reads that are still waiting.
	requestsAtServer = 4
	requestsOfOrg    = 200
)

// requestQueue limits the reads made on behalf of requests. It is safe for concurrent use.
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

// enter waits for an organization's turn at every server of a destination (see
// connector.Destination). Waiting for only one server is not enough, because the person who
// connected the channel may have made up that server's name. The servers are sorted, so two reads
// never wait for each other.
//
// The caller must call leave once, after the read. enter returns RateLimited if the organization
// has too many reads in progress, or if its turn does not come before ctx ends or insightTurn has
// passed.
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
