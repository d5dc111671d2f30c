package service

import (
	"context"

	"crier/platform/fault"
	"crier/publishing"
	publishingstore "crier/publishing/store"
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
func (s *Posts) Stop(ctx context.Context, org tenancy.OrgID, by string) error {
	const op = "publishing.Stop"
	err := s.inOrg(ctx, org, func(tx *publishingstore.Tx) error {
		_, known, err := tx.Pause(ctx, publishing.PauseInstance, org, true, by, s.cfg.PauseMaxAge)
		if err != nil {
			return err
		}
		if !known {
			return fault.New(fault.NotFound, op, "There is no such organization.")
		}
		return nil
	})
	if err != nil {
		return publicFault(op, err)
	}
	err = s.inOrg(ctx, org, func(tx *publishingstore.Tx) error {
		return tx.Revoke(ctx, publishing.PauseInstance, org, by)
	})
	return publicFault(op, err)
}

// Resume ends a Stop. Pauses by the people of the organization stay. The caller must know that no other reason to stop
// the organization remains.
//
// With catchUp, as after a suspension, the posts that fell due meanwhile are published one by one, except those that
// are later than Config.PauseMaxAge. Without it, as after a deletion that was undone, all of them end as missed. by is
// that of Stop. Resume does nothing when the organization is not stopped or does not exist. It returns Unavailable
// while the database is away.
func (s *Posts) Resume(ctx context.Context, org tenancy.OrgID, by string, catchUp bool) error {
	missed := 0
	err := s.inOrg(ctx, org, func(tx *publishingstore.Tx) (err error) {
		missed, err = tx.Resume(ctx, catchUp, s.cfg.PauseMaxAge, by)
		return err
	})
	if err != nil {
		return publicFault("publishing.Resume", err)
	}
	if missed > 0 {
		s.deps.Log.Info("posts were given up because publishing for their organization was stopped",
			"org", org, "posts", missed)
	}
	return nil
}
