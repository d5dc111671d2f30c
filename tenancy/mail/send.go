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
	// deleteTimeout limits how long deleting a sent email may take.
	deleteTimeout = 5 * time.Second
	// sendingPerDomain is the maximum number of emails from one queue that this process sends
	// concurrently to the same email domain. It is smaller than the number of workers per queue, so
	// that a stalled mail server does not delay emails to other domains.
	sendingPerDomain = 3
	// sendingPerOrg is the maximum number of emails from the second queue that this process sends
	// concurrently to members of any one organization.
	sendingPerOrg = 2
)

// SendMail renders and sends a queued email, then deletes it. It returns nil if the email no longer
// exists. If the email no longer applies or the mail server permanently rejects it, SendMail logs
// this, deletes the email and returns nil. After any other error, the caller retries, and the retry
// creates new tokens for the links in the email. After a crash, an email may be sent twice.
//
// SendMail returns jobs.ErrLater in a process without a mail server, because other processes may
// have one. It also returns jobs.ErrLater if the process is already sending too many emails from
// the same queue to the recipient's domain. For the second queue, there is also a limit on
// concurrent emails to members of the same organization. first is true for the first queue.
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
	// The email has been sent or never will be, so delete it even if the process is stopping.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTimeout)
	defer cancel()
	return s.db.InGate(ctx, op, func(tx *db.GateTx) error { return mailstore.DeleteMail(ctx, tx, m.ID) })
}

// enterSending reserves the slots needed to send an email. leave frees the slots. ok is false if
// there are not enough free slots.
func (s *Mails) enterSending(m mailstore.Mail, first bool) (leave func(), ok bool) {
	if first {
		return s.sending.TryEnter(domainOf(m.Email))
	}
	leaveDomain, ok := s.sendingLater.TryEnter(domainOf(m.Email))
	if !ok {
		return nil, false
	}
	var n notice.Notice
	// A parse error is ignored here, because render returns it.
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

// MailGivenUp logs the recipient of an email that will not be retried. The email's row is kept
// until it is pruned.
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

// domainOf returns the domain of an email address.
func domainOf(email string) string { return email[strings.LastIndexByte(email, '@')+1:] }

// MailTask is the kind of task that SendMail runs. The task has the same id as the email.
const MailTask = notice.MailTask
