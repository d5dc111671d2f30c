// Package mail renders and sends queued mails, with the links in them, and turns off mails that a
// person does not want.
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

// Mailer sends mails.
type Mailer interface {
	// Send returns nil if the mail was accepted. mail.IsPermanent reports whether a retry is
	// useless.
	Send(ctx context.Context, m mail.Message) error
}

// Invitations creates the links of invitations.
type Invitations interface {
	// InvitationMail creates a link of an invitation and returns the message with it, or
	// notice.ErrObsolete.
	InvitationMail(ctx context.Context, to string, n notice.Notice) (mail.Message, error)
}

// Mails are the use cases of mails. They are safe for concurrent use.
type Mails struct {
	db          *db.DB
	clock       clock.Clock
	keyring     *secret.Keyring
	notices     *notice.Queue
	mailer      Mailer
	mails       mails.Instance
	invitations Invitations
	log         *slog.Logger
	// sending limits first attempts to send mails, by the domain of the recipient. sendingLater
	// does the same for the second queue. sendingOrg limits the mails to members in the second
	// queue, by organization.
	sending, sendingLater *limit.PerKey[string]
	sendingOrg            *limit.PerKey[tenancy.OrgID]
}

// Deps are the dependencies of New.
type Deps struct {
	DB    *db.DB
	Clock clock.Clock
	// Keyring seals the tokens of List-Unsubscribe.
	Keyring *secret.Keyring
	Notices *notice.Queue
	// Mailer is nil on an instance that sends no mail.
	Mailer      Mailer
	Mails       mails.Instance
	Invitations Invitations
	Log         *slog.Logger
}

// New returns Mails.
func New(d Deps) *Mails {
	return &Mails{
		db: d.DB, clock: d.Clock, keyring: d.Keyring, notices: d.Notices, mailer: d.Mailer, mails: d.Mails,
		invitations: d.Invitations, log: d.Log,
		sending: limit.New[string](sendingPerDomain), sendingLater: limit.New[string](sendingPerDomain),
		sendingOrg: limit.New[tenancy.OrgID](sendingPerOrg),
	}
}
