package service

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/mail"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/mails"
	tenancystore "crier/tenancy/store"
)

// errNoMail is returned for a mail that has no reason any more, such as one for an invitation that was revoked.
var errNoMail = errors.New("there is nothing to send")

// render returns the message of a mail, or errNoMail.
func (a *Accounts) render(ctx context.Context, m tenancystore.Mail) (mail.Message, error) {
	var n notice
	if err := json.Unmarshal(m.Data, &n); err != nil {
		return mail.Message{}, fault.Wrap(fault.Internal, "tenancy.render", "", err)
	}
	if err := a.nameSender(ctx, &n); err != nil {
		return mail.Message{}, err
	}
	switch mailKind(m.Kind) {
	case mailRegistration, mailResend:
		return a.renderRegistration(ctx, m, n)
	case mailReset:
		return a.renderReset(ctx, m)
	case mailInvitation:
		return a.renderInvitation(ctx, m, n)
	case mailAddressOld, mailAddressNew:
		return a.renderAddress(ctx, m, n)
	}
	if n.isOptional(mailKind(m.Kind)) {
		return a.renderOptional(ctx, m, n)
	}
	if err := a.addZone(ctx, m.Email, &n); err != nil {
		return mail.Message{}, err
	}
	return a.renderNotice(a.mails, mailKind(m.Kind), m.Email, n)
}

// nameSender replaces the address of the person who caused a mail with that person's name, if it is
// known, because recipients know each other by name.
func (a *Accounts) nameSender(ctx context.Context, n *notice) error {
	email, ok := tenancy.CleanEmail(n.By)
	if !ok {
		return nil
	}
	return a.inGate(ctx, "tenancy.nameSender", func(tx *tenancystore.GateTx) error {
		person, err := tx.PersonByEmail(ctx, email)
		if pg.IsNoRows(err) {
			return nil
		}
		n.By = cmp.Or(person.Name, n.By)
		return err
	})
}

// addZone sets the zone of a mail about an account to that of the person's first organization,
// because people have no zone of their own. For a person without an organization it is UTC.
func (a *Accounts) addZone(ctx context.Context, email string, n *notice) error {
	if n.Zone != "" {
		return nil
	}
	err := a.inGate(ctx, "tenancy.addZone", func(tx *tenancystore.GateTx) error {
		person, err := tx.PersonByEmail(ctx, email)
		if err != nil {
			return err
		}
		all, err := tx.Memberships(ctx, person.ID)
		if err != nil || len(all) == 0 {
			return err
		}
		org, err := tx.Enter(ctx, all[0].ID)
		if err != nil {
			return err
		}
		o, err := org.Organization(ctx)
		n.Zone = o.Timezone
		return err
	})
	if pg.IsNoRows(err) { // the account or the organization is gone
		return nil
	}
	return err
}

// zoned returns an instance whose messages show times in a zone, or in UTC if the zone is not known here.
func zoned(from mails.Instance, zone string) mails.Instance {
	if known, err := tenancy.LoadZone(zone); err == nil {
		from.Zone = known
	}
	return from
}

// renderNotice returns the message of a mail that has no link.
func (a *Accounts) renderNotice(from mails.Instance, kind mailKind, to string, n notice) (mail.Message, error) {
	from = zoned(from, n.Zone)
	switch kind {
	case mailAddressChanged:
		return from.AddressChanged(to, n.Name), nil
	case mailNewDevice:
		return from.NewDevice(to, n.At, n.Agent, n.Address), nil
	case mailPasswordChanged:
		return from.PasswordChanged(to, n.At, n.Address), nil
	case mailMFAOn:
		return from.SecondFactorOn(to, n.At, n.Address), nil
	case mailMFAOff:
		return from.SecondFactorOff(to, n.At, n.Address), nil
	case mailRecoveryCodes:
		return from.RecoveryCodesReplaced(to, n.At, n.Address), nil
	case mailIdentityLinked:
		return from.IdentityLinked(to, n.Name, n.At, n.Address), nil
	case mailIdentityUnlinked:
		return from.IdentityUnlinked(to, n.Name, n.At, n.Address), nil
	case mailKeyCreated:
		return from.KeyCreated(to, n.Name, n.Key, n.By, n.At), nil
	case mailKeyRotated:
		return from.KeyRotated(to, n.Name, n.Key, n.By, n.At), nil
	case mailKeyRevoked:
		return from.KeyRevoked(to, n.Name, n.Key, n.By, n.At), nil
	case mailRole:
		return from.RoleChanged(to, n.Name, string(n.Role), n.By), nil
	case mailRemoved:
		return from.RemovedFromOrganization(to, n.Name), nil
	case mailOwner:
		return from.OwnershipReceived(to, n.Name, n.By), nil
	case mailAccountDeletion:
		return from.AccountDeletion(to, n.Until), nil
	case mailOrganizationDeletion:
		return from.OrganizationDeletion(to, n.Name, n.By, n.Until), nil
	case mailDeletionUndone:
		return from.DeletionUndone(to, n.Name), nil
	case mailImpersonated:
		return from.Impersonated(to, n.By, n.At), nil
	case mailChannelDisowned:
		return from.ChannelDisowned(to, n.Name, n.Channel, n.At), nil
	case mailReport:
		if len(n.Reports) > 0 {
			return from.Reports(to, n.Name, n.Reports, n.More), nil
		}
	}
	return mail.Message{}, fault.New(fault.Internal, "tenancy.renderNotice", "There is no mail of the kind "+string(kind)+".")
}

// link returns an address of the dashboard whose fragment has a token. Browsers send no fragment to a server, so the
// token is in no log.
func (a *Accounts) link(path, name, token string) string {
	return a.cfg.FrontendURL + path + "#" + name + "=" + url.QueryEscape(token)
}

// renderRegistration makes the link of a registration. A person who has an account gets another mail.
func (a *Accounts) renderRegistration(ctx context.Context, m tenancystore.Mail, n notice) (out mail.Message, err error) {
	const op = "tenancy.renderRegistration"
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		c, several, err := a.registration(ctx, tx, m, n)
		if err != nil {
			return err
		}
		_, err = tx.PersonByEmail(ctx, m.Email)
		if err == nil {
			out = a.mails.AlreadyRegistered(m.Email, a.cfg.FrontendURL+"/auth/login", a.cfg.FrontendURL+"/auth/forgot")
			return nil
		}
		if !pg.IsNoRows(err) {
			return err
		}
		if several {
			out = a.mails.RegisterAgain(m.Email, a.cfg.FrontendURL+"/auth")
			return nil
		}
		code, err := a.confirmationLink(ctx, tx, op, c, tenancystore.SideNew)
		out = a.mails.Activation(m.Email, a.link("/auth/activate", "code", code))
		return err
	})
	return out, noMail(err)
}

// registration returns the registration that a mail is about, or that it is about one of several.
func (a *Accounts) registration(ctx context.Context, tx *tenancystore.GateTx, m tenancystore.Mail, n notice) (
	c tenancystore.Confirmation, several bool, err error) {
	if mailKind(m.Kind) != mailResend {
		c, err = tx.Confirmation(ctx, n.Confirmation, a.clock.Now())
		return c, false, err
	}
	found, err := tx.Registrations(ctx, m.Email, a.clock.Now())
	if err != nil {
		return c, false, err
	}
	if len(found) == 0 {
		return c, false, errNoMail
	}
	return found[0], len(found) > 1, nil
}

// noMail returns errNoMail for what is gone.
func noMail(err error) error {
	if pg.IsNoRows(err) {
		return errNoMail
	}
	return err
}

// confirmationLink returns the token of a new link.
func (a *Accounts) confirmationLink(ctx context.Context, tx *tenancystore.GateTx, op string,
	c tenancystore.Confirmation, side tenancystore.Side) (string, error) {
	t, hash, err := token(op)
	if err != nil {
		return "", err
	}
	return t, tx.AddConfirmationLink(ctx, c.ID, hash, side)
}

// renderReset makes the link for a new password, if there is a person with the address.
func (a *Accounts) renderReset(ctx context.Context, m tenancystore.Mail) (out mail.Message, err error) {
	const op = "tenancy.renderReset"
	now := a.clock.Now()
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		person, err := tx.PersonByEmail(ctx, m.Email)
		if err != nil {
			return err
		}
		c := tenancystore.Confirmation{
			ID: id.New[tenancy.ConfirmationTag](), Kind: tenancystore.ConfirmReset, Email: m.Email, Person: person.ID,
			CreatedAt: now, ExpiresAt: now.Add(tenancy.ResetLife),
		}
		if err := tx.CreateConfirmation(ctx, c); err != nil {
			return err
		}
		code, err := a.confirmationLink(ctx, tx, op, c, tenancystore.SideNew)
		out = a.mails.ResetPassword(m.Email, a.link("/auth/forgot-return", "token", code), tenancy.ResetLife)
		return err
	})
	return out, noMail(err)
}

// renderAddress makes the link of one side of a change of address. The owner of an address that is in use gets no link.
func (a *Accounts) renderAddress(ctx context.Context, m tenancystore.Mail, n notice) (out mail.Message, err error) {
	const op = "tenancy.renderAddress"
	side := tenancystore.SideNew
	if mailKind(m.Kind) == mailAddressOld {
		side = tenancystore.SideOld
	}
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		c, err := tx.Confirmation(ctx, n.Confirmation, a.clock.Now())
		if err != nil {
			return err
		}
		_, err = tx.PersonByEmail(ctx, c.Email)
		if err == nil && side == tenancystore.SideNew {
			out = a.mails.AlreadyRegistered(m.Email, a.cfg.FrontendURL+"/auth/login", a.cfg.FrontendURL+"/auth/forgot")
			return nil
		}
		if err != nil && !pg.IsNoRows(err) {
			return err
		}
		code, err := a.confirmationLink(ctx, tx, op, c, side)
		out = a.mails.ConfirmNewAddress(m.Email, a.link("/auth/confirm-email", "token", code))
		if side == tenancystore.SideOld {
			out = a.mails.ConfirmOldAddress(m.Email, c.Email, a.link("/auth/confirm-email", "token", code))
		}
		return err
	})
	return out, noMail(err)
}

// renderInvitation makes the link of an invitation.
func (a *Accounts) renderInvitation(ctx context.Context, m tenancystore.Mail, n notice) (out mail.Message, err error) {
	const op = "tenancy.renderInvitation"
	err = a.inOrg(ctx, op, n.Org, func(tx *tenancystore.OrgTx) error {
		i, err := tx.Invitation(ctx, n.Invitation)
		if err != nil {
			return err
		}
		o, err := tx.Organization(ctx)
		if err != nil {
			return err
		}
		if !a.clock.Now().Before(i.ExpiresAt) || o.DeletedAt != nil || o.SuspendedAt != nil { // nobody can use it
			return errNoMail
		}
		code, hash, err := token(op)
		if err != nil {
			return err
		}
		out = zoned(a.mails, o.Timezone).Invitation(m.Email, o.Name, n.By, string(i.Role), a.link("/", "org", code), i.ExpiresAt)
		return tx.AddInvitationLink(ctx, i.ID, hash)
	})
	return out, noMail(err)
}

// renderOptional returns a message that the person may have switched off.
func (a *Accounts) renderOptional(ctx context.Context, m tenancystore.Mail, n notice) (out mail.Message, err error) {
	const op = "tenancy.renderOptional"
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		person, err := tx.PersonByEmail(ctx, m.Email)
		if err != nil {
			return err
		}
		wants, err := tx.Notifications(ctx, person.ID)
		if err != nil {
			return err
		}
		n, ok := n.wantedBy(wants)
		if !ok {
			return errNoMail
		}
		if len(n.Reports) > 0 {
			if err := isStillMember(ctx, tx, person.ID, n.Org); err != nil {
				return err
			}
		}
		from := a.mails
		if from.Stop, err = a.stopLinks(person.ID, n.topics()); err != nil {
			return err
		}
		if out, err = a.renderNotice(from, mailKind(m.Kind), m.Email, n); err != nil {
			return err
		}
		out.Unsubscribe, err = a.headerLink(person.ID, n.topics(), from.Stop)
		return err
	})
	if errors.Is(err, errNoMail) {
		return out, errNoMail
	}
	return out, noMail(err)
}

// isStillMember returns errNoMail for a person who cannot use the organization any more.
func isStillMember(
	ctx context.Context, tx *tenancystore.GateTx, person tenancy.PersonID, org tenancy.OrgID,
) error {
	all, err := tx.Memberships(ctx, person)
	if err != nil {
		return err
	}
	usable := func(o tenancy.OrganizationOf) bool {
		return o.ID == org && !o.Disabled && o.SuspendedAt == nil && o.DeletedAt == nil
	}
	if !slices.ContainsFunc(all, usable) {
		return errNoMail
	}
	return nil
}

// unsubscribeFor binds the tokens of unsubscribeURL to their use.
const unsubscribeFor = "unsubscribe"

// stopLinks returns the links of the footer that end the mails of some topics.
func (a *Accounts) stopLinks(person tenancy.PersonID, topics []tenancy.MailTopic) (out []mails.StopLink, err error) {
	for _, t := range topics {
		address, err := a.unsubscribeURL(person, t)
		if err != nil {
			return nil, err
		}
		out = append(out, mails.StopLink{Words: t.About(), URL: address})
	}
	return out, nil
}

// headerLink returns the link of List-Unsubscribe, which ends the mails of all topics of a message, or "" where that may not
// have one. footer are the links of the single topics.
func (a *Accounts) headerLink(
	person tenancy.PersonID, topics []tenancy.MailTopic, footer []mails.StopLink,
) (string, error) {
	if !strings.HasPrefix(a.cfg.BaseURL, "https:") {
		return "", nil
	}
	if len(footer) == 1 {
		return footer[0].URL, nil
	}
	return a.unsubscribeURL(person, topics...)
}

// unsubscribeURL returns the address that Unsubscribe answers for a person and some kinds of mails.
func (a *Accounts) unsubscribeURL(person tenancy.PersonID, topics ...tenancy.MailTopic) (string, error) {
	text := person.String() + " "
	for i, t := range topics {
		if i > 0 {
			text += ","
		}
		text += string(t)
	}
	sealed, err := a.deps.Keyring.Seal([]byte(text), unsubscribeFor)
	if err != nil {
		return "", err
	}
	return a.cfg.BaseURL + "/auth/unsubscribe?token=" + base64.RawURLEncoding.EncodeToString(sealed), nil
}

// openUnsubscribe returns the person and the kinds of mails of a token of unsubscribeURL. All of the kinds exist.
func (a *Accounts) openUnsubscribe(token string) (person tenancy.PersonID, topics []tenancy.MailTopic, err error) {
	sealed, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return person, nil, err
	}
	raw, err := a.deps.Keyring.Open(sealed, unsubscribeFor)
	if err != nil {
		return person, nil, err
	}
	name, list, _ := strings.Cut(string(raw), " ")
	person, ok := id.Parse[tenancy.PersonTag](name)
	if !ok {
		return person, nil, errors.New("it names no person")
	}
	for topic := range strings.SplitSeq(list, ",") {
		t := tenancy.MailTopic(topic)
		if t.About() == "" {
			return person, nil, errors.New("it names no kind of mails")
		}
		topics = append(topics, t)
	}
	return person, topics, nil
}
