package member

import (
	"context"
	"slices"
	"time"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/credential"
	"crier/tenancy/db"
	memberstore "crier/tenancy/member/store"
)

// JoinOrganization makes the principal's person a member of the inviting organization and returns
// the organization's id. link is the token of the invitation link. JoinOrganization returns the
// zero id if the invitation is invalid, used or expired. If the person is already a member, the
// invitation is deleted and nothing else changes.
//
// If the invitation names an email address, JoinOrganization returns fault.Forbidden unless that
// address is the person's own. On an instance that sends email, the person must also have verified
// it.
func (s *Members) JoinOrganization(
	ctx context.Context, p tenancy.Principal, link string,
) (org tenancy.OrgID, err error) {
	const op = "tenancy.JoinOrganization"
	if err := db.RejectImpersonator(op, p); err != nil {
		return org, err
	}
	err = s.db.InPerson(ctx, op, p, func(tx *db.GateTx, person tenancy.Person) error {
		org, err = s.UseInvitation(ctx, tx, op, person, credential.HashPasted(link), p.From)
		return err
	})
	if pg.IsNoRows(err) {
		return tenancy.OrgID{}, nil
	}
	return org, err
}

// Offer returns the organization and role that the invitation behind link offers to p's person. It
// returns false if the invitation is unknown, used or expired, or if the person is already a
// member. It also returns false if the invitation names an email address that the person does not
// have or, on an instance that sends email, has not verified.
func (s *Members) Offer(ctx context.Context, p tenancy.Principal, link string) (out tenancy.Offer, ok bool, err error) {
	err = s.db.InGate(ctx, "tenancy.Offer", func(tx *db.GateTx) error {
		open, err := memberstore.InvitationByHash(ctx, tx, credential.HashPasted(link), s.clock.Now())
		if err != nil {
			return err
		}
		person, err := db.ReadPerson(ctx, tx, p.Person)
		if err != nil {
			return err
		}
		all, err := db.Memberships(ctx, tx, p.Person)
		if err != nil {
			return err
		}
		org, err := tx.Enter(ctx, open.Org)
		if err != nil {
			return err
		}
		invitation, err := memberstore.ReadInvitation(ctx, org, open.ID)
		if err != nil {
			return err
		}
		isMember := slices.ContainsFunc(all, func(o tenancy.OrganizationOf) bool { return o.ID == open.Org })
		ok = !isMember && s.isFor(open, person)
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

// isFor reports whether a person can use an invitation. If the invitation names an email address,
// only the person with that address can use it, and only after verifying the address. On an
// instance that sends no email, addresses cannot be verified, so having the address is enough.
func (s *Members) isFor(open memberstore.OpenInvitation, person tenancy.Person) bool {
	return open.Email == "" || open.Email == person.Email && (person.Verified || !s.notices.Enabled())
}

// UseInvitation makes a person a member of the inviting organization and returns the organization's
// id. It returns pgx.ErrNoRows if the invitation can no longer be used, Forbidden if it is for
// somebody else, and Conflict if the person is a member of too many organizations. It also returns
// errors from checkSeats.
func (s *Members) UseInvitation(ctx context.Context, tx *db.GateTx, op string, person tenancy.Person,
	hash []byte, from tenancy.Source) (tenancy.OrgID, error) {
	now := s.clock.Now()
	open, err := memberstore.InvitationByHash(ctx, tx, hash, now)
	if err != nil {
		return tenancy.OrgID{}, err
	}
	if !s.isFor(open, person) {
		return tenancy.OrgID{}, fault.New(fault.Forbidden, op,
			"This invitation is for another address, or for one that you have not confirmed.")
	}
	if err := db.CheckMemberships(ctx, tx, op, person.ID); err != nil {
		return tenancy.OrgID{}, err
	}
	org, err := tx.Enter(ctx, open.Org)
	if err != nil {
		return tenancy.OrgID{}, err
	}
	if err := s.checkSeats(ctx, org, open.Org, false); err != nil {
		return tenancy.OrgID{}, err
	}
	taken, err := memberstore.TakeInvitation(ctx, org, open.ID)
	if err != nil {
		return tenancy.OrgID{}, err
	}
	if err := s.addMember(ctx, org, person, taken.Role, from, now); err != nil {
		return tenancy.OrgID{}, err
	}
	_, err = org.Leave(ctx)
	return open.Org, err
}

// addMember makes a person a member unless they already are one.
func (s *Members) addMember(ctx context.Context, org *db.OrgTx, person tenancy.Person, role tenancy.Role,
	from tenancy.Source, now time.Time) error {
	_, err := memberstore.LockMember(ctx, org, person.ID)
	if !pg.IsNoRows(err) {
		return err
	}
	if err := db.AddMember(ctx, org, tenancy.Membership{Person: person.ID, Role: role}, now); err != nil {
		return err
	}
	event := db.PersonEvent(person, from, tenancy.ActionJoined)
	event.Subject = string(role)
	return db.Audit(ctx, org, event, now)
}

// InvitedAddress returns the email address that the invitation behind a link is for, or "" if
// anybody can use the invitation. It returns pgx.ErrNoRows if the invitation cannot be used now.
func (s *Members) InvitedAddress(ctx context.Context, tx *db.GateTx, hash []byte) (string, error) {
	open, err := memberstore.InvitationByHash(ctx, tx, hash, s.clock.Now())
	return open.Email, err
}
