package approval

import (
	"context"

	"crier/platform/pg"
	approvalstore "crier/publishing/approval/store"
)

// forgetSize is the maximum number of organizations that ForgetReviewer fetches at once.
const forgetSize = 200

// ForgetReviewer removes an email address from all organizations' approval requests. It is called
// when the person with this address is purged. It returns Unavailable if the database cannot be
// reached. After a crash or an error, the next call continues where this one stopped.
func (s *Approvals) ForgetReviewer(ctx context.Context, email string) error {
	const op = "publishing.ForgetReviewer"
	for {
		orgs, err := approvalstore.ReviewerOrgs(ctx, s.db, email, forgetSize)
		if err != nil || len(orgs) == 0 {
			return pg.Fault(op, err)
		}
		for _, org := range orgs {
			if err := approvalstore.ForgetReviewer(ctx, s.db, org, email); err != nil {
				return pg.Fault(op, err)
			}
		}
	}
}
