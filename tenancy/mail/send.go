package mail

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"crier/platform/jobs"
	"crier/platform/mail"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
	mailstore "crier/tenancy/mail/store"
	"crier/tenancy/notice"
)

const (
	// deleteTimeout is for the deletion of a mail that was sent.
	deleteTimeout = 5 * time.Second
	// sendingPerDomain is how many mails to the recipients of one mail domain this process sends at
	// once from each of the two queues: fewer than these have workers, so that a domain whose
	// server stalls does not delay the mails to others.
	sendingPerDomain = 3
	// sendingPerOrg is how many mails to the members of one organization it sends at once from the
	// second queue.
	sendingPerOrg = 2
)

// SendMail renders and sends a queued mail and deletes it. One that is gone is no error, and
// neither is one that the recipient's server refuses for good: it is logged. After another error
// the caller repeats it, and a link gets a new token then. After a crash the mail may be sent
// twice. It returns jobs.ErrLater in a process without a mail server, because others may have one,
// and while too many mails to the domain of the recipient are being sent from the queue, which is
// the second one without first, or too many to members of one organization from that.
func (s *Mails) SendMail(ctx context.Context, queued tenancy.MailID, first bool) error {
	const op = "tenancy.SendMail"
	m, err := s.queuedMail(ctx, op, queued)
	if pg.IsNoRows(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if s.mailer == nil {
		return jobs.ErrLater
	}
	if notice.Kind(m.Kind) == notice.Members {
		return s.mailPage(ctx, m.ID)
	}
	leave, ok := s.enterSending(m, first)
	if !ok {
		return jobs.ErrLater
	}
	defer leave()
	message, err := s.render(ctx, m)
	if err == nil {
		err = s.mailer.Send(ctx, message)
	}
	switch {
	case err == nil:
		s.log.InfoContext(ctx, "a mail was sent", "to", message.To, "subject", message.Subject)
	case errors.Is(err, notice.ErrObsolete):
		s.log.InfoContext(ctx, "a mail has no reason any more and was not sent", "kind", m.Kind)
	case mail.IsPermanent(err):
		s.log.WarnContext(ctx, "a mail was refused", "to", message.To, "subject", message.Subject, "error", err)
	default:
		return err
	}
	// The mail is out, so a stop of the process must not leave it in the queue.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTimeout)
	defer cancel()
	return s.db.InGate(ctx, op, func(tx *db.GateTx) error { return mailstore.DeleteMail(ctx, tx, m.ID) })
}

// enterSending takes the places of a mail among those that are being sent. ok is false when there
// is none.
func (s *Mails) enterSending(m mailstore.Mail, first bool) (leave func(), ok bool) {
	if first {
		return s.sending.TryEnter(domainOf(m.Email))
	}
	leaveDomain, ok := s.sendingLater.TryEnter(domainOf(m.Email))
	if !ok {
		return nil, false
	}
	var n notice.Notice
	if err := json.Unmarshal(m.Data, &n); err != nil || n.Org.IsZero() || !n.IsOptional(notice.Kind(m.Kind)) { // render returns the error
		return leaveDomain, true
	}
	leaveOrg, ok := s.sendingOrg.TryEnter(n.Org)
	if !ok {
		leaveDomain()
		return nil, false
	}
	return func() { leaveOrg(); leaveDomain() }, true
}

// MailGivenUp logs the recipient of a mail that is not tried again. Its row stays until it is
// pruned.
func (s *Mails) MailGivenUp(ctx context.Context, queued tenancy.MailID) {
	m, err := s.queuedMail(ctx, "tenancy.MailGivenUp", queued)
	if err != nil {
		s.log.WarnContext(ctx, "a mail was given up", "mail", queued, "error", err)
		return
	}
	s.log.WarnContext(ctx, "a mail was given up", "to", m.Email, "kind", m.Kind, "queued", m.CreatedAt)
}

func (s *Mails) queuedMail(ctx context.Context, op string, queued tenancy.MailID) (m mailstore.Mail, err error) {
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		m, err = mailstore.ReadMail(ctx, tx, queued)
		return err
	})
	return m, err
}

// domainOf returns the domain of a mail address.
func domainOf(email string) string { return email[strings.LastIndexByte(email, '@')+1:] }

// MailTask is the kind of the tasks whose ids SendMail takes.
const MailTask = notice.MailTask
