// Package mail renders and sends queued emails, creates the links in them, and lets people
// unsubscribe.
package mail

import (
	"context"
	"log/slog"

	"crier/platform/clock"
	"crier/platform/limit"
	"crier/platform/mail"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/db"
	"crier/tenancy/mails"
	"crier/tenancy/notice"
)

// Mailer sends emails.
type Mailer interface {
	// Send returns nil if the mail server accepted the email. If Send returns an error,
	// mail.IsPermanent reports whether retrying is pointless.
	Send(ctx context.Context, m mail.Message) error
}

// Invitations creates invitation links.
type Invitations interface {
	// InvitationMail creates a new link for an invitation and returns an email that contains the
	// link. It returns notice.ErrObsolete if the invitation can no longer be used.
	InvitationMail(ctx context.Context, to string, n notice.Notice) (mail.Message, error)
}

// Mails renders and sends emails and handles unsubscribing. It is safe for concurrent use.
type Mails struct {
	db          *db.DB
	clock       clock.Clock
	keyring     *secret.Keyring
	notices     *notice.Queue
	mailer      Mailer
	mails       mails.Instance
	invitations Invitations
	log         *slog.Logger
	// sending limits concurrent sends from the first queue, per recipient domain. sendingLater does
	// the same for the second queue. sendingOrg limits concurrent sends from the second queue to
	// the members of one organization.
	sending, sendingLater *limit.PerKey[string]
	sendingOrg            *limit.PerKey[tenancy.OrgID]
}

// Deps holds the dependencies of New.
type Deps struct {
	DB    *db.DB
	Clock clock.Clock
	// Keyring seals the tokens in List-Unsubscribe links.
	Keyring *secret.Keyring
	Notices *notice.Queue
	// Mailer is nil on an instance that sends no email.
	Mailer      Mailer
	Mails       mails.Instance
	Invitations Invitations
	Log         *slog.Logger
}

// New returns a new Mails.
func New(d Deps) *Mails {
	return &Mails{
		db: d.DB, clock: d.Clock, keyring: d.Keyring, notices: d.Notices, mailer: d.Mailer, mails: d.Mails,
		invitations: d.Invitations, log: d.Log,
		sending: limit.New[string](sendingPerDomain), sendingLater: limit.New[string](sendingPerDomain),
		sendingOrg: limit.New[tenancy.OrgID](sendingPerOrg),
	}
}
