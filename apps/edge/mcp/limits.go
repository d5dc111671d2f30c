package mcp

import (
	"context"
	"time"

	"crier/platform/fault"
	"crier/platform/limit"
	"crier/tenancy"
)

// These constants limit how many calls of each kind an organization can run concurrently in this
// process. The public API has the same limits, but its requests are counted separately. Further
// calls wait for up to placeTimeout.
const (
	maxLists   = 2 // lists of posts, and reports
	maxFetches = 2 // uploads from URLs

	placeTimeout = 5 * time.Second
)

// orgLimit counts the calls that each organization is running.
type orgLimit = limit.PerKey[tenancy.OrgID]

// enter waits for one of the organization's slots for the tool. If enter succeeds, the caller must
// call leave once. enter returns RateLimited if no slot is free within placeTimeout.
func (c *call) enter(ctx context.Context) (leave func(), err error) {
	if c.tool.limit == nil {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, placeTimeout)
	defer cancel()
	leave, err = c.tool.limit.Enter(ctx, c.p.Org)
	if err != nil {
		return nil, &fault.Error{
			Kind: fault.RateLimited, Op: "mcp.enter", RetryAfter: time.Second, Err: err,
			Message: "Your organization has too many calls of this kind in progress. Wait for one of them to finish, then try again.",
		}
	}
	return leave, nil
}
