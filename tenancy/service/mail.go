package service

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"crier/platform/fault"
	"crier/platform/jobs"
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
	mailChannelDisowned      mailKind = "channel-disowned"
	// mailMembers is for a page of the members of an organization: its task queues a mail for each of them. The address of
	// its row is the id of the organization.
	mailMembers mailKind = "members"
	// mailReport is about an incident of a channel, or about published posts.
	mailReport mailKind = "report"
)

// notice is what a mail names. It is stored as JSON and holds nothing secret.
type notice struct {
	Confirmation tenancy.ConfirmationID `json:"confirmation,omitzero"`
	Org          tenancy.OrgID          `json:"org,omitzero"`
	Invitation   tenancy.InvitationID   `json:"invitation,omitzero"`
	// Name is that of an organization, or the new address.
	Name    string       `json:"name,omitempty"`
	Key     string       `json:"key,omitempty"`
	Channel string       `json:"channel,omitempty"`
	By      string       `json:"by,omitempty"`
	Role    tenancy.Role `json:"role,omitempty"`
	Address string       `json:"address,omitempty"`
	Agent   string       `json:"agent,omitempty"`
	// Zone is the time zone of the organization, "" in mails that concern only an account.
	Zone  string    `json:"zone,omitempty"`
	At    time.Time `json:"at,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Kind is that of the mails which one of the kind mailMembers makes, for the members after a person.
	Kind  mailKind         `json:"kind,omitempty"`
	After tenancy.PersonID `json:"after,omitzero"`
	// Reports are set for mailReport, and More is the number of reports that the mail does not list.
	Reports []tenancy.Report `json:"reports,omitempty"`
	More    int              `json:"more,omitempty"`
}

// isOptional returns whether the person can switch a mail off.
func (n notice) isOptional(kind mailKind) bool {
	switch kind {
	case mailRole, mailRemoved, mailReport:
		return true
	case mailOrganizationDeletion, mailDeletionUndone:
		return n.Role == tenancy.RoleUser
	}
	return false
}

// topics returns what the person can switch off to get no such mails.
func (n notice) topics() (out []tenancy.MailTopic) {
	if len(n.Reports) == 0 {
		return []tenancy.MailTopic{tenancy.TopicTeam}
	}
	for _, r := range n.Reports {
		if t := r.Topic(); !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// wantedBy returns the mail as a person with these settings gets it. ok is false when the person wants nothing of it.
func (n notice) wantedBy(settings tenancy.Notifications) (out notice, ok bool) {
	if len(n.Reports) == 0 {
		return n, settings.Mails(tenancy.TopicTeam)
	}
	var wanted []tenancy.Report
	for _, r := range n.Reports {
		if r, ok := r.For(settings); ok {
			wanted = append(wanted, r)
		}
	}
	n.Reports = wanted
	return n, len(wanted) > 0
}

// addMail queues a mail in a transaction. On an instance without mail it does nothing. What a person can switch off goes
// behind the mails that people wait for, because there may be thousands of it, and so do the pages of members who get it
// and the further pages of all mails.
func (a *Accounts) addMail(ctx context.Context, tx *tenancystore.GateTx, kind mailKind, email string, n notice) error {
	if a.deps.Mail == nil {
		return nil
	}
	n.At = a.clock.Now()
	of := kind
	if kind == mailMembers {
		of = n.Kind
	}
	return tx.AddMail(ctx, string(kind), email, n, n.At, n.isOptional(of) || !n.After.IsZero())
}

const (
	// maxNotices is how many notices of one kind to an address may wait to be sent when another one is added.
	maxNotices = 20
	// deleteTimeout is for the deletion of a mail that was sent.
	deleteTimeout = 5 * time.Second
	// noticeWindow excludes mails that were given up.
	noticeWindow = 24 * time.Hour
	// sendingPerDomain is how many mails to the recipients of one mail domain this process sends at once from each of the two
	// queues: fewer than these have workers, so that a domain whose server stalls does not delay the mails to others.
	sendingPerDomain = 3
	// sendingPerOrg is how many mails to the members of one organization it sends at once from the second queue.
	sendingPerOrg = 2
	// membersPage is how many members get a mail by one transaction.
	membersPage = 100
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

// SendMail renders and sends a queued mail and deletes it. One that is gone is no error, and neither is one that the
// recipient's server refuses for good: it is logged. After another error the caller repeats it, and a link gets a new
// token then. After a crash the mail may be sent twice. It returns jobs.ErrLater in a process without a mail server,
// because others may have one, and while too many mails to the domain of the recipient are being sent from the queue, which
// is the second one without first, or too many to members of one organization from that.
func (a *Accounts) SendMail(ctx context.Context, queued tenancy.MailID, first bool) error {
	const op = "tenancy.SendMail"
	m, err := a.queuedMail(ctx, op, queued)
	if pg.IsNoRows(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if a.deps.Mail == nil {
		return jobs.ErrLater
	}
	if mailKind(m.Kind) == mailMembers {
		return a.mailPage(ctx, m.ID)
	}
	leave, ok := a.enterSending(m, first)
	if !ok {
		return jobs.ErrLater
	}
	defer leave()
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

// enterSending takes the places of a mail among those that are being sent. ok is false when there is none.
func (a *Accounts) enterSending(m tenancystore.Mail, first bool) (leave func(), ok bool) {
	if first {
		return a.sending.TryEnter(domainOf(m.Email))
	}
	leaveDomain, ok := a.sendingLater.TryEnter(domainOf(m.Email))
	if !ok {
		return nil, false
	}
	var n notice
	if err := json.Unmarshal(m.Data, &n); err != nil || n.Org.IsZero() || !n.isOptional(mailKind(m.Kind)) { // render returns the error
		return leaveDomain, true
	}
	leaveOrg, ok := a.sendingOrg.TryEnter(n.Org)
	if !ok {
		leaveDomain()
		return nil, false
	}
	return func() { leaveOrg(); leaveDomain() }, true
}

// domainOf returns the domain of a mail address.
func domainOf(email string) string { return email[strings.LastIndexByte(email, '@')+1:] }

// MailGivenUp logs the recipient of a mail that is not tried again. Its row stays until it is pruned.
func (a *Accounts) MailGivenUp(ctx context.Context, queued tenancy.MailID) {
	m, err := a.queuedMail(ctx, "tenancy.MailGivenUp", queued)
	if err != nil {
		a.log.WarnContext(ctx, "a mail was given up", "mail", queued, "error", err)
		return
	}
	a.log.WarnContext(ctx, "a mail was given up", "to", m.Email, "kind", m.Kind, "queued", m.CreatedAt)
}

// mailMembers queues a mail about an organization for each of its members: the first page by a task, which is in the second
// queue for reports.
func (a *Accounts) mailMembers(ctx context.Context, tx *tenancystore.GateTx, kind mailKind, n notice) error {
	n.Kind = kind
	return a.addMail(ctx, tx, mailMembers, n.Org.String(), n)
}

// mailPage replaces a mail of the kind mailMembers by those for the members of its page and the one for the next page, in
// one transaction, so that a repetition after a crash makes no second mail. When the organization is gone, or what the
// mails say is not true any more, it only deletes the mail.
func (a *Accounts) mailPage(ctx context.Context, queued tenancy.MailID) error {
	const op = "tenancy.mailPage"
	err := a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		m, err := tx.TakeMail(ctx, queued)
		if err != nil {
			return err
		}
		var n notice
		if err := json.Unmarshal(m.Data, &n); err != nil {
			return fault.Wrap(fault.Internal, op, "", err)
		}
		org, err := tx.Enter(ctx, n.Org)
		if err != nil {
			return err
		}
		o, err := org.Organization(ctx)
		if pg.IsNoRows(err) || err == nil && !n.isTrueOf(o) {
			return nil
		}
		if err != nil {
			return err
		}
		page, err := org.Recipients(ctx, n.After, membersPage)
		if err != nil {
			return err
		}
		if tx, err = org.Leave(ctx); err != nil {
			return err
		}
		return a.mailAll(ctx, tx, n, page)
	})
	if pg.IsNoRows(err) { // another process has done it
		return nil
	}
	return err
}

// isTrueOf reports whether a mail to the members of an organization still says what is true. Members who cannot use the
// organization get no reports.
func (n notice) isTrueOf(o tenancy.Organization) bool {
	if n.Kind == mailReport && o.SuspendedAt != nil {
		return false
	}
	return (o.DeletedAt != nil) == (n.Kind == mailOrganizationDeletion)
}

// reportsFor returns the reports that a member is to get.
func (n notice) reportsFor(to tenancystore.Recipient) (out []tenancy.Report) {
	for _, r := range n.Reports {
		if !to.Disabled && r.IsFor(to.Person, to.Notifications) {
			out = append(out, r)
		}
	}
	return out
}

// mailAll queues the mails of a page, and the mail for the next page if there may be one.
func (a *Accounts) mailAll(ctx context.Context, tx *tenancystore.GateTx, n notice, page []tenancystore.Recipient) error {
	for _, to := range page {
		if err := a.mailMember(ctx, tx, n, to); err != nil {
			return err
		}
	}
	if len(page) < membersPage {
		return nil
	}
	n.After = page[len(page)-1].Person
	return a.mailMembers(ctx, tx, n.Kind, n)
}

// mailMember queues the mail of a member, or none.
func (a *Accounts) mailMember(ctx context.Context, tx *tenancystore.GateTx, n notice, to tenancystore.Recipient) error {
	each := notice{Org: n.Org, Name: n.Name, Zone: n.Zone, Channel: n.Channel, By: n.By, Until: n.Until, Role: to.Role}
	if n.Kind == mailChannelDisowned && (to.Disabled || !to.Role.Manages()) {
		return nil
	}
	if n.Kind != mailReport {
		return a.notify(ctx, tx, n.Kind, to.Email, each)
	}
	if each.Reports = n.reportsFor(to); len(each.Reports) == 0 {
		return nil
	}
	return a.mailReports(ctx, tx, to, each)
}

func (a *Accounts) queuedMail(ctx context.Context, op string, queued tenancy.MailID) (m tenancystore.Mail, err error) {
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		m, err = tx.Mail(ctx, queued)
		return err
	})
	return m, err
}
