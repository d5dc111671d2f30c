package service

import (
	"context"
	"errors"

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
