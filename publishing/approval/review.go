package approval

import (
	"context"

	"crier/platform/pg"
	"crier/publishing"
	approvalstore "crier/publishing/approval/store"
)

// Review returns the parts of a request that a guest may see. It returns NotFound if the token is
// invalid. It returns Gone if the request has expired or is void, or if its post was deleted.
func (s *Approvals) Review(ctx context.Context, token string) (publishing.Review, error) {
	const op = "publishing.Review"
	stored, guest, err := s.reviewed(ctx, op, token)
	if err != nil {
		return publishing.Review{}, err
	}
	now, org := s.requests.deps.Clock.Now(), guest.Org
	if err := stored.Readable(now); err != nil {
		return publishing.Review{}, err
	}
	thread, found, err := s.deps.Threads.FindThread(ctx, org, stored.Post)
	if err != nil {
		return publishing.Review{}, pg.Fault(op, err)
	}
	if !found {
		return publishing.Review{}, goneFault(publishing.NoPost(op))
	}
	name, _, err := approvalstore.Reviewable(ctx, s.db, org)
	if err != nil {
		return publishing.Review{}, pg.Fault(op, err)
	}
	// Read the request again. If the post has been edited since the first read, the request has
	// ended, and the thread may not be the one that was submitted for approval.
	again, _, err := s.reviewed(ctx, op, token)
	if err != nil {
		return publishing.Review{}, err
	}
	if err := again.Readable(now); err != nil {
		return publishing.Review{}, err
	}
	return publishing.Review{Approval: again.At(now), Organization: name, Thread: thread, Org: org}, nil
}
