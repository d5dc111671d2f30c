package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"crier/platform/batch"
	"crier/platform/fault"
	"crier/platform/pg"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
)

// PublishingTask is the kind of the tasks whose ids SyncPublishing takes.
const PublishingTask = tenancystore.PublishingTask

// instanceName is who stops the publishing of an organization, in timelines.
const instanceName = "the instance"

// maxSyncs is how often SyncPublishing follows a change that was made while it applied the last one.
const maxSyncs = 5

// SyncPublishing stops the publishing of an organization that is suspended or to be deleted, and resumes that of another
// one. It may be repeated, and is called at once after a change and by a task that the change has added, so that neither
// a crash nor an error in between leaves an organization publishing. An organization that is gone is no error; one that
// is changed again and again is fault.Conflict, and the task repeats it.
func (a *Accounts) SyncPublishing(ctx context.Context, org tenancy.OrgID) error {
	const op = "tenancy.SyncPublishing"
	if a.deps.Publishing == nil {
		return nil
	}
	var applied tenancystore.Marks
	for i := range maxSyncs {
		marks, err := a.marks(ctx, op, org)
		if pg.IsNoRows(err) {
			return nil
		}
		if err != nil || i > 0 && marks == applied {
			return err
		}
		if err := a.applyMarks(ctx, org, marks); err != nil {
			return err
		}
		applied = marks
	}
	return fault.New(fault.Conflict, op, "The organization changes too often; its publishing is set again later.")
}

const (
	// syncPage is the number of organizations whose marks are compared at once.
	syncPage = 500
	// syncShare limits the time that one organization takes of a run. The next run goes on with it.
	syncShare = 3 * time.Minute
)

// SyncAllPublishing calls SyncPublishing for each organization that is suspended or to be deleted and not stopped, or
// stopped without being either, and returns their number. It finds those whose task was given up. One that fails does
// not stop the others; the errors are joined.
func (a *Accounts) SyncAllPublishing(ctx context.Context) (int, error) {
	if a.deps.Publishing == nil {
		return 0, nil
	}
	var faults []error
	sweep := batch.Sweep[tenancystore.MarkedOrg]{
		Size: syncPage, IsItemError: func(error) bool { return false },
		Find: func(
			ctx context.Context, after tenancystore.MarkedOrg, limit int,
		) (page []tenancystore.MarkedOrg, err error) {
			err = a.inGate(ctx, "tenancy.SyncAllPublishing", func(tx *tenancystore.GateTx) error {
				page, err = tx.MarkedOrgs(ctx, after.Org, limit)
				return err
			})
			return page, err
		},
		Do: func(ctx context.Context, page []tenancystore.MarkedOrg) (int, error) {
			differing, err := a.differing(ctx, page)
			for _, org := range differing {
				faults = append(faults, a.syncInShare(ctx, org))
			}
			return len(differing), err
		},
	}
	n, err := sweep.Run(ctx)
	return n, errors.Join(append(faults, err)...)
}

// differing returns the organizations that are stopped and need not be, or the other way round.
func (a *Accounts) differing(ctx context.Context, page []tenancystore.MarkedOrg) (out []tenancy.OrgID, err error) {
	orgs := make([]tenancy.OrgID, len(page))
	for i, o := range page {
		orgs[i] = o.Org
	}
	stopped, err := a.deps.Publishing.Stopped(ctx, orgs)
	if err != nil {
		return nil, err
	}
	for _, o := range page {
		if o.Stopped != slices.Contains(stopped, o.Org) {
			out = append(out, o.Org)
		}
	}
	return out, nil
}

func (a *Accounts) syncInShare(ctx context.Context, org tenancy.OrgID) error {
	ctx, cancel := context.WithTimeout(ctx, syncShare)
	defer cancel()
	a.log.WarnContext(ctx, "whether an organization may publish was not applied; it is applied again", "org", org)
	if err := a.SyncPublishing(ctx, org); err != nil {
		return fmt.Errorf("%s: %w", org, err)
	}
	return nil
}

func (a *Accounts) marks(ctx context.Context, op string, org tenancy.OrgID) (out tenancystore.Marks, err error) {
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		out, err = tx.Marks(ctx, org)
		return err
	})
	return out, err
}

func (a *Accounts) applyMarks(ctx context.Context, org tenancy.OrgID, m tenancystore.Marks) error {
	if m.Stopped {
		return a.deps.Publishing.Stop(ctx, org, instanceName)
	}
	return a.deps.Publishing.Resume(ctx, org, instanceName, m.CatchUp)
}

// syncPublishing is SyncPublishing for several organizations, after the commit of what has changed.
func (a *Accounts) syncPublishing(ctx context.Context, orgs ...tenancy.OrgID) error {
	var faults []error
	for _, org := range orgs {
		faults = append(faults, a.SyncPublishing(ctx, org))
	}
	return asFault("tenancy.syncPublishing", errors.Join(faults...))
}
