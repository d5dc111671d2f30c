package scheduler

import (
	"context"

	"crier/platform/fault"
	"crier/publishing"
	"crier/publishing/db"
	schedulerstore "crier/publishing/scheduler/store"
	"crier/tenancy"
)

// Stop stops publishing for an organization until Resume is called. The organization's members
// cannot override the stop. Once Stop has returned nil, no call begins for any of the
// organization's posts, even on a channel that is connected later. Stop revokes the claims that
// have not reached their call. Calls in progress run to completion.
//
// Only the instance itself stops an organization. It does so when the organization is suspended or
// its deletion is requested. by identifies who stopped the organization, as shown in timelines.
//
// Stop is idempotent. It returns NotFound if the organization does not exist, and Unavailable if
// the database cannot be reached. If there is a crash between its two transactions, posts are held
// back, but some may stay claimed until the attempt to mark their call fails.
func (s *Queue) Stop(ctx context.Context, org tenancy.OrgID, by string) error {
	const op = "publishing.Stop"
	err := s.db.InOrg(ctx, org, func(tx *db.Tx) error {
		known, err := schedulerstore.Pause(ctx, tx, publishing.PauseInstance, org, by)
		if err != nil {
			return err
		}
		if !known {
			return fault.New(fault.NotFound, op, "There is no such organization.")
		}
		return nil
	})
	if err != nil {
		return db.Fault(op, err)
	}
	err = s.db.InOrg(ctx, org, func(tx *db.Tx) error {
		return schedulerstore.Revoke(ctx, tx, publishing.PauseInstance, org, by)
	})
	return db.Fault(op, err)
}

// Resume ends a stop. Pauses set by the organization's members stay in force. Resume does nothing
// if the organization does not exist, is not stopped, is suspended, or is marked for deletion.
//
// catchUp says what happens to the posts that became due during the stop. If it is set, as after a
// suspension, these posts are published one by one. Posts that are more than Config.PauseMaxAge
// late are abandoned instead. If it is not set, as after a canceled deletion, all posts that became
// due during the stop end as missed. by identifies who resumed publishing, as shown in timelines.
//
// If there are many missed posts, they are abandoned in a series of short transactions. The last
// transaction ends the stop. If there is an error or a crash before that, or if ctx ends, the
// organization is still stopped and the next call continues. Resume returns Unavailable if the
// database cannot be reached.
func (s *Queue) Resume(ctx context.Context, org tenancy.OrgID, by string, catchUp bool) error {
	end := schedulerstore.PauseEnd{
		Scope: publishing.PauseInstance, Subject: org, AllSince: !catchUp, By: by,
	}
	if catchUp {
		end.Hold = s.cfg.PauseMaxAge
	}
	missed, _, err := s.endPause(ctx, org, end, func(fn func(*db.Tx) (bool, error)) error {
		return s.db.InOrg(ctx, org, func(tx *db.Tx) error {
			_, err := fn(tx)
			return err
		})
	})
	if missed > 0 {
		s.deps.Log.Info("posts were given up because publishing for their organization was stopped",
			"org", org, "posts", missed)
	}
	return db.Fault("publishing.Resume", err)
}

// Stopped returns the given organizations that are stopped. It returns Unavailable if the database
// cannot be reached.
func (s *Queue) Stopped(ctx context.Context, orgs []tenancy.OrgID) ([]tenancy.OrgID, error) {
	stopped, err := schedulerstore.Stopped(ctx, s.db, orgs)
	return stopped, db.Fault("publishing.Stopped", err)
}
