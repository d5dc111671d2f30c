package service

import (
	"context"
	"time"

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

// RemoveMember removes a member of the principal's organization, or lets the principal's person
// leave it. The member's next request finds no access, in all processes, and the member's
// invitations end. Keys and webhooks that the member made belong to the organization: RemoveMember
// returns the working ones, because the person may know their secrets, and with revoke it deletes
// them. The person could still answer requests for approval by review links, so these end too: the
// mailed links of the person's own requests, which may have gone to another address of the person, and
// those mailed to the person. Only a person who manages the organization may set revoke. Without the second factor that
// the organization requires, a person can only leave. It returns fault.Forbidden for the owner and
// for a member who outranks the principal, and fault.NotFound if there is no such member.
//
// A person who has already left can be removed as long as anything that they made is left, so that
// nobody keeps a key by leaving first.
func (a *Accounts) RemoveMember(
	ctx context.Context, p tenancy.Principal, member string, revoke bool,
) (made tenancy.MadeBy, err error) {
	const op = "tenancy.RemoveMember"
	target, ok := id.Parse[tenancy.PersonTag](member)
	if !ok {
		return made, noMember(op)
	}
	if target == p.Person {
		if err := refuseBehind(op, p); err != nil {
			return made, err
		}
	} else if p.Access != tenancy.AccessFull {
		return made, unenrolled(op)
	}
	var hashes [][]byte
	err = a.inOrgAlone(ctx, op, p, func(tx *tenancystore.OrgTx) error {
		m, err := tx.LockMember(ctx, target)
		isFormer := pg.IsNoRows(err) && p.Role.Manages()
		switch {
		case isFormer:
		case pg.IsNoRows(err):
			return noMember(op)
		case err != nil:
			return err
		default:
			if err := mayRemove(op, p, m, revoke); err != nil {
				return err
			}
		}
		maker := tenancy.Maker{Person: target, Revoke: revoke, Leaves: true}
		if made, hashes, err = a.takeMade(ctx, tx, p, maker); err != nil {
			return err
		}
		if !isFormer {
			return a.removeMember(ctx, tx, p, target)
		}
		if made.IsEmpty() {
			return noMember(op)
		}
		return nil
	})
	a.forgetRevoked(err, hashes)
	return made, err
}

// inMember runs fn in a transaction that has locked a member, alone as inOrgAlone does. It returns NotFound when there is
// no such member.
func (a *Accounts) inMember(ctx context.Context, op string, p tenancy.Principal, target tenancy.PersonID,
	fn func(tx *tenancystore.OrgTx, m tenancy.Membership) error) error {
	return a.inOrgAlone(ctx, op, p, func(tx *tenancystore.OrgTx) error {
		m, err := tx.LockMember(ctx, target)
		if pg.IsNoRows(err) {
			return noMember(op)
		}
		if err != nil {
			return err
		}
		return fn(tx, m)
	})
}

// takeMade ends the invitations of a locked member, and returns them with everything else that the
// person made and the hashes of the keys. With Revoke it deletes the keys and the webhooks. The
// member's own commands have ended or are waiting, so they create nothing later.
func (a *Accounts) takeMade(ctx context.Context, tx *tenancystore.OrgTx, p tenancy.Principal, maker tenancy.Maker) (
	made tenancy.MadeBy, hashes [][]byte, err error) {
	now := a.clock.Now()
	if a.deps.Publishing != nil {
		if made, err = a.deps.Publishing.TakeMade(ctx, tx.Querier(), maker); err != nil {
			return made, nil, err
		}
	}
	if made.Invitations, err = tx.TakeInvitationsBy(ctx, maker.Person); err != nil {
		return made, nil, err
	}
	keys, err := tx.KeysBy(ctx, maker.Person, now)
	if err != nil {
		return made, nil, err
	}
	for _, k := range keys {
		made.Keys, hashes = append(made.Keys, k.APIKey), append(hashes, k.Hash)
	}
	if !maker.Revoke {
		return made, nil, a.auditMade(ctx, tx, p, tenancy.MadeBy{Invitations: made.Invitations}, now)
	}
	if err := tx.DeleteKeysBy(ctx, maker.Person); err != nil {
		return made, nil, err
	}
	return made, hashes, a.auditMade(ctx, tx, p, made, now)
}

// auditMade records which of the things that a member had made have ended.
func (a *Accounts) auditMade(ctx context.Context, tx *tenancystore.OrgTx, p tenancy.Principal, ended tenancy.MadeBy,
	now time.Time) error {
	subjects := map[tenancy.Action][]string{}
	for _, i := range ended.Invitations {
		subjects[tenancy.ActionInvitationRevoked] = append(subjects[tenancy.ActionInvitationRevoked], invitee(i))
	}
	for _, k := range ended.Keys {
		subjects[tenancy.ActionKeyRevoked] = append(subjects[tenancy.ActionKeyRevoked], describeKey(k))
	}
	for _, w := range ended.Webhooks {
		subjects[tenancy.ActionWebhookDeleted] = append(subjects[tenancy.ActionWebhookDeleted], w.Name)
	}
	for action, list := range subjects {
		if err := tx.AuditEach(ctx, p.Event(action, ""), list, now); err != nil {
			return err
		}
	}
	return nil
}

// forgetRevoked makes this process refuse the keys with these hashes, unless err means that they
// still exist.
func (a *Accounts) forgetRevoked(err error, hashes [][]byte) {
	if err != nil && !mayBeStored(err) {
		return
	}
	for _, hash := range hashes {
		a.keys.forget(hexOf(hash))
	}
}

// removeMember removes a locked member.
func (a *Accounts) removeMember(ctx context.Context, tx *tenancystore.OrgTx, p tenancy.Principal,
	target tenancy.PersonID) error {
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

// SetRole changes the role of a member of the principal's organization. With RoleSuperAdmin the
// owner, who is the principal, and the member swap: the member becomes the owner, and the principal
// an administrator; this needs the proof. The invitations of a member who no longer manages the
// organization end. SetRole returns them with the keys, webhooks and provider credentials that the
// person made. With revoke it deletes the keys and webhooks, as RemoveMember does. It returns
// fault.Forbidden for the owner's role and for a principal who may not, and fault.NotFound for the
// id of no member.
func (a *Accounts) SetRole(ctx context.Context, p tenancy.Principal, member string, change tenancy.RoleChange) (
	made tenancy.MadeBy, err error) {
	const op = "tenancy.SetRole"
	if err := refuseBehind(op, p); err != nil {
		return made, err
	}
	target, ok := id.Parse[tenancy.PersonTag](member)
	if !ok {
		return made, noMember(op)
	}
	if err := a.mayChangeRole(ctx, op, p, change); err != nil {
		return made, err
	}
	var hashes [][]byte
	err = a.inMember(ctx, op, p, target, func(tx *tenancystore.OrgTx, m tenancy.Membership) error {
		made, hashes = tenancy.MadeBy{}, nil
		if m.Role == change.Role && p.Role.Manages() {
			return nil
		}
		if m.Disabled && change.Role == tenancy.RoleSuperAdmin || !p.Role.Outranks(m.Role) {
			return fault.New(fault.Forbidden, op, "You may not change the role of this member.")
		}
		if !change.Role.Manages() {
			maker := tenancy.Maker{Person: target, Revoke: change.Revoke}
			if made, hashes, err = a.takeMade(ctx, tx, p, maker); err != nil {
				return err
			}
		}
		return a.setRole(ctx, tx, op, p, m, change.Role)
	})
	a.forgetRevoked(err, hashes)
	return made, err
}

// mayChangeRole checks the input of SetRole and, for a hand-over, the proof.
func (a *Accounts) mayChangeRole(ctx context.Context, op string, p tenancy.Principal, change tenancy.RoleChange) error {
	var in tenancy.Inputs
	in.Check(change.Role.Valid(), "role", "must be USER, ADMIN or SUPERADMIN")
	in.Check(!change.Revoke || change.Role == tenancy.RoleUser, "revokeKeys", "is for the role USER only")
	if err := in.Err(op); err != nil || change.Role != tenancy.RoleSuperAdmin {
		return err
	}
	if p.Role != tenancy.RoleSuperAdmin {
		return fault.New(fault.Forbidden, op, "Only the owner may hand the organization over.")
	}
	_, err := a.prove(ctx, op, p, change.Proof)
	return err
}

// setRole changes the role of a locked member. The principal has been confirmed in the transaction.
func (a *Accounts) setRole(ctx context.Context, tx *tenancystore.OrgTx, op string, p tenancy.Principal,
	m tenancy.Membership, role tenancy.Role) (err error) {
	handOver := role == tenancy.RoleSuperAdmin
	if handOver {
		if tx, err = checkStays(ctx, tx, op, p, m.Person); err != nil {
			return err
		}
		if err := tx.SetRole(ctx, p.Person, tenancy.RoleAdmin); err != nil {
			return err
		}
	}
	if err := tx.SetRole(ctx, m.Person, role); err != nil {
		return err
	}
	return a.recordRole(ctx, tx, p, m.Person, role, handOver)
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
	return a.notify(ctx, gate, kind, email, notice{Name: o.Name, Role: role, By: p.Doer()})
}
