package member

import (
	"context"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
	memberstore "crier/tenancy/member/store"
	"crier/tenancy/notice"
)

// RemoveMember removes a member from the principal's organization, or lets the principal leave it.
// From their next request on, the member has no access in any process. RemoveMember also revokes
// the invitations that the member sent.
//
// Keys and webhooks that the member created belong to the organization. RemoveMember returns the
// keys and webhooks that still work, because the member may know their secrets. If revoke is set,
// it also deletes them. Only a principal who manages the organization can set revoke.
//
// RemoveMember always revokes the review links with which the person could still respond to
// approval requests. These are the links emailed to the person, and the links for requests that the
// person made. Links for the person's own requests may have been emailed to another of the person's
// addresses.
//
// If the organization requires a second factor and the principal has none, the principal can leave
// but cannot remove others. RemoveMember returns fault.Forbidden if the member is the owner, or if
// the principal tries to remove somebody whom they do not outrank. It returns fault.NotFound if
// there is no such member.
//
// A person who has already left can still be removed while anything that they created remains.
// Otherwise, a member could keep a key by leaving first.
func (s *Members) RemoveMember(
	ctx context.Context, p tenancy.Principal, member string, revoke bool,
) (made tenancy.CreatedBy, err error) {
	const op = "tenancy.RemoveMember"
	target, ok := id.Parse[tenancy.PersonTag](member)
	if !ok {
		return made, noMember(op)
	}
	if target == p.Person {
		if err := db.RejectImpersonator(op, p); err != nil {
			return made, err
		}
	} else if p.Access != tenancy.AccessFull {
		return made, db.Unenrolled(op)
	}
	var hashes [][]byte
	err = s.db.InOrgAlone(ctx, op, p, func(tx *db.OrgTx) error {
		m, err := memberstore.LockMember(ctx, tx, target)
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
		if made, hashes, err = s.takeMade(ctx, tx, p, maker); err != nil {
			return err
		}
		if !isFormer {
			return s.removeMember(ctx, tx, p, target)
		}
		if made.IsEmpty() {
			return noMember(op)
		}
		return nil
	})
	s.keys.ForgetRevoked(err, hashes)
	return made, err
}

// takeMade revokes the invitations that a locked member sent. It returns them together with
// everything else that the member created. If maker.Revoke is set, it deletes the member's keys and
// webhooks and also returns the hashes of the keys.
//
// The member's own requests have finished or are waiting for the lock, so they create nothing
// afterwards.
func (s *Members) takeMade(ctx context.Context, tx *db.OrgTx, p tenancy.Principal, maker tenancy.Maker) (
	made tenancy.CreatedBy, hashes [][]byte, err error) {
	now := s.clock.Now()
	if s.publishing != nil {
		if made, err = s.publishing.TakeMade(ctx, tx, maker); err != nil {
			return made, nil, err
		}
	}
	if made.Invitations, err = memberstore.TakeInvitationsBy(ctx, tx, maker.Person); err != nil {
		return made, nil, err
	}
	if made.Keys, hashes, err = s.keys.TakeMade(ctx, tx, maker); err != nil {
		return made, nil, err
	}
	if !maker.Revoke {
		return made, nil, s.auditMade(ctx, tx, p, tenancy.CreatedBy{Invitations: made.Invitations}, now)
	}
	return made, hashes, s.auditMade(ctx, tx, p, made, now)
}

// auditMade records in the audit log that a member's invitations, keys and webhooks were revoked or
// deleted.
func (s *Members) auditMade(ctx context.Context, tx *db.OrgTx, p tenancy.Principal, ended tenancy.CreatedBy,
	now time.Time) error {
	subjects := map[tenancy.Action][]string{}
	for _, i := range ended.Invitations {
		subjects[tenancy.ActionInvitationRevoked] = append(subjects[tenancy.ActionInvitationRevoked], invitee(i))
	}
	for _, k := range ended.Keys {
		subjects[tenancy.ActionKeyRevoked] = append(subjects[tenancy.ActionKeyRevoked], k.Label())
	}
	for _, w := range ended.Webhooks {
		subjects[tenancy.ActionWebhookDeleted] = append(subjects[tenancy.ActionWebhookDeleted], w.Name)
	}
	for action, list := range subjects {
		if err := db.AuditEach(ctx, tx, p.Event(action, ""), list, now); err != nil {
			return err
		}
	}
	return nil
}

// removeMember deletes a locked membership and records the removal. It emails the member unless
// they left on their own.
func (s *Members) removeMember(ctx context.Context, tx *db.OrgTx, p tenancy.Principal,
	target tenancy.PersonID) error {
	email, err := memberstore.MemberEmail(ctx, tx, target)
	if err != nil {
		return err
	}
	o, err := db.ReadOrganization(ctx, tx)
	if err != nil {
		return err
	}
	if err := memberstore.RemoveMember(ctx, tx, target); err != nil {
		return err
	}
	if target == p.Person {
		return db.Audit(ctx, tx, p.Event(tenancy.ActionLeft, email), s.clock.Now())
	}
	if err := db.Audit(ctx, tx, p.Event(tenancy.ActionRemoved, email), s.clock.Now()); err != nil {
		return err
	}
	gate, err := tx.Leave(ctx)
	if err != nil {
		return err
	}
	return s.notices.Notify(ctx, gate, notice.Removed, email, notice.Notice{Name: o.Name})
}

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
