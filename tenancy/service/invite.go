package service

import (
	"context"
	"slices"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
)

// Invite creates an invitation and returns the token of a link for the inviter. With an address it is for the person
// who has that address, verified; with Send a mail brings a link of its own. Another invitation of the organization
// for the address ends, with its links. It returns fault.Conflict when the address is that of a member, and fault.Quota
// when the plan allows no more members, open invitations included.
func (a *Accounts) Invite(ctx context.Context, p tenancy.Principal, n tenancy.NewInvitation) (
	out tenancy.Invitation, link string, err error) {
	const op = "tenancy.Invite"
	if err := n.Clean(op); err != nil {
		return out, "", err
	}
	if err := refuseBehind(op, p); err != nil {
		return out, "", err
	}
	link, hash, err := token(op)
	if err != nil {
		return out, "", err
	}
	now := a.clock.Now()
	out = tenancy.Invitation{
		ID: id.New[tenancy.InvitationTag](), Email: n.Email, Role: n.Role, InvitedBy: p.Name, CreatedAt: now,
		ExpiresAt: now.Add(tenancy.InvitationLife),
	}
	err = a.inOrgAs(ctx, op, p, func(tx *tenancystore.OrgTx) error {
		if err := a.replaceInvitation(ctx, tx, p, n.Email); err != nil {
			return err
		}
		if err := a.checkSeats(ctx, tx, p.Org, true); err != nil {
			return err
		}
		if err := tx.CreateInvitation(ctx, out, p.Person); err != nil {
			return err
		}
		if err := tx.AddInvitationLink(ctx, out.ID, hash); err != nil {
			return err
		}
		if err := tx.Audit(ctx, p.Event(tenancy.ActionInvited, invitee(out)), now); err != nil {
			return err
		}
		if !n.Send || a.deps.Mail == nil {
			return nil
		}
		gate, err := tx.Leave(ctx)
		if err != nil {
			return err
		}
		return a.addMail(ctx, gate, mailInvitation, n.Email, notice{Org: p.Org, Invitation: out.ID, By: p.Name})
	})
	if pg.IsNoRows(err) {
		return out, "", fault.New(fault.NotFound, op, "The organization will be deleted.")
	}
	return out, link, err
}

// replaceInvitation ends the invitations of the principal's organization for an address that gets another one, and returns
// Conflict for that of a member. It locks the organization, so that two invitations at once leave one.
func (a *Accounts) replaceInvitation(ctx context.Context, tx *tenancystore.OrgTx, p tenancy.Principal, email string) error {
	if email == "" {
		return nil
	}
	if _, err := tx.LockOrganization(ctx); err != nil {
		return err
	}
	member, err := tx.IsMember(ctx, email)
	if err != nil {
		return err
	}
	if member {
		return fault.New(fault.Conflict, "tenancy.Invite", "The person with this address is a member already.")
	}
	replaced, err := tx.TakeInvitationsFor(ctx, email)
	if err != nil {
		return err
	}
	for _, i := range replaced {
		if err := tx.Audit(ctx, p.Event(tenancy.ActionInvitationRevoked, invitee(i)), a.clock.Now()); err != nil {
			return err
		}
	}
	return nil
}

func invitee(i tenancy.Invitation) string {
	if i.Email == "" {
		return "anybody with the link, as " + string(i.Role)
	}
	return i.Email + ", as " + string(i.Role)
}

const (
	// maxInvitations is the number of open invitations of an organization.
	maxInvitations = 500
	// maxMembers is the number of members of an organization, with any plan.
	maxMembers = 5000
)

// checkSeats returns fault.Quota when the organization can have no more members, and Conflict at the limits that all
// organizations have. It locks the organization until the end of the transaction, and returns pgx.ErrNoRows for one that
// is to be deleted.
func (a *Accounts) checkSeats(ctx context.Context, tx *tenancystore.OrgTx, org tenancy.OrgID, inviting bool) error {
	const op = "tenancy.checkSeats"
	members, invitations, err := tx.CountMembers(ctx, a.clock.Now())
	if err != nil {
		return err
	}
	if members >= maxMembers || inviting && invitations >= maxInvitations {
		return fault.New(fault.Conflict, op, "The organization has too many members or open invitations.")
	}
	if a.deps.Quota == nil {
		return nil
	}
	limits, err := a.deps.Quota.Limits(ctx, tx.Querier(), org)
	if err != nil {
		return err
	}
	advice := "Remove one"
	if inviting {
		members += invitations
		advice = "Remove one, or revoke an open invitation, each of which counts as one,"
	}
	if members < limits.Members {
		return nil
	}
	return limits.OverLimit(op, tenancy.LimitMembers, members, limits.Members, advice)
}

// Invitations returns the open invitations of the principal's organization, the newest first.
func (a *Accounts) Invitations(ctx context.Context, p tenancy.Principal) (out []tenancy.Invitation, err error) {
	const op = "tenancy.Invitations"
	err = a.inOrg(ctx, op, p.Org, func(tx *tenancystore.OrgTx) error {
		out, err = tx.Invitations(ctx, a.clock.Now())
		return err
	})
	return out, err
}

// RevokeInvitation ends an invitation with all its links, or returns fault.NotFound.
func (a *Accounts) RevokeInvitation(ctx context.Context, p tenancy.Principal, invitation string) error {
	const op = "tenancy.RevokeInvitation"
	absent := fault.New(fault.NotFound, op, "There is no such invitation.")
	parsed, ok := id.Parse[tenancy.InvitationTag](invitation)
	if !ok {
		return absent
	}
	err := a.inOrgAlone(ctx, op, p, func(tx *tenancystore.OrgTx) error {
		taken, err := tx.TakeInvitation(ctx, parsed)
		if err != nil {
			return err
		}
		return tx.Audit(ctx, p.Event(tenancy.ActionInvitationRevoked, invitee(taken)), a.clock.Now())
	})
	if pg.IsNoRows(err) {
		return absent
	}
	return err
}

// JoinOrganization uses an invitation for the principal's person and returns the organization. It returns the zero id
// when the invitation is not valid, was used or is over, and fault.Forbidden when it is for another address or for one
// that the person has not verified. A member joins again without effect, and the invitation is used up.
func (a *Accounts) JoinOrganization(ctx context.Context, p tenancy.Principal, link string) (org tenancy.OrgID, err error) {
	const op = "tenancy.JoinOrganization"
	if err := refuseBehind(op, p); err != nil {
		return org, err
	}
	err = a.inPerson(ctx, op, p, func(tx *tenancystore.GateTx, person tenancy.Person) error {
		org, err = a.useInvitation(ctx, tx, op, person, pastedHash(link), p.From)
		return err
	})
	if pg.IsNoRows(err) {
		return tenancy.OrgID{}, nil
	}
	return org, err
}

// Offer returns what a link's invitation offers to the principal's person. It returns false if the
// invitation is unknown, used or expired, if it names another address or one that the person has
// not confirmed, or if the person is already a member.
func (a *Accounts) Offer(ctx context.Context, p tenancy.Principal, link string) (out tenancy.Offer, ok bool, err error) {
	err = a.inGate(ctx, "tenancy.Offer", func(tx *tenancystore.GateTx) error {
		open, err := tx.InvitationByHash(ctx, pastedHash(link), a.clock.Now())
		if err != nil {
			return err
		}
		person, err := tx.Person(ctx, p.Person)
		if err != nil {
			return err
		}
		all, err := tx.Memberships(ctx, p.Person)
		if err != nil {
			return err
		}
		org, err := tx.Enter(ctx, open.Org)
		if err != nil {
			return err
		}
		invitation, err := org.Invitation(ctx, open.ID)
		if err != nil {
			return err
		}
		isMember := slices.ContainsFunc(all, func(o tenancy.OrganizationOf) bool { return o.ID == open.Org })
		ok = !isMember && a.isFor(open, person)
		out = tenancy.Offer{Organization: open.Name, Role: invitation.Role}
		_, err = org.Leave(ctx)
		return err
	})
	if pg.IsNoRows(err) {
		err = nil
	}
	if err != nil || !ok {
		return tenancy.Offer{}, false, err
	}
	return out, true, nil
}

// isFor reports whether an invitation is open to a person: if it names an address, the person must
// have that address, verified. An instance without mail verifies no addresses, so the link is
// enough there.
func (a *Accounts) isFor(open tenancystore.OpenInvitation, person tenancy.Person) bool {
	return open.Email == "" || open.Email == person.Email && (person.Verified || a.deps.Mail == nil)
}

// useInvitation makes a person a member. It returns pgx.ErrNoRows if the invitation can no longer
// be used, Forbidden if it is for somebody else, and Conflict if the person has too many
// organizations.
func (a *Accounts) useInvitation(ctx context.Context, tx *tenancystore.GateTx, op string, person tenancy.Person,
	hash []byte, from tenancy.Source) (tenancy.OrgID, error) {
	now := a.clock.Now()
	open, err := tx.InvitationByHash(ctx, hash, now)
	if err != nil {
		return tenancy.OrgID{}, err
	}
	if !a.isFor(open, person) {
		return tenancy.OrgID{}, fault.New(fault.Forbidden, op,
			"This invitation is for another address, or for one that you have not confirmed.")
	}
	if err := checkMemberships(ctx, tx, op, person.ID); err != nil {
		return tenancy.OrgID{}, err
	}
	org, err := tx.Enter(ctx, open.Org)
	if err != nil {
		return tenancy.OrgID{}, err
	}
	if err := a.checkSeats(ctx, org, open.Org, false); err != nil {
		return tenancy.OrgID{}, err
	}
	taken, err := org.TakeInvitation(ctx, open.ID)
	if err != nil {
		return tenancy.OrgID{}, err
	}
	if err := a.addMember(ctx, org, person, taken.Role, from, now); err != nil {
		return tenancy.OrgID{}, err
	}
	_, err = org.Leave(ctx)
	return open.Org, err
}

// addMember makes a person a member, unless they are one.
func (a *Accounts) addMember(ctx context.Context, org *tenancystore.OrgTx, person tenancy.Person, role tenancy.Role,
	from tenancy.Source, now time.Time) error {
	_, err := org.LockMember(ctx, person.ID)
	if !pg.IsNoRows(err) {
		return err
	}
	if err := org.AddMember(ctx, tenancy.Membership{Person: person.ID, Role: role}, now); err != nil {
		return err
	}
	event := personEvent(person, from, tenancy.ActionJoined)
	event.Subject = string(role)
	return org.Audit(ctx, event, now)
}
