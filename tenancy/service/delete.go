package service

import (
	"context"
	"slices"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
)

// DeleteAccount requests the deletion of the account of the principal's person, and of the
// organizations whose only member the person is. All sessions end at once, nothing of these
// organizations is published any more, and Purge deletes everything after DELETE_GRACE, unless the
// person signs in and undoes it. Repeating the request changes nothing. It returns fault.Invalid
// while the person owns an organization that has other members.
func (a *Accounts) DeleteAccount(ctx context.Context, p tenancy.Principal, proof tenancy.Proof) error {
	const op = "tenancy.DeleteAccount"
	if _, err := a.prove(ctx, op, p, proof); err != nil {
		return err
	}
	var owned []tenancy.OrgID
	err := a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		person, err := tx.LockPerson(ctx, p.Person)
		if err != nil || person.DeletedAt != nil { // another request came first
			return err
		}
		if err := a.confirmSession(ctx, tx.Querier(), p); err != nil {
			return err
		}
		owned, err = a.markAccount(ctx, tx, op, p, person)
		return err
	})
	if err != nil {
		return err
	}
	a.keys.forgetOrgs(owned...)
	return a.syncPublishing(ctx, owned...)
}

// markAccount marks a locked account for deletion, and returns the organizations that are deleted
// with it. It ends the sessions before it waits for commands in these organizations, because the
// commands have locked their own sessions.
func (a *Accounts) markAccount(ctx context.Context, tx *tenancystore.GateTx, op string, p tenancy.Principal,
	person tenancy.Person) (marked []tenancy.OrgID, err error) {
	now := a.clock.Now()
	if err := tx.AuditPerson(ctx, person.ID, p.Event(tenancy.ActionAccountDeleted, ""), now); err != nil {
		return nil, err
	}
	if _, err := tx.EndSessions(ctx, person.ID, tenancy.SessionID{}, ""); err != nil {
		return nil, err
	}
	if marked, err = a.markOwned(ctx, tx, op, person.ID, now); err != nil {
		return nil, err
	}
	if err := tx.SetPersonDeleted(ctx, person.ID, &now); err != nil {
		return nil, err
	}
	until := now.Add(a.cfg.DeleteGrace)
	return marked, a.notify(ctx, tx, mailAccountDeletion, person.Email, notice{Until: until})
}

// markOwned stores the request for the deletion of the organizations that a person owns, or returns Invalid when one of
// them has other members. It counts them after the change, which no person joins any more.
func (a *Accounts) markOwned(ctx context.Context, tx *tenancystore.GateTx, op string, person tenancy.PersonID,
	now time.Time) (marked []tenancy.OrgID, err error) {
	owned, err := tx.OwnedOrganizations(ctx, person)
	if err != nil {
		return nil, err
	}
	for _, o := range owned {
		if o.Deleted {
			continue
		}
		if err := tx.SetOrganizationDeleted(ctx, o.Org, &now, person); err != nil {
			return nil, err
		}
		marked = append(marked, o.Org)
	}
	if owned, err = tx.OwnedOrganizations(ctx, person); err != nil {
		return nil, err
	}
	shared := func(o tenancystore.Owned) bool { return o.Members > 1 && slices.Contains(marked, o.Org) }
	if slices.ContainsFunc(owned, shared) {
		return nil, &fault.Error{Kind: fault.Invalid, Op: op, Message: "The account cannot be deleted.",
			Fields: []fault.Field{{Name: "organizations", Message: "that you own must have no other members: " +
				"hand them over, remove the members, or delete the organization first"}}}
	}
	return marked, nil
}

// restoreAccount undoes the deletion of an account and of the organizations that were deleted with
// it. now is the time of the database.
func (a *Accounts) restoreAccount(ctx context.Context, tx *tenancystore.GateTx, person tenancy.Person,
	now time.Time, from tenancy.Source) (restored []tenancy.OrgID, err error) {
	if person.DeletedAt == nil {
		return nil, nil
	}
	if a.graceIsOver(person.DeletedAt, now) {
		return nil, fault.New(fault.Gone, "tenancy.Restore", "The time in which the account could be restored is over.")
	}
	if restored, err = tx.DeletedWith(ctx, person.ID); err != nil {
		return nil, err
	}
	for _, org := range restored {
		if err := tx.SetOrganizationDeleted(ctx, org, nil, tenancy.PersonID{}); err != nil {
			return nil, err
		}
	}
	if err := tx.SetPersonDeleted(ctx, person.ID, nil); err != nil {
		return nil, err
	}
	event := personEvent(person, from, tenancy.ActionAccountRestored)
	if err := tx.AuditPerson(ctx, person.ID, event, a.clock.Now()); err != nil {
		return nil, err
	}
	return restored, a.notify(ctx, tx, mailDeletionUndone, person.Email, notice{})
}

// isGone returns whether an account is only waiting to be purged.
func (a *Accounts) isGone(p tenancy.Person) bool {
	return p.DeletedAt != nil && a.graceIsOver(p.DeletedAt, a.clock.Now())
}

// graceIsOver reports whether it is too late to undo a deletion. It uses the time of the database,
// because a slow process clock must not allow an undo after a purge has begun: see dueBefore.
func (a *Accounts) graceIsOver(deletedAt *time.Time, now time.Time) bool {
	return !now.Before(deletedAt.Add(a.cfg.DeleteGrace))
}

// DeleteOrganization requests the deletion of the principal's organization. It cannot be reached from then on, nothing of it
// is published, and Purge deletes it after DELETE_GRACE, unless its owner undoes that. Only the owner may.
func (a *Accounts) DeleteOrganization(ctx context.Context, p tenancy.Principal, proof tenancy.Proof) error {
	const op = "tenancy.DeleteOrganization"
	if p.Role != tenancy.RoleSuperAdmin {
		return notOwner(op)
	}
	if _, err := a.prove(ctx, op, p, proof); err != nil {
		return err
	}
	now := a.clock.Now()
	err := a.inOrgAlone(ctx, op, p, func(tx *tenancystore.OrgTx) error {
		o, err := tx.Organization(ctx)
		if err != nil {
			return err
		}
		if err := tx.Audit(ctx, p.Event(tenancy.ActionOrganizationDeleted, o.Name), now); err != nil {
			return err
		}
		gate, err := tx.Leave(ctx)
		if err != nil {
			return err
		}
		if err := gate.SetOrganizationDeleted(ctx, p.Org, &now, tenancy.PersonID{}); err != nil {
			return err
		}
		return a.mailMembers(ctx, gate, mailOrganizationDeletion,
			notice{Org: p.Org, Name: o.Name, Zone: o.Timezone, By: p.Name, Until: now.Add(a.cfg.DeleteGrace)})
	})
	if err != nil {
		return err
	}
	a.keys.forgetOrgs(p.Org)
	return a.syncPublishing(ctx, p.Org)
}

func notOwner(op string) error {
	return fault.New(fault.Forbidden, op, "Only the owner may delete the organization.")
}

// RestoreOrganization undoes the deletion of an organization of which the principal's person is the owner. What fell due
// meanwhile is given up as missed. It returns fault.NotFound when there is no such organization to be restored.
func (a *Accounts) RestoreOrganization(ctx context.Context, p tenancy.Principal, org string) error {
	const op = "tenancy.RestoreOrganization"
	if err := refuseBehind(op, p); err != nil {
		return err
	}
	parsed, _ := id.Parse[tenancy.OrgTag](org)
	now, err := a.databaseTime(ctx, op)
	if err != nil {
		return err
	}
	err = a.inPerson(ctx, op, p, func(tx *tenancystore.GateTx, _ tenancy.Person) error {
		memberships, err := tx.Memberships(ctx, p.Person)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(memberships, func(o tenancy.OrganizationOf) bool {
			return o.ID == parsed && o.Role == tenancy.RoleSuperAdmin && !o.Disabled &&
				o.DeletedAt != nil && !a.graceIsOver(o.DeletedAt, now)
		})
		if i < 0 {
			return fault.New(fault.NotFound, op, "There is no such organization to be restored.")
		}
		if err := tx.SetOrganizationDeleted(ctx, parsed, nil, tenancy.PersonID{}); err != nil {
			return err
		}
		org, err := tx.Enter(ctx, parsed)
		if err != nil {
			return err
		}
		name := memberships[i].Name
		if err := org.Audit(ctx, p.Event(tenancy.ActionOrganizationRestored, name), a.clock.Now()); err != nil {
			return err
		}
		gate, err := org.Leave(ctx)
		if err != nil {
			return err
		}
		return a.mailMembers(ctx, gate, mailDeletionUndone, notice{Org: parsed, Name: name})
	})
	if err != nil {
		return err
	}
	a.keys.forgetOrgs(parsed)
	return a.syncPublishing(ctx, parsed)
}
