package approval

import (
	"context"

	"crier/platform/fault"
	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// Withdraw ends a request and returns it. The request's links stop working. Any approval that
// resulted from the request becomes void, and a post that this approval queued becomes a draft
// again.
//
// Withdraw returns NotFound if the request does not exist or is void. It returns Forbidden unless
// the principal is the requester or an administrator. It returns Conflict if the post is being
// published or the request has just been answered.
func (s *Approvals) Withdraw(ctx context.Context, p tenancy.Principal, approval string) (publishing.Approval, error) {
	const op = "publishing.WithdrawApproval"
	var out publishing.Approval
	stored, err := s.find(ctx, op, p.Org, approval)
	if err != nil {
		return out, err
	}
	if stored.Status == publishing.ApprovalVoid {
		return out, noApproval(op)
	}
	if err := stored.MayWithdraw(p); err != nil {
		return out, err
	}
	err = s.db.InOrgAs(ctx, p, func(tx *db.Tx) error {
		err := s.db.Audit(ctx, tx, p, tenancy.ActionApprovalWithdrawn, "post "+stored.Post.String())
		if err != nil {
			return err
		}
		now := s.requests.deps.Clock.Now()
		out = stored.Approval
		out.Status, out.ResolvedAt = publishing.ApprovalVoid, &now
		ended, err := s.withdraw(ctx, tx, p, out, stored.Status)
		if err == nil && !ended {
			err = fault.New(fault.Conflict, op, "The request has just been answered; read it again.")
		}
		return err
	})
	return out, db.PostFault(op, err)
}

const withdrawn = "The request was withdrawn."

// withdraw ends a request or, if the request was approved, the resulting approval. from is the
// request's stored status. ended is false if another transaction has changed that status.
//
// If an agent made or withdraws the request, the later occurrences of a repeated post still wait
// for approval. Otherwise, an agent that must ask could withdraw its request, and the next
// occurrence would be queued without approval.
func (s *Approvals) withdraw(
	ctx context.Context, tx *db.Tx, p tenancy.Principal, a publishing.Approval, from publishing.ApprovalStatus,
) (ended bool, err error) {
	if from == publishing.ApprovalApproved {
		gone, err := s.withdrawApproved(ctx, tx, p, a.Post, a.ID)
		if err != nil {
			return false, err
		}
		return gone != nil, s.requests.NotifyEnded(ctx, tx, gone, withdrawn)
	}
	if a.Agent.IsZero() && p.Via != tenancy.ViaAgent { // an agent may have had to ask
		if err := s.deps.Drafts.FreeSeries(ctx, tx, a.Post); err != nil {
			return false, err
		}
	}
	return s.requests.end(ctx, tx, a, from, publishing.EventApprovalVoid, tenancy.ActorOf(p), withdrawn)
}

// withdrawApproved withdraws a post's approval. If the post is in the queue, the post and every
// queued occurrence of its series become drafts again. withdrawApproved returns Conflict if any of
// these posts is being published.
func (s *Approvals) withdrawApproved(
	ctx context.Context, tx *db.Tx, p tenancy.Principal, root publishing.PostID, approval publishing.ApprovalID,
) (*publishing.Approval, error) {
	if err := s.deps.Drafts.Unschedule(ctx, tx, p, root, approval); err != nil {
		return nil, err
	}
	return s.requests.EndInForce(ctx, tx, p, root, true, withdrawn)
}
