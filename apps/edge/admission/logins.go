package admission

import (
	"context"
	"log/slog"
	"time"

	"crier/apps/edge/request"
	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/limit"
	"crier/tenancy"
)

// TooManyFailures returns the RateLimited error for a login or a proof that must wait.
func TooManyFailures(op, message string, wait time.Duration) error {
	return &fault.Error{Kind: fault.RateLimited, Op: op, RetryAfter: wait, Message: message}
}

// KeysOf returns the keys under which a login is counted. If the person has signed in with this
// browser before, KeysOf returns the browser's keys.
func (g *Gate) KeysOf(ctx context.Context, email string, from tenancy.Source) [3]string {
	account := g.accountName(email)
	if from.Device != "" {
		known, err := g.accounts.KnownDevice(ctx, email, from)
		if err != nil {
			g.log.WarnContext(ctx, "a browser cannot be recognized; its login counts like a stranger's",
				"client", from.Client, "error", err)
		}
		if known {
			return deviceKeys(g.NameOf("device", from.Device), account)
		}
	}
	return loginKeys(from.Client, from.Site, account)
}

// LogFailure logs a failed or rejected login with its client and account name. An operator can then
// distinguish attacks on one account from attacks on many, without seeing email addresses.
func (g *Gate) LogFailure(ctx context.Context, what, email string, err error) {
	g.log.WarnContext(ctx, what,
		"client", request.From(ctx).From.Client, "account", g.accountName(email), "error", err)
}

// turnTimeout is how long a login waits for other logins by the same client.
const turnTimeout = 3 * time.Second

// logins delays logins after failures. It counts failures for each client, for each account, and
// for each pair of account and site. A client is an IPv4 address or an IPv6 /64 network. A site is
// an IPv4 address or an IPv6 /48 network. Sites are counted because one subscriber may have all
// 65,536 /64 networks of a /48, each of which would otherwise have its own attempts.
//
// After several failures on an account, a site waits longer with each further failure. After three
// failures, it also waits while other sites attack the account, so each of a thousand sites gets
// barely more than three attempts. Failures of other sites never lengthen a delay that has begun.
//
// The right password is accepted immediately from a site with at most two failures on the account.
// From any other site, it is accepted after the longest delay at the latest, provided the site does
// not fail again in that time.
//
// A browser in which the person has signed in before is recognized by its cookie. Its logins to
// that account are counted under separate keys, with the same delays. The right password is
// therefore accepted immediately even while others attack the account or share the person's
// network.
//
// A proof by a person with a session, such as the old password when setting a new one, counts like
// a login from an unknown browser. A stolen session therefore does not allow faster guessing.
//
// Clients that share an address or network share its delays. A client in the same office or the
// same /48 can repeatedly delay all other logins there by up to a minute, and logins to one account
// by up to 15 minutes. So can any client behind a proxy that is not in TRUSTED_PROXIES. Known
// browsers are not affected.
type logins struct {
	shared Attempts     // counts for all processes; nil if this process counts its own
	own    *ownAttempts // counts for this process while shared fails
	log    *slog.Logger
	turns  *limit.PerKey[string] // by client, so that only one password per client is compared at a time
}

func newLogins(shared Attempts, c clock.Clock, log *slog.Logger) *logins {
	return &logins{
		shared: shared, own: newOwnAttempts(c, MaxAttempts, LoginDelays()), log: log, turns: limit.New[string](1),
	}
}

// loginKeys returns the Attempts keys for logins to an account by a client at a site. Example:
// "client 192.0.2.1", "account 9f86d081884c7d65" and "pair 192.0.2.1 9f86d081884c7d65"
func loginKeys(client, site, account string) [3]string {
	return [3]string{"client " + client, "account " + account, "pair " + site + " " + account}
}

// deviceKeys returns the Attempts keys for logins to an account from a known browser.
func deviceKeys(device, account string) [3]string {
	pair := device + " " + account
	return [3]string{"device " + device, "device account " + pair, "device pair " + pair}
}

// WaitTurn waits until no other login by the client is running, so that one client cannot take
// every slot for hashing passwords. The caller must call release when its login is done. WaitTurn
// returns RateLimited after turnTimeout, or when ctx ends.
func (l *logins) WaitTurn(ctx context.Context, client string) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	release, err = l.turns.Enter(ctx, client)
	if err != nil {
		return nil, &fault.Error{
			Kind: fault.RateLimited, Op: "admission.waitTurn", RetryAfter: turnTimeout,
			Message: "Other sign-ins from your network are in progress. Try again when they are done.",
		}
	}
	return release, nil
}

// Begin counts a login before it is attempted, so that concurrent logins cannot exceed the limits.
// If wait is positive, nothing is counted and the login must not be attempted. Otherwise, the
// caller must call forgive unless the login fails because of its address or password. While the
// shared count is unreachable, this process counts its own logins.
func (l *logins) Begin(ctx context.Context, keys [3]string) (forgive func(context.Context), wait time.Duration) {
	if l.shared == nil {
		wait, _ = l.own.Begin(ctx, keys)
		return func(ctx context.Context) { l.forgive(ctx, keys, l.own) }, wait
	}
	wait, err := l.shared.Begin(ctx, keys)
	if err != nil {
		l.log.WarnContext(ctx,
			"logins cannot be counted across processes; this process counts its own", "error", err)
		wait, _ = l.own.Begin(ctx, keys)
		// The shared count may have counted the login before it failed.
		return func(ctx context.Context) { l.forgive(ctx, keys, l.own, l.shared) }, wait
	}
	return func(ctx context.Context) { l.forgive(ctx, keys, l.shared) }, wait
}

// forgive removes a login from the counts. Errors are only logged; the login may then remain
// counted as failed.
func (l *logins) forgive(ctx context.Context, keys [3]string, counts ...Attempts) {
	for _, c := range counts {
		if err := c.Forgive(ctx, keys); err != nil {
			l.log.WarnContext(ctx, "a login that did not fail may remain counted as failed", "error", err)
		}
	}
}
