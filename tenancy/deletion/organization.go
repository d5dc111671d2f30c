package deletion

import (
	"context"
	"slices"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/tenancy"
	"crier/tenancy/db"
	deletionstore "crier/tenancy/deletion/store"
	"crier/tenancy/notice"
)

// DeleteOrganization requests the deletion of the principal's organization. The organization
// immediately becomes inaccessible and stops publishing. After DELETE_GRACE, Purge deletes it,
// unless the owner has undone the request. Only the owner may call DeleteOrganization.
func (s *Deletions) DeleteOrganization(ctx context.Context, p tenancy.Principal, proof tenancy.Proof) error {
	const op = "tenancy.DeleteOrganization"
	if p.Role != tenancy.RoleSuperAdmin {
		return notOwner(op)
	}
	if _, err := s.proofs.Prove(ctx, op, p, proof); err != nil {
		return err
	}
	now := s.clock.Now()
	err := s.db.InOrgAlone(ctx, op, p, func(tx *db.OrgTx) error {
		o, err := db.ReadOrganization(ctx, tx)
		if err != nil {
			return err
		}
		if err := db.Audit(ctx, tx, p.Event(tenancy.ActionOrganizationDeleted, o.Name), now); err != nil {
			return err
		}
		gate, err := tx.Leave(ctx)
		if err != nil {
			return err
		}
		if err := deletionstore.SetOrganizationDeleted(ctx, gate, p.Org, &now, tenancy.PersonID{}); err != nil {
			return err
		}
		return s.notices.AddForMembers(ctx, gate, notice.OrganizationDeletion,
			notice.Notice{Org: p.Org, Name: o.Name, Zone: o.Timezone, By: p.Name, Until: now.Add(s.cfg.DeleteGrace)})
	})
	if err != nil {
		return err
	}
	return s.access.AccessChanged(ctx, p.Org)
}

// RestoreOrganization undoes the deletion of an organization. Posts that became due in the meantime
// are marked as missed. RestoreOrganization returns fault.NotFound if the person does not own the
// organization, if the organization is not marked for deletion, or if it can no longer be restored.
func (s *Deletions) RestoreOrganization(ctx context.Context, p tenancy.Principal, org string) error {
	const op = "tenancy.RestoreOrganization"
	if err := db.RejectImpersonator(op, p); err != nil {
		return err
	}
	parsed, _ := id.Parse[tenancy.OrgTag](org)
	now, err := s.db.Time(ctx, op)
	if err != nil {
		return err
	}
	err = s.db.InPerson(ctx, op, p, func(tx *db.GateTx, _ tenancy.Person) error {
		memberships, err := db.Memberships(ctx, tx, p.Person)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(memberships, func(o tenancy.OrganizationOf) bool {
			return o.ID == parsed && o.Role == tenancy.RoleSuperAdmin && !o.Disabled &&
				o.DeletedAt != nil && !s.graceIsOver(o.DeletedAt, now)
		})
		if i < 0 {
			return fault.New(fault.NotFound, op, "There is no such organization to restore.")
		}
		if err := deletionstore.SetOrganizationDeleted(ctx, tx, parsed, nil, tenancy.PersonID{}); err != nil {
			return err
		}
		org, err := tx.Enter(ctx, parsed)
		if err != nil {
			return err
		}
		name := memberships[i].Name
		if err := db.Audit(ctx, org, p.Event(tenancy.ActionOrganizationRestored, name), s.clock.Now()); err != nil {
			return err
		}
		gate, err := org.Leave(ctx)
		if err != nil {
			return err
		}
		return s.notices.AddForMembers(ctx, gate, notice.DeletionUndone, notice.Notice{Org: parsed, Name: name})
	})
	if err != nil {
		return err
	}
	return s.access.AccessChanged(ctx, parsed)
}

// graceIsOver reports whether it is too late to undo a deletion. now must be the database's time.
// With a slow process clock instead, a deletion could be undone after the purge had begun; see
// dueBefore.
func (s *Deletions) graceIsOver(deletedAt *time.Time, now time.Time) bool {
	return !now.Before(deletedAt.Add(s.cfg.DeleteGrace))
}

func notOwner(op string) error {
	return fault.New(fault.Forbidden, op, "Only the owner may delete the organization.")
}
