package client

import (
	"context"
	"time"

	clientstore "crier/oidc/client/store"
	"crier/tenancy/db"
)

const (
	// neverApproved is how long a registered client is kept if nobody approves it.
	neverApproved = 30 * 24 * time.Hour
	// unusedDocument is how long a metadata document without grants is kept.
	unusedDocument = 2 * documentLife
	// prunePage is the maximum number of clients that one statement deletes.
	prunePage = 200
)

// Prune deletes registered clients that nobody has approved within 30 days, and metadata documents
// that nobody uses. Such a document can be fetched again. It returns the number of deleted clients.
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
