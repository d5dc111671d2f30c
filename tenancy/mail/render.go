package mail

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"crier/platform/fault"
	"crier/platform/mail"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
	mailstore "crier/tenancy/mail/store"
	"crier/tenancy/mails"
	"crier/tenancy/notice"
)

// render returns the message for a queued email. It returns ErrObsolete if the email no longer
// applies.
func (s *Mails) render(ctx context.Context, m mailstore.Mail) (mail.Message, error) {
	var n notice.Notice
	if err := json.Unmarshal(m.Data, &n); err != nil {
		return mail.Message{}, fault.Wrap(fault.Internal, "tenancy.render", "", err)
	}
	if err := s.nameSender(ctx, &n); err != nil {
		return mail.Message{}, err
	}
	switch notice.Kind(m.Kind) {
	case notice.Registration, notice.Resend:
		return s.renderRegistration(ctx, m, n)
	case notice.Reset:
		return s.renderReset(ctx, m)
	case notice.Invitation:
		return s.invitations.InvitationMail(ctx, m.Email, n)
	case notice.AddressOld, notice.AddressNew:
		return s.renderAddress(ctx, m, n)
	}
	if n.IsOptional(notice.Kind(m.Kind)) {
		return s.renderOptional(ctx, m, n)
	}
	if err := s.addZone(ctx, m.Email, &n); err != nil {
		return mail.Message{}, err
	}
	return s.renderNotice(s.mails, notice.Kind(m.Kind), m.Email, n)
}

// nameSender replaces an email address in n.By with the name of the person who has the address,
// because members know each other by name. It leaves n.By unchanged if the name is unknown.
func (s *Mails) nameSender(ctx context.Context, n *notice.Notice) error {
	email, ok := tenancy.CleanEmail(n.By)
	if !ok {
		return nil
	}
	return s.db.InGate(ctx, "tenancy.nameSender", func(tx *db.GateTx) error {
		person, err := db.PersonByEmail(ctx, tx, email)
		if pg.IsNoRows(err) {
			return nil
		}
		n.By = cmp.Or(person.Name, n.By)
		return err
	})
}

// addZone sets the time zone of an email about an account. People have no time zone setting, so
// addZone uses the time zone of the person's first organization. If the person has no organization,
// the email shows times in UTC.
func (s *Mails) addZone(ctx context.Context, email string, n *notice.Notice) error {
	if n.Zone != "" {
		return nil
	}
	err := s.db.InGate(ctx, "tenancy.addZone", func(tx *db.GateTx) error {
		person, err := db.PersonByEmail(ctx, tx, email)
		if err != nil {
			return err
		}
		all, err := db.Memberships(ctx, tx, person.ID)
		if err != nil || len(all) == 0 {
			return err
		}
		org, err := tx.Enter(ctx, all[0].ID)
		if err != nil {
			return err
		}
		o, err := db.ReadOrganization(ctx, org)
		n.Zone = o.Timezone
		return err
	})
	if pg.IsNoRows(err) { // the account or the organization is gone
		return nil
	}
	return err
}

// renderNotice returns the message for an email that needs no new link.
func (s *Mails) renderNotice(from mails.Instance, kind notice.Kind, to string, n notice.Notice) (mail.Message, error) {
	from = mails.Zoned(from, n.Zone)
	switch kind {
	case notice.AddressChanged:
		return from.AddressChanged(to, n.Name), nil
	case notice.NewDevice:
		return from.NewDevice(to, n.At, n.Agent, n.Address), nil
	case notice.PasswordChanged:
		return from.PasswordChanged(to, n.At, n.Address), nil
	case notice.MFAOn:
		return from.SecondFactorOn(to, n.At, n.Address), nil
	case notice.MFAOff:
		return from.SecondFactorOff(to, n.At, n.Address), nil
	case notice.RecoveryCodes:
		return from.RecoveryCodesReplaced(to, n.At, n.Address), nil
	case notice.IdentityLinked:
		return from.IdentityLinked(to, n.Name, n.At, n.Address), nil
	case notice.IdentityUnlinked:
		return from.IdentityUnlinked(to, n.Name, n.At, n.Address), nil
	case notice.KeyCreated:
		return from.KeyCreated(to, n.Name, n.Key, n.By, n.At), nil
	case notice.KeyRotated:
		return from.KeyRotated(to, n.Name, n.Key, n.By, n.At), nil
	case notice.KeyRevoked:
		return from.KeyRevoked(to, n.Name, n.Key, n.By, n.At), nil
	case notice.Role:
		return from.RoleChanged(to, n.Name, string(n.Role), n.By), nil
	case notice.Removed:
		return from.RemovedFromOrganization(to, n.Name), nil
	case notice.Owner:
		return from.OwnershipReceived(to, n.Name, n.By), nil
	case notice.AccountDeletion:
		return from.AccountDeletion(to, n.Until), nil
	case notice.OrganizationDeletion:
		return from.OrganizationDeletion(to, n.Name, n.By, n.Until), nil
	case notice.DeletionUndone:
		return from.DeletionUndone(to, n.Name), nil
	case notice.Impersonated:
		return from.Impersonated(to, n.By, n.At), nil
	case notice.ChannelDisowned:
		return from.ChannelDisowned(to, n.Name, n.Channel, n.At), nil
	case notice.Report:
		if len(n.Reports) > 0 {
			return from.Reports(to, n.Name, n.Reports, n.More), nil
		}
	}
	return mail.Message{}, fault.New(fault.Internal, "tenancy.renderNotice", "There is no mail of kind "+string(kind)+".")
}

// renderOptional returns the message for an email that people can opt out of. It returns
// ErrObsolete if the person has opted out of it. It also returns ErrObsolete if the email contains
// reports and the person can no longer use the organization.
func (s *Mails) renderOptional(ctx context.Context, m mailstore.Mail, n notice.Notice) (out mail.Message, err error) {
	const op = "tenancy.renderOptional"
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		person, err := db.PersonByEmail(ctx, tx, m.Email)
		if err != nil {
			return err
		}
		wants, err := db.ReadNotifications(ctx, tx, person.ID)
		if err != nil {
			return err
		}
		n, ok := n.WantedBy(wants)
		if !ok {
			return notice.ErrObsolete
		}
		if len(n.Reports) > 0 {
			if err := isStillMember(ctx, tx, person.ID, n.Org); err != nil {
				return err
			}
		}
		from := s.mails
		if from.Stop, err = s.stopLinks(person.ID, n.Topics()); err != nil {
			return err
		}
		if out, err = s.renderNotice(from, notice.Kind(m.Kind), m.Email, n); err != nil {
			return err
		}
		out.Unsubscribe, err = s.headerLink(person.ID, n.Topics(), from.Stop)
		return err
	})
	if errors.Is(err, notice.ErrObsolete) {
		return out, notice.ErrObsolete
	}
	return out, notice.Obsolete(err)
}

// isStillMember returns ErrObsolete if the person can no longer use the organization.
func isStillMember(
	ctx context.Context, tx *db.GateTx, person tenancy.PersonID, org tenancy.OrgID,
) error {
	all, err := db.Memberships(ctx, tx, person)
	if err != nil {
		return err
	}
	usable := func(o tenancy.OrganizationOf) bool {
		return o.ID == org && !o.Disabled && o.SuspendedAt == nil && o.DeletedAt == nil
	}
	if !slices.ContainsFunc(all, usable) {
		return notice.ErrObsolete
	}
	return nil
}
