// Package service implements sign-in, sessions, API keys, and the use cases of people and organizations.
package service

import (
	"context"
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/alexedwards/argon2id"

	"crier/platform/batch"
	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/limit"
	"crier/platform/mail"
	"crier/platform/paste"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/mails"
	"crier/tenancy/signin"
	tenancystore "crier/tenancy/store"
)

// Deps are the dependencies of New. Only DB, Clock and Keyring are required.
type Deps struct {
	DB    *pg.DB
	Clock clock.Clock
	// Keyring seals the secrets of second factors.
	Keyring *secret.Keyring
	// Revocations is nil in a process that does not call Accounts.Listen. It caches a found key for only five seconds.
	Revocations Revocations
	// Mail is nil on an instance that sends no mail: accounts are active at once, and no address counts as verified.
	Mail Mailer
	// Providers is nil on an instance without identity providers.
	Providers Providers
	// Publishing is nil in programs that publish nothing.
	Publishing Publishing
	// Quota and Plans are nil on an instance without limits.
	Quota Quota
	Plans Plans
	Log   *slog.Logger
}

// Mailer sends mails.
type Mailer interface {
	// Send returns nil when the mail was accepted. mail.IsPermanent reports whether a repetition is useless.
	Send(ctx context.Context, m mail.Message) error
}

// Providers are the identity providers of the instance, see signin.Providers.
type Providers interface {
	Has(p signin.Provider) bool
	Begin(ctx context.Context, p signin.Provider, redirectURI string) (signin.Start, error)
	Finish(ctx context.Context, p signin.Provider, c signin.Callback) (signin.Identity, error)
}

// Publishing stops and resumes the publishing of organizations, and deletes what they have.
type Publishing interface {
	// Stop ends the publishing of an organization: when it returns, no call to a platform can begin.
	Stop(ctx context.Context, org tenancy.OrgID, by string) error
	// Resume undoes Stop. What fell due meanwhile is given up as missed unless catchUp.
	Resume(ctx context.Context, org tenancy.OrgID, by string, catchUp bool) error
	// Stopped returns those of the organizations that Stop has stopped.
	Stopped(ctx context.Context, orgs []tenancy.OrgID) ([]tenancy.OrgID, error)
	// ForgetReviewer removes the address of a person who is being purged from the approval requests
	// of all organizations.
	ForgetReviewer(ctx context.Context, email string) error
	// Purge deletes all posts, channels and files of an organization and returns how many rows it deleted. It returns
	// Conflict when a call to a platform is still in progress.
	Purge(ctx context.Context, org tenancy.OrgID) (int, error)
	// TakeMade returns what a person made in the organization of q except keys and invitations, and
	// deletes the webhooks with Revoke. It runs in the transaction of q, and returns the error of Postgres.
	TakeMade(ctx context.Context, q pg.Querier, m tenancy.Maker) (tenancy.MadeBy, error)
}

// Quota returns what the plan of an organization allows.
type Quota interface {
	// Limits is called in the transaction that adds a member or an invitation, with the organization locked. It reads
	// with q, and returns the error of Postgres.
	Limits(ctx context.Context, q pg.Querier, org tenancy.OrgID) (tenancy.Limits, error)
}

// Plans reports which plans organizations have.
type Plans interface {
	// OnDefault returns the name of the default plan and how many of the organizations have it. The
	// number is 0 if the plan has no limits.
	OnDefault(orgs []tenancy.OrgID) (plan string, n int)
}

const (
	// hashWait is how long a log-in waits for a slot.
	hashWait = 3 * time.Second
	// waitingPerSite is the greatest number of log-ins of one site that wait for a slot.
	waitingPerSite = 8
)

// Accounts authenticates people and programs, and has the use cases of people, organizations and keys. It is safe for
// concurrent use.
type Accounts struct {
	cfg   Config
	deps  Deps
	store *tenancystore.Store
	clock clock.Clock
	log   *slog.Logger
	mails mails.Instance
	keys  *keyCache
	// sessions are not cached, so that a session ends at once in all processes.
	sessions *lookUps[tenancystore.Session]
	hash     *argon2id.Params
	slots    *limit.Fair[string] // limits concurrent hashing of passwords, fairly by site
	// audits limits queries of audit logs, fairly by organization: one can read a whole log.
	audits *limit.Fair[tenancy.OrgID]
	// sending limits first attempts to send mails, and sendingLater those of the second queue, by the domain of the
	// recipient. sendingOrg limits the mails to members in the second queue, by their organization.
	sending, sendingLater *limit.PerKey[string]
	sendingOrg            *limit.PerKey[tenancy.OrgID]
	decoy                 string       // the hash that is compared when the person is unknown
	hashed                atomic.Int64 // passwords that were hashed or compared

	// purgeOrgs and purgePeople hold where the next Purge goes on.
	purgeOrgs   *batch.Sweep[tenancy.OrgID]
	purgePeople *batch.Sweep[tenancy.PersonID]
	// clockInjected is clock.IsInjected, except in tests.
	clockInjected bool
	// purgeShare is the constant purgeShare, except in tests.
	purgeShare time.Duration
}

// New returns an Accounts. It computes one password hash, which takes about as long as a log-in. It returns the error
// of the system's source of randomness.
func New(cfg Config, d Deps) (*Accounts, error) {
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	store, err := tenancystore.New(d.DB)
	if err != nil {
		return nil, err
	}
	a := &Accounts{
		cfg: cfg, deps: d, store: store, clock: d.Clock, log: d.Log,
		mails: mails.Instance{Name: "Crier", URL: cfg.BaseURL}, slots: newSlots(hashesAtOnce(runtime.GOMAXPROCS(0))),
		audits:  limit.NewFair[tenancy.OrgID](auditsAtOnce, auditsWaiting),
		sending: limit.New[string](sendingPerDomain), sendingLater: limit.New[string](sendingPerDomain),
		sendingOrg: limit.New[tenancy.OrgID](sendingPerOrg),
		hash:       &argon2id.Params{Memory: 19 * 1024, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32},
	}
	a.keys = newKeyCache(d.Clock, d.Revocations, a.findKeys)
	a.purgeOrgs, a.purgePeople, a.purgeShare = a.orgSweep(), a.personSweep(), purgeShare
	a.clockInjected = clock.IsInjected(d.Clock)
	a.sessions = &lookUps[tenancystore.Session]{find: a.findSessions}
	a.decoy, err = argon2id.CreateHash("no such person", a.hash)
	return a, err
}

// hashesAtOnce returns the number of passwords that are hashed concurrently. Each needs a whole core and tens of
// megabytes, so half of the cores are left for other work.
func hashesAtOnce(cores int) int { return max(1, cores/2) }

func newSlots(n int) *limit.Fair[string] { return limit.NewFair[string](n, waitingPerSite) }

// Hashed returns how many passwords this process has hashed or compared.
func (a *Accounts) Hashed() int64 { return a.hashed.Load() }

// inGate runs a transaction of the gate role and converts its error. Faults of fn are returned as they are.
func (a *Accounts) inGate(ctx context.Context, op string, fn func(tx *tenancystore.GateTx) error) error {
	return asFault(op, a.store.InGate(ctx, fn))
}

// inOrg is inGate for the rows of one organization.
func (a *Accounts) inOrg(ctx context.Context, op string, org tenancy.OrgID, fn func(tx *tenancystore.OrgTx) error) error {
	return asFault(op, a.store.InOrg(ctx, org, fn))
}

// asFault returns the fault in an error, and else that of the database. A fault that a function of a transaction has
// returned is passed on.
func asFault(op string, err error) error {
	if f := asFaultError(err); f != nil {
		return f
	}
	return pg.Fault(op, err)
}

// token returns a new random token of 256 bits and its hash.
func token(op string) (string, []byte, error) {
	t, err := secret.Token("", 43) // 43 base62 characters have 256 bits
	if err != nil {
		return "", nil, fault.Wrap(fault.Internal, op, "", err)
	}
	return t, secret.HashToken(t), nil
}

// pastedHash returns the hash of a token or a code that may have been copied from a mail.
func pastedHash(text string) []byte { return secret.HashToken(paste.Word(text)) }

// instanceEvent returns an entry of the audit log for what the operator or the service itself did.
func instanceEvent(actor string, action tenancy.Action, subject string) tenancy.AuditEvent {
	return tenancy.Principal{Via: tenancy.ViaInstance, Name: actor}.Event(action, subject)
}

// personEvent returns an entry of the audit log for what a person did without a session.
func personEvent(p tenancy.Person, from tenancy.Source, action tenancy.Action) tenancy.AuditEvent {
	by := tenancy.Principal{Person: p.ID, Via: tenancy.ViaSession, Name: p.Email, From: from}
	return by.Event(action, "")
}
