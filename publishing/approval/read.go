package approval

import (
	"context"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	approvalstore "crier/publishing/approval/store"
	"crier/tenancy"
)

// Status returns a post's pending request or, if none is pending, its newest request. If there is
// no request or the newest one is void, Status returns the zero Approval, which is shown as NONE.
// It returns NotFound if the post does not exist.
func (s *Approvals) Status(ctx context.Context, p tenancy.Principal, post string) (publishing.Approval, error) {
	const op = "publishing.ApprovalStatus"
	parsed, ok := id.Parse[publishing.PostTag](post)
	if !ok {
		return publishing.Approval{}, publishing.NoPost(op)
	}
	root, found, err := s.deps.Threads.FindRoot(ctx, p.Org, parsed)
	if err != nil {
		return publishing.Approval{}, pg.Fault(op, err)
	}
	if !found {
		return publishing.Approval{}, publishing.NoPost(op)
	}
	stored, err := approvalstore.FindApprovalOf(ctx, s.db, p.Org, root)
	if pg.IsNoRows(err) || err == nil && stored.Shown() == publishing.ApprovalNone {
		return publishing.Approval{}, nil
	}
	if err != nil {
		return publishing.Approval{}, pg.Fault(op, err)
	}
	return s.shown(p, stored), nil
}

// shown returns an approval with the fields that the principal may see.
func (s *Approvals) shown(p tenancy.Principal, stored approvalstore.StoredApproval) publishing.Approval {
	a := stored.At(s.requests.deps.Clock.Now())
	if !a.ShowsLink(p) {
		return a
	}
	link, err := s.sharedURL(p, stored)
	if err != nil {
		s.deps.Log.Error(
			"cannot show the link of an approval request", "org", p.Org, "approval", a.ID, "error", err,
		)
	}
	a.ReviewURL = link
	return a
}

// List returns the organization's requests, newest first. It returns Invalid if q.Status is unknown
// or q.Before is not an id.
func (s *Approvals) List(
	ctx context.Context, p tenancy.Principal, q publishing.ListApprovals,
) ([]publishing.Approval, error) {
	const op = "publishing.ListApprovals"
	before, ok := id.Parse[publishing.ApprovalTag](q.Before)
	var faults fault.List
	if !ok && q.Before != "" {
		faults.Add("before", "must be the id of an approval")
	}
	status := publishing.ApprovalStatus(q.Status)
	switch status {
	case "", publishing.ApprovalNone, publishing.ApprovalPending, publishing.ApprovalApproved,
		publishing.ApprovalRejected, publishing.ApprovalExpired:
	default:
		faults.Add("status", "must be one of: PENDING, APPROVED, REJECTED, EXPIRED, NONE")
	}
	if err := faults.Err(op, "The query is not valid."); err != nil {
		return nil, err
	}
	limit := min(max(q.Limit, 1), publishing.MaxApprovalPage)
	all, err := approvalstore.Approvals(ctx, s.db, p.Org, before, string(status), s.requests.deps.Clock.Now(), limit)
	if err != nil {
		return nil, pg.Fault(op, err)
	}
	out := make([]publishing.Approval, 0, len(all))
	for _, stored := range all {
		out = append(out, s.shown(p, stored))
	}
	return out, nil
}

// find returns the request with the given id, which is in the form sent by the client. If there is
// no such request, it returns NotFound.
func (s *Approvals) find(
	ctx context.Context, op string, org tenancy.OrgID, approval string,
) (approvalstore.StoredApproval, error) {
	parsed, ok := id.Parse[publishing.ApprovalTag](approval)
	if !ok {
		return approvalstore.StoredApproval{}, noApproval(op)
	}
	stored, err := approvalstore.Approval(ctx, s.db, org, parsed)
	if pg.IsNoRows(err) {
		return stored, noApproval(op)
	}
	return stored, pg.Fault(op, err)
}

func noApproval(op string) error {
	return fault.New(fault.NotFound, op, "There is no such approval request.")
}

// MailedBy returns the pending requests whose emailed links stop working when the given person's
// membership ends. It runs in q's transaction and returns any Postgres error.
func (s *Approvals) MailedBy(
	ctx context.Context, q pg.Querier, person tenancy.PersonID,
) ([]tenancy.EndedReview, error) {
	return approvalstore.ReviewsMailed(ctx, q, person, s.requests.deps.Clock.Now().Add(-publishing.ApprovalLife))
}
