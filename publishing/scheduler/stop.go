package scheduler

import (
	"context"

	"crier/platform/fault"
	"crier/publishing"
	"crier/publishing/db"
	schedulerstore "crier/publishing/scheduler/store"
	"crier/tenancy"
)

// Stop ends publishing for an organization until Resume, whatever its people do: no post of it begins a call after Stop
// has returned nil, also on channels that are connected later. Claims that have not come to their call are revoked;
// calls in progress end. It is for the instance itself: when the organization is suspended, and when its deletion is
// requested. by says who stops it, for timelines.
//
// A second Stop changes nothing. After a crash in between the posts are kept back, and some may stay claimed until
// their call is refused. It returns NotFound when there is no such organization, and Unavailable while the database is
// away.
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

// Resume ends a Stop. Pauses by the people of the organization stay. It does nothing while the organization is suspended
// or to be deleted, when it is not stopped, and when it does not exist.
//
// With catchUp, as after a suspension, the posts that fell due meanwhile are published one by one, except those that
// are later than Config.PauseMaxAge. Without it, as after a deletion that was undone, all of them end as missed. by is
// that of Stop.
//
// Many posts are given up in many short transactions, and the stop ends with the last one. After an error, a crash or
// the end of ctx the organization is still stopped; the next call goes on. It returns Unavailable while the database is
// away.
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

// Stopped returns those of the organizations that are stopped. It returns Unavailable while the database is away.
func (s *Queue) Stopped(ctx context.Context, orgs []tenancy.OrgID) ([]tenancy.OrgID, error) {
	stopped, err := schedulerstore.Stopped(ctx, s.db, orgs)
	return stopped, db.Fault("publishing.Stopped", err)
}
