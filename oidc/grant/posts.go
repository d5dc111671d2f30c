package grant

import (
	"context"
	"fmt"

	grantstore "crier/oidc/grant/store"
	"crier/platform/fault"
	"crier/platform/pg"
	"crier/tenancy"
)

// Take counts posts that an agent queues on the given day, in the caller's transaction. If the
// posts exceed the grant's daily limit, Take returns Forbidden and counts nothing. It implements
// post.Allowance.
//
// Take reads the limit from the stored grant, because the grant may have changed since the agent
// requested an approval. It returns nil if the grant has no limit or no longer exists.
func (s *Grants) Take(ctx context.Context, q pg.Querier, p tenancy.Principal, posts int, day string) error {
	_, err := grantstore.TakePosts(ctx, q, p.Agent.Grant, day, posts)
	if !pg.IsNoRows(err) {
		return err
	}
	most, err := grantstore.PostsPerDay(ctx, q, p.Agent.Grant)
	if pg.IsNoRows(err) || err == nil && most == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return fault.New(fault.Forbidden, "oidc.Take",
		fmt.Sprintf("This application may queue at most %d posts a day, and this request would exceed that limit on %s.", most, day))
}
