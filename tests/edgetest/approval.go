package edgetest

import (
	"context"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/publishing"
	"crier/tenancy"
)

// approvals implements the approval port. It knows the request knownApproval and its ReviewToken.
type approvals struct{ *World }

// ReviewToken is the token of the only valid review link.
const ReviewToken = "0123456789abcdefghijABCDEFGHIJ0123456789abcd"

const knownApproval = "018f0000-0000-7000-8000-0000000000cc"

func (a approvals) Request(
	ctx context.Context, _ tenancy.Principal, _ string, cmd publishing.RequestApproval,
) (publishing.Approval, error) {
	cmd, err := cmd.Cleaned()
	if err == nil && cmd.ReviewerEmail != nil {
		err = cmd.Admit(ctx, *cmd.ReviewerEmail)
	}
	if err != nil {
		return publishing.Approval{}, err
	}
	return a.find(knownApproval)
}

func (a approvals) Status(context.Context, tenancy.Principal, string) (publishing.Approval, error) {
	return a.find(knownApproval)
}

func (a approvals) List(
	context.Context, tenancy.Principal, publishing.ListApprovals,
) ([]publishing.Approval, error) {
	one, err := a.find(knownApproval)
	return []publishing.Approval{one}, err
}

func (a approvals) Withdraw(_ context.Context, _ tenancy.Principal, approval string) (publishing.Approval, error) {
	return a.find(approval)
}

func (a approvals) Resolve(
	_ context.Context, _ tenancy.Principal, approval string, cmd publishing.ResolveApproval,
) (publishing.Approval, error) {
	out, err := a.find(approval)
	if err != nil {
		return out, err
	}
	_, err = cmd.Cleaned()
	out.Status = cmd.Action.Status()
	return out, err
}

func (a approvals) Review(_ context.Context, token string) (publishing.Review, error) {
	if token != ReviewToken {
		return publishing.Review{}, fault.New(fault.NotFound, "fake", "This link is not valid.")
	}
	one, err := a.find(knownApproval)
	return publishing.Review{Approval: one, Organization: "Acme <b>", Thread: a.Thread}, err
}

func (a approvals) ResolveByToken(
	ctx context.Context, token string, cmd publishing.ResolveApproval,
) (publishing.Review, error) {
	out, err := a.Review(ctx, token)
	if err != nil {
		return out, err
	}
	_, err = cmd.Cleaned()
	out.Status, out.ResolvedAt = cmd.Action.Status(), &Day
	return out, err
}

func (a approvals) find(approval string) (publishing.Approval, error) {
	if err := a.note(approval); err != nil {
		return publishing.Approval{}, err
	}
	if approval != knownApproval {
		return publishing.Approval{}, fault.New(fault.NotFound, "fake", "There is no such request.")
	}
	known, _ := id.Parse[publishing.ApprovalTag](approval)
	return publishing.Approval{
		ID: known, Post: a.Thread.Root.ID, Status: publishing.ApprovalPending, RequestedAt: Day,
		ExpiresAt: Day.Add(publishing.ApprovalLife),
	}, nil
}
