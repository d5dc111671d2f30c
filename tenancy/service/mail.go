package service

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/mail"
	"crier/platform/pg"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
)

// MailTask is the kind of the tasks whose ids SendMail takes.
const MailTask = tenancystore.MailTask

// mailKind is what a mail is about. It is stored with the mail.
type mailKind string

// The kinds of mail.
const (
	mailRegistration         mailKind = "registration"
	mailResend               mailKind = "resend"
	mailReset                mailKind = "reset"
	mailInvitation           mailKind = "invitation"
	mailAddressOld           mailKind = "address-old"
	mailAddressNew           mailKind = "address-new"
	mailAddressChanged       mailKind = "address-changed"
	mailNewDevice            mailKind = "new-device"
	mailPasswordChanged      mailKind = "password-changed"
	mailMFAOn                mailKind = "mfa-on"
	mailMFAOff               mailKind = "mfa-off"
	mailRecoveryCodes        mailKind = "recovery-codes"
	mailIdentityLinked       mailKind = "identity-linked"
	mailIdentityUnlinked     mailKind = "identity-unlinked"
	mailKeyCreated           mailKind = "key-created"
	mailKeyRotated           mailKind = "key-rotated"
	mailKeyRevoked           mailKind = "key-revoked"
	mailRole                 mailKind = "role"
	mailOwner                mailKind = "owner"
	mailRemoved              mailKind = "removed"
	mailAccountDeletion      mailKind = "account-deletion"
	mailOrganizationDeletion mailKind = "organization-deletion"
	mailDeletionUndone       mailKind = "deletion-undone"
	mailImpersonated         mailKind = "impersonated"
)

// notice is what a mail names. It is stored as JSON and holds nothing secret.
type notice struct {
	Confirmation tenancy.ConfirmationID `json:"confirmation,omitzero"`
	Org          tenancy.OrgID          `json:"org,omitzero"`
	Invitation   tenancy.InvitationID   `json:"invitation,omitzero"`
	// Name is that of an organization, or the new address.
	Name    string       `json:"name,omitempty"`
	Key     string       `json:"key,omitempty"`
	By      string       `json:"by,omitempty"`
	Role    tenancy.Role `json:"role,omitempty"`
	Address string       `json:"address,omitempty"`
	Agent   string       `json:"agent,omitempty"`
	At      time.Time    `json:"at,omitzero"`
	Until   time.Time    `json:"until,omitzero"`
}

// addMail queues a mail in a transaction. On an instance without mail it does nothing.
func (a *Accounts) addMail(ctx context.Context, tx *tenancystore.GateTx, kind mailKind, email string, n notice) error {
	if a.deps.Mail == nil {
		return nil
	}
	n.At = a.clock.Now()
	return tx.AddMail(ctx, string(kind), email, n, n.At)
}

const (
	// maxNotices is how many notices of one kind to an address may wait to be sent when another one is added.
	maxNotices = 20
	// deleteTimeout is for the deletion of a mail that was sent.
	deleteTimeout = 5 * time.Second
	// noticeWindow excludes mails that were given up.
	noticeWindow = 24 * time.Hour
)

// notify is addMail for what has happened to a person. While too many such notices to the address wait, it only logs: one
// account must not fill the queue that all mails go through. Mails of other kinds do not count, because others can cause
// them: they could keep a notice from the person.
func (a *Accounts) notify(ctx context.Context, tx *tenancystore.GateTx, kind mailKind, email string, n notice) error {
	waiting, err := tx.CountMails(ctx, email, string(kind), a.clock.Now().Add(-noticeWindow), maxNotices)
	if err != nil {
		return err
	}
	if waiting >= maxNotices {
		a.log.WarnContext(ctx, "a mail is left out, because too many to its recipient wait", "to", email, "kind", kind)
		return nil
	}
	return a.addMail(ctx, tx, kind, email, n)
}

// errNoMail is returned for a mail that has no reason any more, such as one for an invitation that was revoked.
var errNoMail = errors.New("there is nothing to send")

// SendMail renders and sends a queued mail and deletes it. One that is gone is no error, and neither is one that the
// recipient's server refuses for good: it is logged. After another error the caller repeats it, and a link gets a new
// token then. After a crash the mail may be sent twice.
func (a *Accounts) SendMail(ctx context.Context, queued tenancy.MailID) error {
	const op = "tenancy.SendMail"
	m, err := a.queuedMail(ctx, op, queued)
	if pg.IsNoRows(err) || err == nil && a.deps.Mail == nil {
		return nil
	}
	if err != nil {
		return err
	}
	message, err := a.render(ctx, m)
	if err == nil {
		err = a.deps.Mail.Send(ctx, message)
	}
	switch {
	case err == nil:
		a.log.InfoContext(ctx, "a mail was sent", "to", message.To, "subject", message.Subject)
	case errors.Is(err, errNoMail):
		a.log.InfoContext(ctx, "a mail has no reason any more and was not sent", "kind", m.Kind)
	case mail.IsPermanent(err):
		a.log.WarnContext(ctx, "a mail was refused", "to", message.To, "subject", message.Subject, "error", err)
	default:
		return err
	}
	// The mail is out, so a stop of the process must not leave it in the queue.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTimeout)
	defer cancel()
	return a.inGate(ctx, op, func(tx *tenancystore.GateTx) error { return tx.DeleteMail(ctx, m.ID) })
}

func (a *Accounts) queuedMail(ctx context.Context, op string, queued tenancy.MailID) (m tenancystore.Mail, err error) {
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		m, err = tx.Mail(ctx, queued)
		return err
	})
	return m, err
}

// render returns the message of a mail, or errNoMail.
func (a *Accounts) render(ctx context.Context, m tenancystore.Mail) (mail.Message, error) {
	var n notice
	if err := json.Unmarshal(m.Data, &n); err != nil {
		return mail.Message{}, fault.Wrap(fault.Internal, "tenancy.render", "", err)
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
	case mailRole, mailRemoved:
		return a.renderOptional(ctx, m, n)
	}
	return a.renderNotice(mailKind(m.Kind), m.Email, n)
}

// renderNotice returns the message of a mail that has no link.
func (a *Accounts) renderNotice(kind mailKind, to string, n notice) (mail.Message, error) {
	switch kind {
	case mailAddressChanged:
		return a.mails.AddressChanged(to, n.Name), nil
	case mailNewDevice:
		return a.mails.NewDevice(to, n.At, n.Agent, n.Address), nil
	case mailPasswordChanged:
		return a.mails.PasswordChanged(to, n.At, n.Address), nil
	case mailMFAOn:
		return a.mails.SecondFactorOn(to, n.At, n.Address), nil
	case mailMFAOff:
		return a.mails.SecondFactorOff(to, n.At, n.Address), nil
	case mailRecoveryCodes:
		return a.mails.RecoveryCodesReplaced(to, n.At, n.Address), nil
	case mailIdentityLinked:
		return a.mails.IdentityLinked(to, n.Name, n.At, n.Address), nil
	case mailIdentityUnlinked:
		return a.mails.IdentityUnlinked(to, n.Name, n.At, n.Address), nil
	case mailKeyCreated:
		return a.mails.KeyCreated(to, n.Name, n.Key, n.By, n.At), nil
	case mailKeyRotated:
		return a.mails.KeyRotated(to, n.Name, n.Key, n.By, n.At), nil
	case mailKeyRevoked:
		return a.mails.KeyRevoked(to, n.Name, n.Key, n.By, n.At), nil
	case mailOwner:
		return a.mails.OwnershipReceived(to, n.Name, n.By), nil
	case mailAccountDeletion:
		return a.mails.AccountDeletion(to, n.Until), nil
	case mailOrganizationDeletion:
		return a.mails.OrganizationDeletion(to, n.Name, n.By, n.Until), nil
	case mailDeletionUndone:
		return a.mails.DeletionUndone(to, n.Name), nil
	case mailImpersonated:
		return a.mails.Impersonated(to, n.By, n.At), nil
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
		link := a.cfg.FrontendURL + "/?org=" + url.QueryEscape(code)
		out = a.mails.Invitation(m.Email, o.Name, n.By, string(i.Role), link, i.ExpiresAt)
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
		if err == nil && wants.Team != tenancy.DeliveryMail {
			err = errNoMail
		}
		if err != nil {
			return err
		}
		out = a.mails.RoleChanged(m.Email, n.Name, string(n.Role), n.By)
		if mailKind(m.Kind) == mailRemoved {
			out = a.mails.RemovedFromOrganization(m.Email, n.Name)
		}
		out.Unsubscribe, err = a.unsubscribeURL(person.ID)
		return err
	})
	if errors.Is(err, errNoMail) {
		return out, errNoMail
	}
	return out, noMail(err)
}

// unsubscribeFor binds the tokens of unsubscribeURL to their use.
const unsubscribeFor = "unsubscribe team"

// unsubscribeURL returns the address that Unsubscribe answers for a person, "" for an instance without https, whose
// mails cannot have one.
func (a *Accounts) unsubscribeURL(person tenancy.PersonID) (string, error) {
	base, err := url.Parse(a.cfg.BaseURL)
	if err != nil || base.Scheme != "https" {
		return "", nil
	}
	sealed, err := a.deps.Keyring.Seal([]byte(person.String()), unsubscribeFor)
	if err != nil {
		return "", err
	}
	return a.cfg.BaseURL + "/auth/unsubscribe?token=" + base64.RawURLEncoding.EncodeToString(sealed), nil
}

// openUnsubscribe returns the person of a token of unsubscribeURL.
func (a *Accounts) openUnsubscribe(token string) (tenancy.PersonID, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return tenancy.PersonID{}, err
	}
	raw, err := a.deps.Keyring.Open(sealed, unsubscribeFor)
	if err != nil {
		return tenancy.PersonID{}, err
	}
	person, ok := id.Parse[tenancy.PersonTag](string(raw))
	if !ok {
		return person, errors.New("it names no person")
	}
	return person, nil
}
