package member

import (
	"context"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/tenancy"
	"crier/tenancy/db"
	memberstore "crier/tenancy/member/store"
	"crier/tenancy/notice"
)

// SetRole changes the role of a member of the principal's organization. If the new role is
// RoleSuperAdmin, the member becomes the owner and the principal becomes an administrator. Only the
// owner can transfer ownership in this way, and change.Proof is required.
//
// If the new role does not manage the organization, SetRole revokes the invitations that the member
// sent. It returns those invitations together with the keys, webhooks and provider credentials that
// the member created. If change.Revoke is set, SetRole deletes the keys and webhooks, as
// RemoveMember does.
//
// SetRole returns fault.Forbidden if the member is the owner or if the principal may not change the
// role. It returns fault.NotFound if the member does not exist.
func (s *Members) SetRole(ctx context.Context, p tenancy.Principal, member string, change tenancy.RoleChange) (
	made tenancy.CreatedBy, err error) {
	const op = "tenancy.SetRole"
	if err := db.RejectImpersonator(op, p); err != nil {
		return made, err
	}
	target, ok := id.Parse[tenancy.PersonTag](member)
	if !ok {
		return made, noMember(op)
	}
	if err := s.mayChangeRole(ctx, op, p, change); err != nil {
		return made, err
	}
	var hashes [][]byte
	err = s.inMember(ctx, op, p, target, func(tx *db.OrgTx, m tenancy.Membership) error {
		made, hashes = tenancy.CreatedBy{}, nil
		if m.Role == change.Role && p.Role.Manages() {
			return nil
		}
		if m.Disabled && change.Role == tenancy.RoleSuperAdmin || !p.Role.Outranks(m.Role) {
			return fault.New(fault.Forbidden, op, "You may not change the role of this member.")
		}
		if !change.Role.Manages() {
			maker := tenancy.Maker{Person: target, Revoke: change.Revoke}
			if made, hashes, err = s.takeMade(ctx, tx, p, maker); err != nil {
				return err
			}
		}
		return s.setRole(ctx, tx, op, p, m, change.Role)
	})
	s.keys.ForgetRevoked(err, hashes)
	return made, err
}

// mayChangeRole checks SetRole's input. If the change would transfer ownership, it also checks that
// the principal is the owner and that the proof is valid.
func (s *Members) mayChangeRole(ctx context.Context, op string, p tenancy.Principal, change tenancy.RoleChange) error {
	var in tenancy.Inputs
	in.Check(change.Role.Valid(), "role", "must be USER, ADMIN or SUPERADMIN")
	in.Check(!change.Revoke || change.Role == tenancy.RoleUser, "revokeKeys", "is only for the role USER")
	if err := in.Err(op); err != nil || change.Role != tenancy.RoleSuperAdmin {
		return err
	}
	if p.Role != tenancy.RoleSuperAdmin {
		return fault.New(fault.Forbidden, op, "Only the owner may hand the organization over.")
	}
	_, err := s.proofs.Prove(ctx, op, p, change.Proof)
	return err
}

// setRole changes the role of a locked member. The caller must have confirmed the principal in the
// transaction.
func (s *Members) setRole(ctx context.Context, tx *db.OrgTx, op string, p tenancy.Principal,
	m tenancy.Membership, role tenancy.Role) (err error) {
	handOver := role == tenancy.RoleSuperAdmin
	if handOver {
		if tx, err = checkStays(ctx, tx, op, p, m.Person); err != nil {
			return err
		}
		if err := memberstore.SetRole(ctx, tx, p.Person, tenancy.RoleAdmin); err != nil {
			return err
		}
	}
	if err := memberstore.SetRole(ctx, tx, m.Person, role); err != nil {
		return err
	}
	return s.recordRole(ctx, tx, p, m.Person, role, handOver)
}

// recordRole records a role change in the audit log and emails the member.
func (s *Members) recordRole(ctx context.Context, tx *db.OrgTx, p tenancy.Principal, target tenancy.PersonID,
	role tenancy.Role, handOver bool) error {
	email, err := memberstore.MemberEmail(ctx, tx, target)
	if err != nil {
		return err
	}
	o, err := db.ReadOrganization(ctx, tx)
	if err != nil {
		return err
	}
	action, kind := tenancy.ActionRole, notice.Role
	if handOver {
		action, kind = tenancy.ActionOrganizationOwner, notice.Owner
	}
	if err := db.Audit(ctx, tx, p.Event(action, email+": "+string(role)), s.clock.Now()); err != nil {
		return err
	}
	gate, err := tx.Leave(ctx)
	if err != nil {
		return err
	}
	return s.notices.Notify(ctx, gate, kind, email, notice.Notice{Name: o.Name, Role: role, By: p.Doer()})
}

// checkStays returns Conflict if the account of the member or of the principal is scheduled for
// deletion. Without this check, the organization could be left without an owner. checkStays locks
// both accounts until the end of the transaction, so that neither can be scheduled for deletion in
// the meantime. The caller must continue with the returned transaction, which is in the
// organization.
func checkStays(ctx context.Context, tx *db.OrgTx, op string, p tenancy.Principal, member tenancy.PersonID) (
	*db.OrgTx, error) {
	gate, err := tx.Leave(ctx)
	if err != nil {
		return nil, err
	}
	for _, one := range []tenancy.PersonID{member, p.Person} {
		person, err := db.LockPerson(ctx, gate, one)
		if err != nil {
			return nil, err
		}
		if person.DeletedAt != nil {
			return nil, fault.New(fault.Conflict, op, "The account of this member is scheduled for deletion.")
		}
	}
	return gate.Enter(ctx, p.Org)
}
