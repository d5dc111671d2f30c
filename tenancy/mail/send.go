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
	// deleteTimeout limits the deletion of a mail that was sent.
	deleteTimeout = 5 * time.Second
	// sendingPerDomain is how many mails to one mail domain this process sends at once from each of
	// the two queues. It is smaller than the number of workers of a queue, so that a domain whose
	// server stalls does not delay mails to others.
	sendingPerDomain = 3
	// sendingPerOrg is how many mails to the members of one organization this process sends at once
	// from the second queue.
	sendingPerOrg = 2
)

// SendMail renders and sends a queued mail and deletes it. It returns nil if the mail is gone. It
// also returns nil, and logs the mail, if the recipient's server refuses it permanently. After
// another error the caller retries, and a link then gets a new token. After a crash the mail may be
// sent twice.
//
// SendMail returns jobs.ErrLater in a process without a mail server, because others may have one.
// It also does so while too many mails to the recipient's domain are being sent from the mail's
// queue, which is the first if first is set and otherwise the second. In the second queue, the
// limit of mails to the members of one organization applies too.
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
		s.log.InfoContext(ctx, "mail sent", "to", message.To, "subject", message.Subject)
	case errors.Is(err, notice.ErrObsolete):
		s.log.InfoContext(ctx, "mail skipped: no longer applicable", "kind", m.Kind)
	case mail.IsPermanent(err):
		s.log.WarnContext(ctx, "mail refused", "to", message.To, "subject", message.Subject, "error", err)
	default:
		return err
	}
	// The mail is out, so a stop of the process must not leave it in the queue.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTimeout)
	defer cancel()
	return s.db.InGate(ctx, op, func(tx *db.GateTx) error { return mailstore.DeleteMail(ctx, tx, m.ID) })
}

// enterSending reserves the slots that a mail needs while it is being sent. ok is false if one of
// them is not free.
func (s *Mails) enterSending(m mailstore.Mail, first bool) (leave func(), ok bool) {
	if first {
		return s.sending.TryEnter(domainOf(m.Email))
	}
	leaveDomain, ok := s.sendingLater.TryEnter(domainOf(m.Email))
	if !ok {
		return nil, false
	}
	var n notice.Notice
	// If the data cannot be parsed, render returns the error.
	if err := json.Unmarshal(m.Data, &n); err != nil || n.Org.IsZero() || !n.IsOptional(notice.Kind(m.Kind)) {
		return leaveDomain, true
	}
	leaveOrg, ok := s.sendingOrg.TryEnter(n.Org)
	if !ok {
		leaveDomain()
		return nil, false
	}
	return func() { leaveOrg(); leaveDomain() }, true
}

// MailGivenUp logs the recipient of a mail that will not be retried. The mail's row stays until it
// is pruned.
func (s *Mails) MailGivenUp(ctx context.Context, queued tenancy.MailID) {
	m, err := s.queuedMail(ctx, "tenancy.MailGivenUp", queued)
	if err != nil {
		s.log.WarnContext(ctx, "mail given up", "mail", queued, "error", err)
		return
	}
	s.log.WarnContext(ctx, "mail given up", "to", m.Email, "kind", m.Kind, "queued", m.CreatedAt)
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

// MailTask is the kind of the tasks whose ids are passed to SendMail.
const MailTask = notice.MailTask
