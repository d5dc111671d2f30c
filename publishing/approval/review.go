package approval

import (
	"context"

	"crier/platform/pg"
	"crier/publishing"
	approvalstore "crier/publishing/approval/store"
)

// Review returns what a guest sees of a request. It returns NotFound for an invalid token, and Gone
// for a request that has expired or is void.
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
	// An edit between the two reads ends the request: the thread may not be what approval was
	// requested for.
	again, _, err := s.reviewed(ctx, op, token)
	if err != nil {
		return publishing.Review{}, err
	}
	if err := again.Readable(now); err != nil {
		return publishing.Review{}, err
	}
	return publishing.Review{Approval: again.At(now), Organization: name, Thread: thread, Org: org}, nil
}
