package grant

import (
	"context"
	"fmt"

	grantstore "crier/oidc/grant/store"
	"crier/platform/fault"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
)

// TakePosts counts posts that an agent queues on a day of the organization, in the caller's
// transaction, and returns Forbidden if they are more than the person allowed. For any other
// principal, and for an agent without such a limit, it does nothing. Example of a day: 2026-01-31
//
// The day's row is locked until the transaction ends, so concurrent calls never exceed the limit,
// and what is rolled back does not count.
func (s *Grants) TakePosts(ctx context.Context, q pg.Querier, p tenancy.Principal, posts int, day string) error {
	if p.Via != tenancy.ViaAgent || p.Agent.Limits == nil || p.Agent.Limits.PostsPerDay == 0 {
		return nil
	}
	return s.TakePostsOf(ctx, q, p.Agent.Grant, posts, day)
}

// TakePostsOf is like TakePosts for the agent of a grant, such as one whose request for approval is
// being answered by a person.
func (s *Grants) TakePostsOf(ctx context.Context, q pg.Querier, grant tenancy.GrantID, posts int, day string) error {
	const op = "oidc.TakePosts"
	if posts <= 0 {
		return nil
	}
	_, err := grantstore.TakePosts(ctx, q, grant, day, posts)
	if !pg.IsNoRows(err) {
		return db.Fault(op, err)
	}
	most, err := grantstore.PostsPerDay(ctx, q, grant)
	if pg.IsNoRows(err) {
		return fault.New(fault.Forbidden, op, "The permission of this application has ended.")
	}
	if err != nil {
		return db.Fault(op, err)
	}
	return fault.New(fault.Forbidden, op, fmt.Sprintf("This application may queue %d posts a day. With this request, it "+
		"would exceed that on %s, which ends at midnight in the organization's time zone.", most, day))
}
