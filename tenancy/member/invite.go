package member

import (
	"context"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/mail"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/credential"
	"crier/tenancy/db"
	"crier/tenancy/mails"
	memberstore "crier/tenancy/member/store"
	"crier/tenancy/notice"
)

// Invite creates an invitation and returns it, together with the token of a link that the inviter
// can share. If n.Email is set, only a person with that verified address can use the invitation. If
// n.Send is set, the invitation is also emailed, with a separate link. Invite revokes the
// organization's earlier invitations to the same address, including their links.
//
// Invite returns fault.Conflict if the address belongs to a member. It returns fault.Quota if the
// plan does not allow another member. Open invitations count as members.
func (s *Members) Invite(ctx context.Context, p tenancy.Principal, n tenancy.NewInvitation) (
	out tenancy.Invitation, link string, err error) {
	const op = "tenancy.Invite"
	if err := n.Clean(op); err != nil {
		return out, "", err
	}
	if err := db.RejectImpersonator(op, p); err != nil {
		return out, "", err
	}
	link, hash, err := credential.New(op)
	if err != nil {
		return out, "", err
	}
	now := s.clock.Now()
	out = tenancy.Invitation{
		ID: id.New[tenancy.InvitationTag](), Email: n.Email, Role: n.Role, InvitedBy: p.Name, CreatedAt: now,
		ExpiresAt: now.Add(tenancy.InvitationLife),
	}
	err = s.db.InOrgAs(ctx, op, p, func(tx *db.OrgTx) error {
		if err := s.replaceInvitation(ctx, tx, p, n.Email); err != nil {
			return err
		}
		if err := s.checkSeats(ctx, tx, p.Org, true); err != nil {
			return err
		}
		if err := memberstore.CreateInvitation(ctx, tx, out, p.Person); err != nil {
			return err
		}
		if err := memberstore.AddInvitationLink(ctx, tx, out.ID, hash); err != nil {
			return err
		}
		if err := db.Audit(ctx, tx, p.Event(tenancy.ActionInvited, invitee(out)), now); err != nil {
			return err
		}
		if !n.Send || !s.notices.Enabled() {
			return nil
		}
		gate, err := tx.Leave(ctx)
		if err != nil {
			return err
		}
		return s.notices.Add(ctx, gate, notice.Invitation, n.Email, notice.Notice{Org: p.Org, Invitation: out.ID, By: p.Name})
	})
	if pg.IsNoRows(err) {
		return out, "", fault.New(fault.NotFound, op, "The organization is scheduled for deletion.")
	}
	return out, link, err
}

// replaceInvitation revokes the organization's earlier invitations to an email address before
// Invite creates a new one. It returns Conflict if the address belongs to a member. It locks the
// organization, so that two concurrent invitations to the address cannot both remain.
func (s *Members) replaceInvitation(ctx context.Context, tx *db.OrgTx, p tenancy.Principal, email string) error {
	if email == "" {
		return nil
	}
	if _, err := db.LockOrganization(ctx, tx); err != nil {
		return err
	}
	member, err := memberstore.IsMember(ctx, tx, email)
	if err != nil {
		return err
	}
	if member {
		return fault.New(fault.Conflict, "tenancy.Invite", "The person with this address is already a member.")
	}
	replaced, err := memberstore.TakeInvitationsFor(ctx, tx, email)
	if err != nil {
		return err
	}
	for _, i := range replaced {
		if err := db.Audit(ctx, tx, p.Event(tenancy.ActionInvitationRevoked, invitee(i)), s.clock.Now()); err != nil {
			return err
		}
	}
	return nil
}

const (
	// maxInvitations is the maximum number of open invitations in an organization.
	maxInvitations = 500
	// maxMembers is the maximum number of members in an organization on any plan.
	maxMembers = 5000
)

// checkSeats returns fault.Quota if the plan allows no more members. It returns Conflict if the
// organization has reached maxMembers or maxInvitations, and pgx.ErrNoRows if the organization is
// scheduled for deletion. It locks the organization until the end of the transaction.
func (s *Members) checkSeats(ctx context.Context, tx *db.OrgTx, org tenancy.OrgID, inviting bool) error {
	const op = "tenancy.checkSeats"
	members, invitations, err := memberstore.CountMembers(ctx, tx, s.clock.Now())
	if err != nil {
		return err
	}
	if members >= maxMembers || inviting && invitations >= maxInvitations {
		return fault.New(fault.Conflict, op, "The organization has too many members or open invitations.")
	}
	if s.quota == nil {
		return nil
	}
	limits, err := s.quota.Limits(ctx, tx, org)
	if err != nil {
		return err
	}
	advice := "Remove one"
	if inviting {
		members += invitations
		advice = "Remove one, revoke an open invitation (each counts as a member),"
	}
	if members < limits.Members {
		return nil
	}
	return limits.OverLimit(op, tenancy.LimitMembers, members, limits.Members, advice)
}

// Invitations returns the open invitations to the principal's organization, newest first.
func (s *Members) Invitations(ctx context.Context, p tenancy.Principal) (out []tenancy.Invitation, err error) {
	const op = "tenancy.Invitations"
	err = s.db.InOrg(ctx, op, p.Org, func(tx *db.OrgTx) error {
		out, err = memberstore.ListInvitations(ctx, tx, s.clock.Now())
		return err
	})
	return out, err
}

// RevokeInvitation revokes an invitation and all its links. It returns fault.NotFound if there is
// no such invitation.
func (s *Members) RevokeInvitation(ctx context.Context, p tenancy.Principal, invitation string) error {
	const op = "tenancy.RevokeInvitation"
	absent := fault.New(fault.NotFound, op, "There is no such invitation.")
	parsed, ok := id.Parse[tenancy.InvitationTag](invitation)
	if !ok {
		return absent
	}
	err := s.db.InOrgAlone(ctx, op, p, func(tx *db.OrgTx) error {
		taken, err := memberstore.TakeInvitation(ctx, tx, parsed)
		if err != nil {
			return err
		}
		return db.Audit(ctx, tx, p.Event(tenancy.ActionInvitationRevoked, invitee(taken)), s.clock.Now())
	})
	if pg.IsNoRows(err) {
		return absent
	}
	return err
}

func invitee(i tenancy.Invitation) string {
	if i.Email == "" {
		return "anyone with the link, as " + string(i.Role)
	}
	return i.Email + ", as " + string(i.Role)
}

// InvitationMail creates a new link for an invitation and returns an email that contains the link.
// It returns notice.ErrObsolete if the invitation can no longer be used.
func (s *Members) InvitationMail(ctx context.Context, to string, n notice.Notice) (out mail.Message, err error) {
	const op = "tenancy.renderInvitation"
	err = s.db.InOrg(ctx, op, n.Org, func(tx *db.OrgTx) error {
		i, err := memberstore.ReadInvitation(ctx, tx, n.Invitation)
		if err != nil {
			return err
		}
		o, err := db.ReadOrganization(ctx, tx)
		if err != nil {
			return err
		}
		// Nobody could use the link.
		if !s.clock.Now().Before(i.ExpiresAt) || o.DeletedAt != nil || o.SuspendedAt != nil {
			return notice.ErrObsolete
		}
		code, hash, err := credential.New(op)
		if err != nil {
			return err
		}
		out = mails.Zoned(s.mails, o.Timezone).Invitation(to, o.Name, n.By, string(i.Role), s.mails.Link("/", "org", code), i.ExpiresAt)
		return memberstore.AddInvitationLink(ctx, tx, i.ID, hash)
	})
	return out, notice.Obsolete(err)
}
