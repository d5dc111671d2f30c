package client

import (
	"context"
	"time"

	clientstore "crier/oidc/client/store"
	"crier/tenancy/db"
)

const (
	// neverApproved is how long a client that nobody has approved is kept after its last
	// registration.
	neverApproved = 30 * 24 * time.Hour
	// unusedDocument is how long a metadata document without grants is kept.
	unusedDocument = 2 * documentLife
	// prunePage is the maximum number of clients that one statement deletes.
	prunePage = 200
)

// Prune deletes registered clients that nobody has approved and that last registered more than 30
// days ago. It also deletes metadata documents that have no grants and were last fetched or
// approved more than two days ago. These documents can be fetched again. Prune returns the number
// of deleted clients.
func (s *Clients) Prune(ctx context.Context) (total int, err error) {
	const op = "oidc.PruneClients"
	if err := s.db.CheckClock(ctx, op); err != nil {
		return 0, err
	}
	now := s.clock.Now()
	for {
		n, err := clientstore.Prune(ctx, s.db, now.Add(-neverApproved), now.Add(-unusedDocument), prunePage)
		total += n
		if err != nil || n < prunePage {
			return total, db.Fault(op, err)
		}
	}
}
