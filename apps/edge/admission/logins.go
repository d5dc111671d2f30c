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
// browser before, these are the browser's own keys; see deviceKeys.
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

// LogFailure logs a failed or rejected login with its client and account name. Operators can then
// distinguish attacks on one account from attacks on many without seeing email addresses.
func (g *Gate) LogFailure(ctx context.Context, what, email string, err error) {
	g.log.WarnContext(ctx, what,
		"client", request.From(ctx).From.Client, "account", g.accountName(email), "error", err)
}

// turnTimeout is how long a login waits for other logins from the same client.
const turnTimeout = 3 * time.Second

// logins delays logins after failures. It counts failures for each client, for each account, and
// for each pair of account and site.
//
// A client is an IPv4 address or an IPv6 /64 network. A site is an IPv4 address or an IPv6 /48
// network. Sites are counted because one subscriber may have a whole /48. Otherwise, each of its
// 65,536 /64 networks would have its own attempts.
//
// After several failed logins to an account, a site waits longer with each further failure. After
// three failures, it also has to wait while other sites attack the account. Each of a thousand
// sites thus gets barely more than three attempts. Failures from other sites never lengthen a delay
// that has begun.
//
// The correct password is accepted immediately from a site with at most two failures on the
// account. From any other site, it is accepted after the longest delay at the latest, if the site
// does not fail again before then.
//
// A browser in which the person has signed in before is recognized by its cookie. Its logins to
// that account are counted under separate keys, with the same delays. It can therefore sign in with
// the correct password immediately, even while others attack the account or cause delays on the
// person's network.
//
// A person who is signed in must sometimes give a proof, such as the old password when setting a
// new one. A wrong proof counts like a failed login from an unknown browser. A stolen session
// therefore does not allow faster guessing.
//
// Clients that share an address or network share its delays. A client can repeatedly delay all
// other logins from its IPv4 address or /64 network by up to a minute. It can delay logins to one
// account from its IPv4 address or /48 network by up to 15 minutes. Behind a proxy that is not in
// TRUSTED_PROXIES, all clients share the proxy's address. Known browsers are not affected.
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

// loginKeys returns the Attempts keys for a client's logins to an account. site is the client's
// site. Example: "client 192.0.2.1", "account 9f86d081884c7d65" and "pair 192.0.2.1
// 9f86d081884c7d65"
func loginKeys(client, site, account string) [3]string {
	return [3]string{"client " + client, "account " + account, "pair " + site + " " + account}
}

// deviceKeys returns the Attempts keys for a known browser's logins to an account.
func deviceKeys(device, account string) [3]string {
	pair := device + " " + account
	return [3]string{"device " + device, "device account " + pair, "device pair " + pair}
}

// WaitTurn waits until no other login from the same client is running, so that one client cannot
// take every slot for hashing passwords. The caller must call release when its login is done.
// WaitTurn returns RateLimited if turnTimeout passes or ctx ends before then.
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
// If wait is positive, Begin has counted nothing and the login must not be attempted. If wait is
// zero, the caller must call forgive after the login, unless the email address or password was
// wrong.
//
// While the shared count is unreachable, this process counts its own logins.
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
		// The shared count may have counted the login despite the error.
		return func(ctx context.Context) { l.forgive(ctx, keys, l.own, l.shared) }, wait
	}
	return func(ctx context.Context) { l.forgive(ctx, keys, l.shared) }, wait
}

// forgive removes a login from the counts. Errors are only logged; after an error, the login may
// still be counted as failed.
func (l *logins) forgive(ctx context.Context, keys [3]string, counts ...Attempts) {
	for _, c := range counts {
		if err := c.Forgive(ctx, keys); err != nil {
			l.log.WarnContext(ctx, "a login that did not fail may remain counted as failed", "error", err)
		}
	}
}
