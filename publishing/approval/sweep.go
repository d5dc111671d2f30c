package approval

import (
	"context"
	"time"

	"crier/platform/batch"
	"crier/platform/pg"
	"crier/publishing"
	approvalstore "crier/publishing/approval/store"
	"crier/publishing/db"
)

const (
	// approvalsAtOnce is the maximum number of requests that SweepApprovals fetches at once.
	approvalsAtOnce = 200
	// approvalWait is the maximum time the sweep waits for one of an organization's database
	// connections.
	approvalWait = 200 * time.Millisecond
)

type approvalSweep = *batch.Sweep[approvalstore.DueApproval]

// SweepApprovals ends expired requests and queues due reminders for all organizations. Each request
// is handled in its own transaction. SweepApprovals returns the number of requests it handled.
//
// If Postgres rejects a row or an organization is busy, SweepApprovals skips the affected request,
// and a later call retries it. The first such error is returned at the end.
func (s *Approvals) SweepApprovals(ctx context.Context) (int, error) {
	return s.sweep.Run(pg.WithOrgWait(ctx, approvalWait))
}

func (s *Approvals) newSweep() approvalSweep {
	return &batch.Sweep[approvalstore.DueApproval]{
		Size: approvalsAtOnce, PauseFactor: 1,
		IsItemError: func(err error) bool { return pg.IsRowError(err) || pg.IsOrgBusy(err) },
		Find: func(
			ctx context.Context, after approvalstore.DueApproval, limit int,
		) ([]approvalstore.DueApproval, error) {
			return approvalstore.ApprovalsDue(ctx, s.db, after, s.requests.deps.Clock.Now(), limit)
		},
		Do: func(ctx context.Context, items []approvalstore.DueApproval) (n int, _ error) {
			for _, item := range items {
				if err := s.sweepOne(ctx, item); err != nil {
					return n, err
				}
				n++
			}
			return n, nil
		},
	}
}

// sweepOne ends one request or queues its reminder. It does nothing if the request is no longer
// due.
func (s *Approvals) sweepOne(ctx context.Context, due approvalstore.DueApproval) error {
	stored, err := approvalstore.ApprovalAny(ctx, s.db, due.Org, due.Approval)
	if pg.IsNoRows(err) || err == nil && stored.Status != publishing.ApprovalPending {
		return nil
	}
	if err != nil {
		return err
	}
	now := s.requests.deps.Clock.Now()
	return s.db.InOrg(ctx, due.Org, func(tx *db.Tx) error {
		if a := stored.At(now); a.Status == publishing.ApprovalExpired {
			_, err := s.requests.end(ctx, tx, a, publishing.ApprovalPending, publishing.EventApprovalExpired, "", "")
			return err
		}
		remind, err := approvalstore.Reminded(ctx, tx, due.Approval, now)
		if err != nil || !remind || s.requests.deps.Mails == nil {
			return err
		}
		return approvalstore.AddReviewTask(ctx, tx, s.requests.deps.Mails, ReviewMailTask, due.Approval)
	})
}
