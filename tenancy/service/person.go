package service

import (
	"context"
	"slices"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
)

// Self returns the principal's person and the organization of the request. The organization is zero when the person is a
// member of none.
func (a *Accounts) Self(ctx context.Context, p tenancy.Principal) (
	person tenancy.Person, org tenancy.OrganizationOf, err error) {
	const op = "tenancy.Self"
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		if person, err = tx.Person(ctx, p.Person); err != nil || p.Org.IsZero() {
			return err
		}
		entered, err := tx.Enter(ctx, p.Org)
		if err != nil {
			return err
		}
		org.Organization, err = entered.Organization(ctx)
		org.Role = p.Role
		return err
	})
	if pg.IsNoRows(err) {
		return person, org, fault.New(fault.Unauthenticated, op, "Sign in first.")
	}
	return person, org, err
}

// SetProfile replaces the profile of the principal's person. The name has 3 to 128 characters and the bio at most 500.
func (a *Accounts) SetProfile(ctx context.Context, p tenancy.Principal, profile tenancy.Profile) (
	person tenancy.Person, err error) {
	const op = "tenancy.SetProfile"
	var in tenancy.Inputs
	profile.Name = in.Name("fullname", profile.Name, 3, 128)
	profile.Bio = in.Text("bio", profile.Bio, 500)
	if err := in.Err(op); err != nil {
		return person, err
	}
	err = a.inPerson(ctx, op, p, func(tx *tenancystore.GateTx, _ tenancy.Person) error {
		if err := tx.SetProfile(ctx, p.Person, profile); err != nil {
			return err
		}
		if err := a.auditActed(ctx, tx, p, tenancy.ActionProfileChanged); err != nil {
			return err
		}
		person, err = tx.Person(ctx, p.Person)
		return err
	})
	return person, err
}

// Notifications returns what the principal's person wants to be notified of.
func (a *Accounts) Notifications(ctx context.Context, p tenancy.Principal) (out tenancy.Notifications, err error) {
	const op = "tenancy.Notifications"
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		out, err = tx.Notifications(ctx, p.Person)
		return err
	})
	return out, err
}

// SetNotifications stores what the principal's person wants to be notified of.
func (a *Accounts) SetNotifications(ctx context.Context, p tenancy.Principal, n tenancy.Notifications) error {
	const op = "tenancy.SetNotifications"
	var in tenancy.Inputs
	deliveries := []struct {
		name string
		sent tenancy.Delivery
	}{
		{name: "events.approval", sent: n.Approval}, {name: "events.comment", sent: n.Comment},
		{name: "events.channel", sent: n.Channel}, {name: "events.billing", sent: n.Billing},
		{name: "events.team", sent: n.Team},
	}
	for _, d := range deliveries {
		in.Check(d.sent.Valid(), d.name, "must be mail, bell or off")
	}
	if err := in.Err(op); err != nil {
		return err
	}
	return a.inPerson(ctx, op, p, func(tx *tenancystore.GateTx, _ tenancy.Person) error {
		if err := tx.SetNotifications(ctx, p.Person, n); err != nil {
			return err
		}
		return a.auditActed(ctx, tx, p, tenancy.ActionNotificationsChanged)
	})
}

// Setup fills the name of the principal's person, and of an owner's organization the time zone, where nobody has chosen
// one yet. What is filled already stays.
func (a *Accounts) Setup(ctx context.Context, p tenancy.Principal, s tenancy.Setup) error {
	const op = "tenancy.Setup"
	var in tenancy.Inputs
	name := in.Name("fullname", s.Name, 0, 128)
	in.Name("company", s.Company, 0, 128)
	if err := in.Err(op); err != nil {
		return err
	}
	return a.inPerson(ctx, op, p, func(tx *tenancystore.GateTx, _ tenancy.Person) error {
		if err := a.fillName(ctx, tx, p, name); err != nil {
			return err
		}
		zone := zoneOf(s.Timezone)
		if p.Role != tenancy.RoleSuperAdmin || p.Org.IsZero() || zone == "" || p.Access == tenancy.AccessSuspended {
			return nil
		}
		if err := a.Confirm(ctx, tx.Querier(), p); err != nil {
			return err
		}
		org, err := tx.Enter(ctx, p.Org)
		if err != nil {
			return err
		}
		o, err := org.LockOrganization(ctx)
		if err != nil {
			return err
		}
		if filled, err := org.FillTimezone(ctx, zone); err != nil || !filled {
			return err
		}
		return org.Audit(ctx, p.Event(tenancy.ActionOrganizationChanged, o.Name), a.clock.Now())
	})
}

func (a *Accounts) fillName(ctx context.Context, tx *tenancystore.GateTx, p tenancy.Principal, name string) error {
	filled, err := tx.FillName(ctx, p.Person, name)
	if err != nil || !filled {
		return err
	}
	return a.auditActed(ctx, tx, p, tenancy.ActionProfileChanged)
}

// zoneOf returns the name of the zone that is stored for a request, "" for none.
func zoneOf(z tenancy.ZoneRequest) string {
	if z.IsOffset {
		return tenancy.FixedZone(z.Minutes)
	}
	return z.Name
}

// Identities returns the identities with which the principal's person can sign in.
func (a *Accounts) Identities(ctx context.Context, p tenancy.Principal) (out []tenancy.Identity, err error) {
	const op = "tenancy.Identities"
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		out, err = tx.Identities(ctx, p.Person)
		return err
	})
	return out, err
}

// UnlinkIdentity deletes an identity of the principal's person. One that does not exist is fault.NotFound, and the last one
// of a person without a password fault.Conflict: nobody could sign in any more.
func (a *Accounts) UnlinkIdentity(ctx context.Context, p tenancy.Principal, identity string) error {
	const op = "tenancy.UnlinkIdentity"
	if err := refuseBehind(op, p); err != nil {
		return err
	}
	one, _ := id.Parse[tenancy.IdentityTag](identity)
	err := a.inPerson(ctx, op, p, func(tx *tenancystore.GateTx, person tenancy.Person) error {
		all, err := tx.Identities(ctx, p.Person)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(i tenancy.Identity) bool { return i.ID == one })
		if i < 0 {
			return fault.New(fault.NotFound, op, "There is no such identity.")
		}
		if len(all) == 1 && person.PasswordHash == "" {
			return fault.New(fault.Conflict, op, "You could not sign in any more: choose a password first.")
		}
		if err := tx.DeleteIdentity(ctx, p.Person, one); err != nil {
			return err
		}
		if err := tx.AuditPerson(ctx, p.Person, p.Event(tenancy.ActionIdentityUnlinked, all[i].Provider), a.clock.Now()); err != nil {
			return err
		}
		return a.notify(ctx, tx, mailIdentityUnlinked, person.Email, notice{Name: all[i].Provider, Address: p.From.Client})
	})
	return err
}

// Organizations returns the organizations that the principal's person can choose, or restore because it is the owner,
// the oldest membership first. Their time zone is empty.
func (a *Accounts) Organizations(ctx context.Context, p tenancy.Principal) (out []tenancy.OrganizationOf, err error) {
	const op = "tenancy.Organizations"
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		out, err = tx.Memberships(ctx, p.Person)
		return err
	})
	return slices.DeleteFunc(out, func(o tenancy.OrganizationOf) bool {
		return o.Disabled || o.DeletedAt != nil && o.Role != tenancy.RoleSuperAdmin
	}), err
}

// UnsubscribeTopics returns the topics of the mails that a link of List-Unsubscribe ends, without ending them. A token that
// is not valid is fault.NotFound.
func (a *Accounts) UnsubscribeTopics(token string) ([]tenancy.MailTopic, error) {
	_, topics, err := a.openUnsubscribe(token)
	if err != nil {
		return nil, fault.Wrap(fault.NotFound, "tenancy.UnsubscribeTopics", "This link is not valid.", err)
	}
	return topics, nil
}

// Unsubscribe switches the mails off that a link of List-Unsubscribe names: those of some topics. The bell shows what it
// did. A token that is not valid is fault.NotFound.
// Nothing of a token is stored: it is the id of the person and the topics, sealed for this use.
func (a *Accounts) Unsubscribe(ctx context.Context, token string) error {
	const op = "tenancy.Unsubscribe"
	person, topics, err := a.openUnsubscribe(token)
	if err != nil {
		return fault.Wrap(fault.NotFound, op, "This link is not valid.", err)
	}
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		n, err := tx.Notifications(ctx, person)
		if err != nil {
			return err
		}
		for _, t := range topics {
			n, _ = n.WithoutMails(t) // openUnsubscribe returns only topics that exist
		}
		return tx.SetNotifications(ctx, person, n)
	})
	if pg.IsNoRows(err) {
		return fault.New(fault.NotFound, op, "This link is not valid.")
	}
	return err
}
