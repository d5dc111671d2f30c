package service

import (
	"context"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
)

// Team returns the members of the principal's organization, the oldest membership first.
func (a *Accounts) Team(ctx context.Context, p tenancy.Principal) (out []tenancy.Member, err error) {
	const op = "tenancy.Team"
	err = a.inOrg(ctx, op, p.Org, func(tx *tenancystore.OrgTx) error {
		out, err = tx.Members(ctx)
		return err
	})
	return out, err
}

// RemoveMember removes a member of the principal's organization, or lets the principal's person leave it. The member's
// next request finds no access, in all processes, and the member's invitations end. Keys that the member made belong to
// the organization: RemoveMember returns those that work, which the person may know, or revokes them with revokeKeys,
// which only who manages the organization may. Without the second factor that the organization requires, a person can
// only leave. It returns fault.Forbidden for the owner and for a member who outranks the principal, and fault.NotFound
// for the id of no member.
func (a *Accounts) RemoveMember(
	ctx context.Context, p tenancy.Principal, member string, revokeKeys bool,
) (keys []tenancy.APIKey, err error) {
	const op = "tenancy.RemoveMember"
	target, ok := id.Parse[tenancy.PersonTag](member)
	if !ok {
		return nil, noMember(op)
	}
	if target == p.Person {
		if err := refuseBehind(op, p); err != nil {
			return nil, err
		}
	} else if p.Access != tenancy.AccessFull {
		refusal := fault.New(fault.Forbidden, op, "The organization requires a second factor: enable one first.")
		refusal.Remedy = fault.RemedyEnroll
		return nil, refusal
	}
	var made []tenancystore.Key
	err = a.inOrg(ctx, op, p.Org, func(tx *tenancystore.OrgTx) error {
		m, err := tx.LockMember(ctx, target)
		if err != nil {
			return err
		}
		if err := mayRemove(op, p, m, revokeKeys); err != nil {
			return err
		}
		if made, err = tx.KeysBy(ctx, target, a.clock.Now()); err != nil {
			return err
		}
		return a.removeMember(ctx, tx, p, target, made, revokeKeys)
	})
	if pg.IsNoRows(err) {
		return nil, noMember(op)
	}
	for _, k := range made {
		if revokeKeys && (err == nil || mayBeStored(err)) {
			a.keys.forget(hexOf(k.Hash))
		}
		keys = append(keys, k.APIKey)
	}
	return keys, err
}

// removeMember removes a locked member, with the invitations and, if revoke is set, the keys that the person has made.
func (a *Accounts) removeMember(ctx context.Context, tx *tenancystore.OrgTx, p tenancy.Principal,
	target tenancy.PersonID, made []tenancystore.Key, revoke bool) error {
	email, err := tx.MemberEmail(ctx, target)
	if err != nil {
		return err
	}
	o, err := tx.Organization(ctx)
	if err != nil {
		return err
	}
	if err := tx.RemoveMember(ctx, target); err != nil {
		return err
	}
	if err := tx.DeleteInvitationsBy(ctx, target); err != nil {
		return err
	}
	for _, k := range made {
		if !revoke {
			break
		}
		if err := tx.DeleteKey(ctx, k.ID); err != nil {
			return err
		}
		if err := tx.Audit(ctx, p.Event(tenancy.ActionKeyRevoked, describeKey(k.APIKey)), a.clock.Now()); err != nil {
			return err
		}
	}
	if target == p.Person {
		return tx.Audit(ctx, p.Event(tenancy.ActionLeft, email), a.clock.Now())
	}
	if err := tx.Audit(ctx, p.Event(tenancy.ActionRemoved, email), a.clock.Now()); err != nil {
		return err
	}
	gate, err := tx.Leave(ctx)
	if err != nil {
		return err
	}
	return a.notify(ctx, gate, mailRemoved, email, notice{Name: o.Name})
}

func noMember(op string) error { return fault.New(fault.NotFound, op, "There is no such member.") }

func mayRemove(op string, p tenancy.Principal, m tenancy.Membership, revokeKeys bool) error {
	switch {
	case m.Role == tenancy.RoleSuperAdmin:
		return fault.New(fault.Forbidden, op, "The owner cannot be removed and cannot leave: hand the organization over first.")
	case m.Person != p.Person && !p.Role.Outranks(m.Role):
		return fault.New(fault.Forbidden, op, "Only an administrator may remove members.")
	case revokeKeys && !p.Role.Manages():
		return fault.New(fault.Forbidden, op, "Only an administrator may revoke keys.")
	}
	return nil
}

// SetRole changes the role of a member of the principal's organization. With RoleSuperAdmin the owner, who is the
// principal, and the member swap: the member becomes the owner, and the principal an administrator; this needs the proof.
// It returns fault.Forbidden for the owner's role and for a principal who may not, and fault.NotFound for the id of no member.
func (a *Accounts) SetRole(ctx context.Context, p tenancy.Principal, member string, role tenancy.Role,
	proof tenancy.Proof) error {
	const op = "tenancy.SetRole"
	if err := refuseBehind(op, p); err != nil {
		return err
	}
	target, ok := id.Parse[tenancy.PersonTag](member)
	if !ok {
		return noMember(op)
	}
	var in tenancy.Inputs
	in.Check(role.Valid(), "role", "must be USER, ADMIN or SUPERADMIN")
	if err := in.Err(op); err != nil {
		return err
	}
	handOver := role == tenancy.RoleSuperAdmin
	if handOver {
		if p.Role != tenancy.RoleSuperAdmin {
			return fault.New(fault.Forbidden, op, "Only the owner may hand the organization over.")
		}
		if _, err := a.prove(ctx, op, p, proof); err != nil {
			return err
		}
	}
	err := a.inOrg(ctx, op, p.Org, func(tx *tenancystore.OrgTx) error {
		return a.setRole(ctx, tx, op, p, target, role, handOver)
	})
	if pg.IsNoRows(err) {
		return noMember(op)
	}
	return err
}

func (a *Accounts) setRole(ctx context.Context, tx *tenancystore.OrgTx, op string, p tenancy.Principal,
	target tenancy.PersonID, role tenancy.Role, handOver bool) error {
	caller, err := tx.LockMember(ctx, p.Person) // the role may have changed since the request began
	if err != nil {
		return err
	}
	m, err := tx.LockMember(ctx, target)
	if err != nil || m.Role == role && caller.Role.Manages() {
		return err
	}
	if m.Disabled && handOver || !caller.Role.Outranks(m.Role) || handOver && caller.Role != tenancy.RoleSuperAdmin {
		return fault.New(fault.Forbidden, op, "You may not change the role of this member.")
	}
	if handOver {
		if tx, err = checkStays(ctx, tx, op, p, target); err != nil {
			return err
		}
		if err := tx.SetRole(ctx, p.Person, tenancy.RoleAdmin); err != nil {
			return err
		}
	}
	if err := tx.SetRole(ctx, target, role); err != nil {
		return err
	}
	if !role.Manages() {
		if err := tx.DeleteInvitationsBy(ctx, target); err != nil {
			return err
		}
	}
	return a.recordRole(ctx, tx, p, target, role, handOver)
}

// checkStays returns Conflict when the account of a member is to be deleted, because the organization would be left
// without an owner. It locks the member and the principal's person, whose account may be about to be deleted with the
// organizations that it owns, until the end of the transaction, which it continues in the organization.
func checkStays(ctx context.Context, tx *tenancystore.OrgTx, op string, p tenancy.Principal, member tenancy.PersonID) (
	*tenancystore.OrgTx, error) {
	gate, err := tx.Leave(ctx)
	if err != nil {
		return nil, err
	}
	for _, one := range []tenancy.PersonID{member, p.Person} {
		person, err := gate.LockPerson(ctx, one)
		if err != nil {
			return nil, err
		}
		if person.DeletedAt != nil {
			return nil, fault.New(fault.Conflict, op, "The account of this member will be deleted.")
		}
	}
	return gate.Enter(ctx, p.Org)
}

// recordRole records a new role and sends a mail to the member.
func (a *Accounts) recordRole(ctx context.Context, tx *tenancystore.OrgTx, p tenancy.Principal, target tenancy.PersonID,
	role tenancy.Role, handOver bool) error {
	email, err := tx.MemberEmail(ctx, target)
	if err != nil {
		return err
	}
	o, err := tx.Organization(ctx)
	if err != nil {
		return err
	}
	action, kind := tenancy.ActionRole, mailRole
	if handOver {
		action, kind = tenancy.ActionOrganizationOwner, mailOwner
	}
	if err := tx.Audit(ctx, p.Event(action, email+": "+string(role)), a.clock.Now()); err != nil {
		return err
	}
	gate, err := tx.Leave(ctx)
	if err != nil {
		return err
	}
	return a.notify(ctx, gate, kind, email, notice{Name: o.Name, Role: role, By: p.Name})
}
