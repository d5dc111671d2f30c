package scheduler

import (
	"context"

	"crier/platform/fault"
	"crier/publishing"
	"crier/publishing/db"
	schedulerstore "crier/publishing/scheduler/store"
	"crier/tenancy"
)

// Stop stops publishing for an organization until Resume is called, whatever the organization's
// members do. Once Stop has returned nil, none of the organization's posts begins a call, even on a
// channel that is connected later. Stop revokes claims that have not reached their call; calls in
// progress run to completion.
//
// Only the instance itself stops an organization, when the organization is suspended or its
// deletion is requested. by says who stopped it, for timelines.
//
// Stop is idempotent. After a crash between its two transactions, posts are held back, but some may
// stay claimed until marking their call fails. Stop returns NotFound if there is no such
// organization, and Unavailable if the database cannot be reached.
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

// Resume ends a Stop. Pauses set by the organization's members stay in force. Resume does nothing
// if the organization is suspended or marked for deletion, is not stopped, or does not exist.
//
// If catchUp is set, as after a suspension, the posts that became due during the stop are published
// one by one, except those later than Config.PauseMaxAge. Otherwise, as after a canceled deletion,
// all of these posts end as missed. by says who resumed publishing, for timelines.
//
// If there are many missed posts, they are abandoned in a series of short transactions, the last of
// which ends the stop. After an error, a crash or the end of ctx, the organization is still stopped
// and the next call continues. Resume returns Unavailable if the database cannot be reached.
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

// Stopped returns which of the organizations are stopped. It returns Unavailable if the database
// cannot be reached.
func (s *Queue) Stopped(ctx context.Context, orgs []tenancy.OrgID) ([]tenancy.OrgID, error) {
	stopped, err := schedulerstore.Stopped(ctx, s.db, orgs)
	return stopped, db.Fault("publishing.Stopped", err)
}
