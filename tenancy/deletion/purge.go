package deletion

import (
	"context"
	"errors"
	"fmt"
	"time"

	"crier/platform/batch"
	"crier/platform/fault"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
	deletionstore "crier/tenancy/deletion/store"
)

const (
	// purgeSize is the maximum number of rows that one transaction deletes.
	purgeSize = 1000
	// purgeRest is the pause after a batch, as a multiple of the batch's duration.
	purgeRest = 1
	// purgeShare limits how long a run spends on one organization. A later run continues with that
	// organization.
	purgeShare = 3 * time.Minute
	// organizationsTime limits how long a run spends on all organizations, so that some time is
	// left for purging people.
	organizationsTime = 20 * time.Minute
)

// isItsOwn attributes every error to the organization or person being purged, so that the sweep
// continues with the next one. Sweep itself handles the end of the run's context.
func isItsOwn(error) bool { return true }

// Purge deletes the organizations and accounts whose deletion was requested more than DELETE_GRACE
// plus MaxSkew ago, along with everything that belongs to them. It returns the number of deleted
// organizations and accounts. If one of them cannot be purged, Purge continues with the others and
// returns the first such error at the end. A later call tries again, even after a crash, because
// the stored request remains until the purge is complete.
//
// If an organization takes longer than its share of a call, a later call continues with it. If the
// time for all organizations runs out, the next call in this process begins after the last
// organization that received its share.
//
// Purge deletes nothing and returns an error if the process's clock is wrong; see CheckClock.
func (s *Deletions) Purge(ctx context.Context) (int, error) {
	if err := s.db.CheckClock(ctx, "tenancy.Purge"); err != nil {
		return 0, err
	}
	orgs, orgFault := s.purgeOrganizations(ctx)
	people, personFault := s.purgePeople.Run(ctx)
	return orgs + people, errors.Join(orgFault, personFault)
}

// purgeOrganizations purges organizations for at most organizationsTime.
func (s *Deletions) purgeOrganizations(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, organizationsTime)
	defer cancel()
	return s.purgeOrgs.Run(ctx)
}

// orgSweep returns a sweep that purges organizations one by one. Each run continues where the
// previous run ended.
func (s *Deletions) orgSweep() *batch.Sweep[tenancy.OrgID] {
	return &batch.Sweep[tenancy.OrgID]{
		Size: 1, IsItemError: isItsOwn,
		Find: func(ctx context.Context, after tenancy.OrgID, limit int) (ids []tenancy.OrgID, err error) {
			err = s.db.InGate(ctx, "tenancy.Purge", func(tx *db.GateTx) error {
				ids, err = deletionstore.DueOrganizations(ctx, tx, s.dueBefore(), after, limit)
				return err
			})
			return ids, err
		},
		Do: func(ctx context.Context, ids []tenancy.OrgID) (int, error) { return s.purgeInShare(ctx, ids[0]) },
	}
}

// dueBefore returns the cutoff for purging: a deletion is due if it was requested before this time.
// An account or organization can be restored until DELETE_GRACE has passed on the database's clock,
// and this process's clock may be ahead of that clock by up to MaxSkew.
func (s *Deletions) dueBefore() time.Time { return s.clock.Now().Add(-s.cfg.DeleteGrace - db.MaxSkew) }

// purgeInShare runs purgeOrganization for at most purgeShare. Running out of time is not an error.
func (s *Deletions) purgeInShare(ctx context.Context, org tenancy.OrgID) (int, error) {
	own, cancel := context.WithTimeout(ctx, s.purgeShare)
	defer cancel()
	n, err := s.purgeOrganization(own, org, s.dueBefore())
	if err != nil && own.Err() != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "purging an organization takes longer than one run; the next run continues",
			"org", org, "error", err)
		return 0, nil
	}
	return n, err
}

// purgeOrganization deletes an organization's data and then the organization itself. It first makes
// sure that publishing has stopped, because the process that should have stopped it may have
// crashed.
func (s *Deletions) purgeOrganization(ctx context.Context, org tenancy.OrgID, before time.Time) (int, error) {
	const op = "tenancy.Purge"
	if s.publishing != nil {
		if err := s.publishing.Stop(ctx, org, db.InstanceName); err != nil {
			return 0, err
		}
		if _, err := s.publishing.Purge(ctx, org); err != nil {
			return 0, err
		}
	}
	if err := s.purgeOwned(ctx, org, before); err != nil {
		return 0, err
	}
	now := s.clock.Now()
	err := s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		if err := deletionstore.PurgeOrganization(ctx, tx, org, before); err != nil {
			return err
		}
		return db.AddInstanceEvent(ctx, tx, tenancy.InstanceEvent{
			At: now, Actor: "the service", Action: tenancy.ActionOrgPurged, Subject: org.String(),
		})
	})
	if pg.IsNoRows(err) { // the deletion was undone in the meantime
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return 1, nil
}

// purgeOwned deletes an organization's Purgeable rows. It uses short transactions, because there
// can be many such rows.
func (s *Deletions) purgeOwned(ctx context.Context, org tenancy.OrgID, before time.Time) error {
	var faults []error
	for _, kind := range []deletionstore.Purgeable{
		deletionstore.PurgeAudit, deletionstore.PurgeInvitations, deletionstore.PurgeKeys, deletionstore.PurgeMembers,
	} {
		sweep := batch.Sweep[deletionstore.OwnedID]{
			Size: purgeSize, PauseFactor: purgeRest, IsItemError: pg.IsRowError,
			Find: func(ctx context.Context, after deletionstore.OwnedID, limit int) ([]deletionstore.OwnedID, error) {
				return deletionstore.FindOwned(ctx, s.db, org, kind, before, after, limit)
			},
			Do: func(ctx context.Context, ids []deletionstore.OwnedID) (int, error) {
				return deletionstore.Purge(ctx, s.db, org, kind, before, ids)
			},
		}
		if _, err := sweep.Run(ctx); err != nil {
			faults = append(faults, fmt.Errorf("purge %s: %w", kind, err))
		}
	}
	return db.Fault("tenancy.Purge", errors.Join(append(faults, ctx.Err())...))
}

// personSweep is like orgSweep, but purges people.
func (s *Deletions) personSweep() *batch.Sweep[tenancy.PersonID] {
	return &batch.Sweep[tenancy.PersonID]{
		Size: 1, IsItemError: isItsOwn,
		Find: func(ctx context.Context, after tenancy.PersonID, limit int) (ids []tenancy.PersonID, err error) {
			err = s.db.InGate(ctx, "tenancy.Purge", func(tx *db.GateTx) error {
				ids, err = deletionstore.DuePeople(ctx, tx, s.dueBefore(), after, limit)
				return err
			})
			return ids, err
		},
		Do: func(ctx context.Context, ids []tenancy.PersonID) (int, error) {
			return s.purgePerson(ctx, ids[0], s.dueBefore())
		},
	}
}

// purgePerson removes a person's email address from approval requests and then deletes the person.
// It returns Conflict if the person still owns an organization, because an organization must not be
// left without an owner.
func (s *Deletions) purgePerson(ctx context.Context, person tenancy.PersonID, before time.Time) (int, error) {
	const op = "tenancy.Purge"
	now := s.clock.Now()
	if err := s.forgetReviewer(ctx, op, person); err != nil && !pg.IsNoRows(err) {
		return 0, err
	}
	err := s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		owned, err := deletionstore.OwnedOrganizations(ctx, tx, person)
		if err != nil {
			return err
		}
		if len(owned) > 0 {
			return fault.New(fault.Conflict, op, "An organization of this account has not been purged yet.")
		}
		if err := deletionstore.PurgePerson(ctx, tx, person, before); err != nil {
			return err
		}
		return db.AddInstanceEvent(ctx, tx, tenancy.InstanceEvent{
			At: now, Actor: "the service", Action: tenancy.ActionPersonPurged, Subject: person.String(),
		})
	})
	if pg.IsNoRows(err) { // the deletion was undone in the meantime
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return 1, nil
}

// forgetReviewer removes a person's email address from the approval requests of all organizations.
// It returns pgx.ErrNoRows if the person is gone.
func (s *Deletions) forgetReviewer(ctx context.Context, op string, person tenancy.PersonID) error {
	if s.publishing == nil {
		return nil
	}
	var email string
	err := s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		p, err := db.ReadPerson(ctx, tx, person)
		email = p.Email
		return err
	})
	if err != nil {
		return err
	}
	return s.publishing.ForgetReviewer(ctx, email)
}
