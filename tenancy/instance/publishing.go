package instance

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
	"crier/tenancy/db"
	instancestore "crier/tenancy/instance/store"
)

// PublishingTask is the kind of task that calls SyncPublishing. The task's id is the organization's
// id.
const PublishingTask = db.PublishingTask

// maxSyncs is how many times SyncPublishing applies an organization's state before it gives up
// because the state keeps changing.
const maxSyncs = 5

const (
	// syncPage is the number of organizations that SyncAllPublishing examines at a time.
	syncPage = 500
	// syncShare limits how long a run spends on one organization. A later run tries that
	// organization again.
	syncShare = 3 * time.Minute
)

// SyncPublishing stops an organization from publishing if the organization is suspended or marked
// for deletion. Otherwise, it lets the organization resume publishing. It may be called repeatedly.
//
// SyncPublishing is called immediately after an organization is suspended or marked for deletion,
// or after either is undone. It is called again by a task that was added in the same transaction.
// This way, the organization does not keep publishing if the first call fails or the process
// crashes.
//
// SyncPublishing returns nil if the organization no longer exists. It returns fault.Conflict if the
// organization's state keeps changing; the task then calls SyncPublishing again.
func (s *Instance) SyncPublishing(ctx context.Context, org tenancy.OrgID) error {
	const op = "tenancy.SyncPublishing"
	if s.publishing == nil {
		return nil
	}
	var applied instancestore.Marks
	for i := range maxSyncs {
		marks, err := s.marks(ctx, op, org)
		if pg.IsNoRows(err) {
			return nil
		}
		if err != nil || i > 0 && marks == applied {
			return err
		}
		if err := s.applyMarks(ctx, org, marks); err != nil {
			return err
		}
		applied = marks
	}
	return fault.New(fault.Conflict, op, "The organization changes too often; its publishing will be updated later.")
}

// SyncAllPublishing calls SyncPublishing for each organization that should be stopped but is not,
// or is stopped but should not be. This includes organizations whose task was abandoned.
// SyncAllPublishing returns the number of such organizations. If it fails for one of them, it
// continues with the others and returns all errors, joined.
func (s *Instance) SyncAllPublishing(ctx context.Context) (int, error) {
	if s.publishing == nil {
		return 0, nil
	}
	var faults []error
	sweep := batch.Sweep[instancestore.MarkedOrg]{
		Size: syncPage, IsItemError: func(error) bool { return false },
		Find: func(
			ctx context.Context, after instancestore.MarkedOrg, limit int,
		) (page []instancestore.MarkedOrg, err error) {
			err = s.db.InGate(ctx, "tenancy.SyncAllPublishing", func(tx *db.GateTx) error {
				page, err = instancestore.MarkedOrgs(ctx, tx, after.Org, limit)
				return err
			})
			return page, err
		},
		Do: func(ctx context.Context, page []instancestore.MarkedOrg) (int, error) {
			differing, err := s.differing(ctx, page)
			for _, org := range differing {
				faults = append(faults, s.syncInShare(ctx, org))
			}
			return len(differing), err
		},
	}
	n, err := sweep.Run(ctx)
	return n, errors.Join(append(faults, err)...)
}

// differing returns the organizations in page that are stopped but should not be, or that should be
// stopped but are not.
func (s *Instance) differing(ctx context.Context, page []instancestore.MarkedOrg) (out []tenancy.OrgID, err error) {
	orgs := make([]tenancy.OrgID, len(page))
	for i, o := range page {
		orgs[i] = o.Org
	}
	stopped, err := s.publishing.Stopped(ctx, orgs)
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

func (s *Instance) syncInShare(ctx context.Context, org tenancy.OrgID) error {
	ctx, cancel := context.WithTimeout(ctx, syncShare)
	defer cancel()
	s.log.WarnContext(ctx, "an organization's publishing is out of step with its state; updating it", "org", org)
	if err := s.SyncPublishing(ctx, org); err != nil {
		return fmt.Errorf("%s: %w", org, err)
	}
	return nil
}

func (s *Instance) marks(ctx context.Context, op string, org tenancy.OrgID) (out instancestore.Marks, err error) {
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		out, err = instancestore.ReadMarks(ctx, tx, org)
		return err
	})
	return out, err
}

func (s *Instance) applyMarks(ctx context.Context, org tenancy.OrgID, m instancestore.Marks) error {
	if m.Stopped {
		return s.publishing.Stop(ctx, org, db.InstanceName)
	}
	return s.publishing.Resume(ctx, org, db.InstanceName, m.CatchUp)
}

// AccessChanged removes the organizations' keys from this process's cache and calls SyncPublishing
// for each organization. It is called after the commit of a transaction that suspends
// organizations, marks them for deletion, or reverses one of these changes.
func (s *Instance) AccessChanged(ctx context.Context, orgs ...tenancy.OrgID) error {
	s.keys.ForgetOrgs(orgs...)
	var faults []error
	for _, org := range orgs {
		faults = append(faults, s.SyncPublishing(ctx, org))
	}
	return db.Fault("tenancy.syncPublishing", errors.Join(faults...))
}
