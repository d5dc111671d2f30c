package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"crier/platform/batch"
	"crier/platform/fault"
	"crier/platform/pg"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
)

const (
	// purgeSize is in rows of one transaction.
	purgeSize = 1000
	// purgeRest is the pause after a batch as a multiple of its time.
	purgeRest = 1
	// purgeShare limits the time that one organization takes of a run. The next run goes on with it.
	purgeShare = 3 * time.Minute
	// organizationsTime is the time that all organizations take of a run, so that some is left for people.
	organizationsTime = 20 * time.Minute
)

// Purge deletes the organizations and accounts whose deletion was requested longer than
// DELETE_GRACE and maxSkew ago, with everything that belongs to them, and returns their number. One
// that cannot be purged does not stop the others: the first such error is returned at the end, and
// a later call tries it again. A crash leaves the request in place.
//
// An organization that takes longer than its share of a call is left to the next one, which goes on with it. When the
// time for organizations ends, the next one of this process begins behind the last organization that had its share. It
// deletes nothing and returns an error when the clock of the process is wrong: see checkClock.
func (a *Accounts) Purge(ctx context.Context) (int, error) {
	if err := a.checkClock(ctx, "tenancy.Purge"); err != nil {
		return 0, err
	}
	orgs, orgFault := a.purgeOrganizations(ctx)
	people, personFault := a.purgePeople.Run(ctx)
	return orgs + people, errors.Join(orgFault, personFault)
}

// purgeOrganizations purges organizations for organizationsTime at most.
func (a *Accounts) purgeOrganizations(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, organizationsTime)
	defer cancel()
	return a.purgeOrgs.Run(ctx)
}

// isItsOwn blames an organization or a person for every error. The end of the run's own context is none.
func isItsOwn(error) bool { return true }

// orgSweep returns a sweep that purges organizations one by one, so that each run goes on behind the last one.
func (a *Accounts) orgSweep() *batch.Sweep[tenancy.OrgID] {
	return &batch.Sweep[tenancy.OrgID]{
		Size: 1, IsItemError: isItsOwn,
		Find: func(ctx context.Context, after tenancy.OrgID, limit int) (ids []tenancy.OrgID, err error) {
			err = a.inGate(ctx, "tenancy.Purge", func(tx *tenancystore.GateTx) error {
				ids, err = tx.DueOrganizations(ctx, a.dueBefore(), after, limit)
				return err
			})
			return ids, err
		},
		Do: func(ctx context.Context, ids []tenancy.OrgID) (int, error) { return a.purgeInShare(ctx, ids[0]) },
	}
}

// dueBefore returns the time before which a deletion must have been requested. A restore is
// possible for DELETE_GRACE by the database's clock, and this process may be ahead of that clock by
// maxSkew.
func (a *Accounts) dueBefore() time.Time { return a.clock.Now().Add(-a.cfg.DeleteGrace - maxSkew) }

// purgeInShare is purgeOrganization within purgeShare. The end of that is no error.
func (a *Accounts) purgeInShare(ctx context.Context, org tenancy.OrgID) (int, error) {
	own, cancel := context.WithTimeout(ctx, a.purgeShare)
	defer cancel()
	n, err := a.purgeOrganization(own, org, a.dueBefore())
	if err != nil && own.Err() != nil && ctx.Err() == nil {
		a.log.WarnContext(ctx, "the purge of an organization takes long; the next run goes on with it",
			"org", org, "error", err)
		return 0, nil
	}
	return n, err
}

// purgeOrganization stops the publishing of an organization once more, in case the process that should have done it
// died, deletes what it has, and then its own row.
func (a *Accounts) purgeOrganization(ctx context.Context, org tenancy.OrgID, before time.Time) (int, error) {
	const op = "tenancy.Purge"
	if a.deps.Publishing != nil {
		if err := a.deps.Publishing.Stop(ctx, org, instanceName); err != nil {
			return 0, err
		}
		if _, err := a.deps.Publishing.Purge(ctx, org); err != nil {
			return 0, err
		}
	}
	if err := a.purgeOwned(ctx, org, before); err != nil {
		return 0, err
	}
	now := a.clock.Now()
	err := a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		if err := tx.PurgeOrganization(ctx, org, before); err != nil {
			return err
		}
		return tx.AddInstanceEvent(ctx, tenancy.InstanceEvent{
			At: now, Actor: "the service", Action: tenancy.ActionOrgPurged, Subject: org.String(),
		})
	})
	if pg.IsNoRows(err) { // undone meanwhile
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return 1, nil
}

// purgeOwned deletes the rows that an organization may have many of, in short transactions.
func (a *Accounts) purgeOwned(ctx context.Context, org tenancy.OrgID, before time.Time) error {
	var faults []error
	for _, kind := range []tenancystore.Purgeable{
		tenancystore.PurgeAudit, tenancystore.PurgeInvitations, tenancystore.PurgeKeys, tenancystore.PurgeMembers,
	} {
		sweep := batch.Sweep[tenancystore.OwnedID]{
			Size: purgeSize, PauseFactor: purgeRest, IsItemError: pg.IsRowError,
			Find: func(ctx context.Context, after tenancystore.OwnedID, limit int) ([]tenancystore.OwnedID, error) {
				return a.store.FindOwned(ctx, org, kind, before, after, limit)
			},
			Do: func(ctx context.Context, ids []tenancystore.OwnedID) (int, error) {
				return a.store.Purge(ctx, org, kind, before, ids)
			},
		}
		if _, err := sweep.Run(ctx); err != nil {
			faults = append(faults, fmt.Errorf("purge %s: %w", kind, err))
		}
	}
	return asFault("tenancy.Purge", errors.Join(append(faults, ctx.Err())...))
}

// personSweep is orgSweep for people.
func (a *Accounts) personSweep() *batch.Sweep[tenancy.PersonID] {
	return &batch.Sweep[tenancy.PersonID]{
		Size: 1, IsItemError: isItsOwn,
		Find: func(ctx context.Context, after tenancy.PersonID, limit int) (ids []tenancy.PersonID, err error) {
			err = a.inGate(ctx, "tenancy.Purge", func(tx *tenancystore.GateTx) error {
				ids, err = tx.DuePeople(ctx, a.dueBefore(), after, limit)
				return err
			})
			return ids, err
		},
		Do: func(ctx context.Context, ids []tenancy.PersonID) (int, error) {
			return a.purgePerson(ctx, ids[0], a.dueBefore())
		},
	}
}

// purgePerson deletes a person, after removing the person's address wherever an organization has
// entered it for a review. An owner is deleted after the organization, so that no organization is
// left without an owner.
func (a *Accounts) purgePerson(ctx context.Context, person tenancy.PersonID, before time.Time) (int, error) {
	const op = "tenancy.Purge"
	now := a.clock.Now()
	if err := a.forgetReviewer(ctx, op, person); err != nil && !pg.IsNoRows(err) {
		return 0, err
	}
	err := a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		owned, err := tx.OwnedOrganizations(ctx, person)
		if err != nil {
			return err
		}
		if len(owned) > 0 {
			return fault.New(fault.Conflict, op, "An organization of the account is not purged yet.")
		}
		if err := tx.PurgePerson(ctx, person, before); err != nil {
			return err
		}
		return tx.AddInstanceEvent(ctx, tenancy.InstanceEvent{
			At: now, Actor: "the service", Action: tenancy.ActionPersonPurged, Subject: person.String(),
		})
	})
	if pg.IsNoRows(err) { // undone meanwhile
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return 1, nil
}

// forgetReviewer removes a person's address from the approval requests of all organizations. It
// returns pgx.ErrNoRows if the person is gone.
func (a *Accounts) forgetReviewer(ctx context.Context, op string, person tenancy.PersonID) error {
	if a.deps.Publishing == nil {
		return nil
	}
	var email string
	err := a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		p, err := tx.Person(ctx, person)
		email = p.Email
		return err
	})
	if err != nil {
		return err
	}
	return a.deps.Publishing.ForgetReviewer(ctx, email)
}
