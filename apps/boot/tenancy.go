package boot

import (
	"context"
	"log/slog"

	"crier/platform/clock"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy/credential"
	tenancydb "crier/tenancy/db"
	"crier/tenancy/deletion"
	"crier/tenancy/entry"
	"crier/tenancy/factor"
	"crier/tenancy/instance"
	"crier/tenancy/key"
	"crier/tenancy/login"
	tenancymail "crier/tenancy/mail"
	"crier/tenancy/mails"
	"crier/tenancy/member"
	"crier/tenancy/notice"
	"crier/tenancy/organization"
	"crier/tenancy/password"
	"crier/tenancy/person"
	"crier/tenancy/proof"
	"crier/tenancy/registration"
	"crier/tenancy/session"
)

// AccountsConfig holds the tenancy settings.
type AccountsConfig struct {
	Registration  registration.Config
	Deletion      deletion.Config
	Organizations organization.Config
	Enterprise    registration.EnterpriseConfig

	// BaseURL and FrontendURL are the URLs of the service and the dashboard, without a trailing
	// slash. They come from the edge settings.
	BaseURL     string
	FrontendURL string
}

// AccountsDeps holds the dependencies of NewAccounts. Only DB, Clock and Keyring are required.
type AccountsDeps struct {
	DB    *pg.DB
	Clock clock.Clock
	// Keyring seals second-factor secrets.
	Keyring *secret.Keyring
	// Revocations is nil in a process that does not call Accounts.Listen. Without Revocations, a
	// process caches a known API key for only five seconds.
	Revocations credential.Revocations
	// Mail is nil on an instance that sends no email. Accounts on that instance are active
	// immediately, and no email address counts as verified.
	Mail tenancymail.Mailer
	// Providers is nil on an instance without identity providers.
	Providers login.Providers
	// Publishing is nil in programs that publish nothing.
	Publishing Publishing
	// Quota and Plans are nil on an instance without limits.
	Quota member.Quota
	Plans organization.Plans
	Log   *slog.Logger
}

// Publishing is what tenancy needs from publishing.
type Publishing interface {
	deletion.Publishing
	instance.Publishing
	member.Publishing
}

// These aliases give the embedded tenancy types unexported field names, which cannot hide the
// types' methods.
type (
	registrations = registration.Registrations
	logins        = login.Logins
	sessions      = session.Sessions
	factors       = factor.Factors
	passwords     = password.Passwords
	people        = person.People
	organizations = organization.Organizations
	members       = member.Members
	keys          = key.Keys
	deletions     = deletion.Deletions
	accountMails  = tenancymail.Mails
	operator      = instance.Instance
)

// Accounts combines all of tenancy: people, organizations, keys and so on. It is safe for
// concurrent use.
type Accounts struct {
	*registrations
	*logins
	*sessions
	*factors
	*passwords
	*people
	*organizations
	*members
	*keys
	*deletions
	*accountMails
	*operator

	// DB confirms principals.
	DB     *tenancydb.DB
	proofs *proof.Proofs
	log    *slog.Logger
}

// NewAccounts creates an Accounts and connects its parts. It returns any error from db.New or
// proof.New.
func NewAccounts(cfg AccountsConfig, d AccountsDeps) (*Accounts, error) {
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	db, err := tenancydb.New(d.DB, d.Clock)
	if err != nil {
		return nil, err
	}
	a := &Accounts{DB: db, log: d.Log}
	a.proofs, err = proof.New(proof.Deps{DB: db, Clock: d.Clock, Keyring: d.Keyring})
	if err != nil {
		return nil, err
	}
	notices := notice.NewQueue(db, d.Clock, d.Mail != nil, d.Log)
	enter := entry.New(entry.Deps{DB: db, Clock: d.Clock, Notices: notices, DeleteGrace: cfg.Deletion.DeleteGrace})
	text := mails.Instance{Name: "Crier", URL: cfg.BaseURL, Frontend: cfg.FrontendURL}

	a.people = person.New(person.Deps{DB: db, Clock: d.Clock, Notices: notices})
	a.sessions = session.New(session.Deps{DB: db, Clock: d.Clock, Notices: notices})
	a.passwords = password.New(password.Deps{DB: db, Clock: d.Clock, Notices: notices, Proofs: a.proofs})
	a.organizations = organization.New(cfg.Organizations, organization.Deps{DB: db, Clock: d.Clock, Plans: d.Plans})
	a.factors = factor.New(factor.Deps{
		DB: db, Clock: d.Clock, Keyring: d.Keyring, Notices: notices, Proofs: a.proofs, BaseURL: cfg.BaseURL,
	})
	a.keys = key.New(key.Deps{
		DB: db, Clock: d.Clock, Notices: notices, Proofs: a.proofs, Revocations: d.Revocations,
	})
	a.members = member.New(member.Deps{
		DB: db, Clock: d.Clock, Notices: notices, Proofs: a.proofs, Mails: text, Keys: a.keys, Publishing: d.Publishing,
		Quota: d.Quota,
	})
	a.operator = instance.New(instance.Deps{
		DB: db, Clock: d.Clock, Sessions: a.sessions, Keys: a.keys.Cached(), Publishing: d.Publishing, Log: d.Log,
	})
	a.deletions = deletion.New(cfg.Deletion, deletion.Deps{
		DB: db, Clock: d.Clock, Notices: notices, Proofs: a.proofs, Access: a.operator, Publishing: d.Publishing,
		Log: d.Log,
	})
	a.logins = login.New(login.Deps{
		DB: db, Clock: d.Clock, Keyring: d.Keyring, Notices: notices, Proofs: a.proofs, Entry: enter,
		FrontendURL: cfg.FrontendURL, Providers: d.Providers, Factors: a.factors, Deletions: a.deletions,
		Access: a.operator,
	})
	a.registrations = registration.New(cfg.Registration, cfg.Enterprise, registration.Deps{
		DB: db, Clock: d.Clock, Notices: notices, Proofs: a.proofs, Entry: enter, Organizations: a.organizations,
		Invitations: a.members, Keys: a.keys,
	})
	a.accountMails = tenancymail.New(tenancymail.Deps{
		DB: db, Clock: d.Clock, Keyring: d.Keyring, Notices: notices, Mailer: d.Mail, Mails: text,
		Invitations: a.members,
		Log:         d.Log,
	})
	return a, nil
}

// Hashed returns the number of passwords this process has hashed or compared.
func (a *Accounts) Hashed() int64 { return a.proofs.Hashed() }

// Listen receives revocations until ctx ends. It applies them to the API key cache and to the
// caches in others; see credential.Listen.
func (a *Accounts) Listen(ctx context.Context, l *credential.Listening, others ...credential.Revocable) {
	credential.Listen(ctx, a.DB, a.log, l, append(credential.Caches{a.keys.Cached()}, others...))
}
