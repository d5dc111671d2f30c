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

// TooManyFailures returns the RateLimited error for a log-in or a proof that must wait.
func TooManyFailures(op, message string, wait time.Duration) error {
	return &fault.Error{Kind: fault.RateLimited, Op: op, RetryAfter: wait, Message: message}
}

// KeysOf returns the keys under which a log-in counts. If the person has signed in with the browser
// before, they are the browser's keys.
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

// LogFailure logs a log-in that did not succeed, with its client and the name of its account. An
// operator can tell attacks on one account from attacks on many without seeing addresses.
func (g *Gate) LogFailure(ctx context.Context, what, email string, err error) {
	g.log.WarnContext(ctx, what,
		"client", request.From(ctx).From.Client, "account", g.accountName(email), "error", err)
}

// turnTimeout is how long a log-in waits for another log-in of the same client.
const turnTimeout = 3 * time.Second

// logins delays log-ins after failures. It counts the failures of a client, of an account, and of
// an account from one site. A client is one IPv4 address or the /64 network of an IPv6 address. A
// site is the same address or, for IPv6, the /48 network, because one subscriber may have all
// 65,536 of its /64 networks, each of which would otherwise have its own attempts.
//
// A site that has failed on an account waits longer after each failure. After three failures it
// waits longer still while other sites attack the account, so each of a thousand sites gets hardly
// more than three attempts. A site with fewer failures on the account does not wait, and failures
// of other sites never lengthen a delay that has begun. The right password is accepted at once from
// a site with at most two failures, and from any other site after the longest delay, if that site
// does not fail again in that time.
//
// A browser in which the person has signed in before is recognized by its cookie. Its log-ins into
// that account count under their own keys, with the same delays, so the right password is accepted
// at once even while others attack the account or share the person's network. Proofs by a person
// with a session, such as the old password when setting a new one, count like log-ins from an
// unknown browser, so that whoever has stolen a session cannot guess the password faster.
//
// Clients with the same address or network share its delays. A client in the same office or the
// same /48, or any client behind a proxy that is not in TRUSTED_PROXIES, can repeatedly delay
// everybody else's log-ins there by up to a minute, and log-ins into one account by up to 15
// minutes, except from known browsers.
type logins struct {
	shared Attempts     // counts for all processes; nil if this process counts its own
	own    *ownAttempts // counts for this process while shared fails
	log    *slog.Logger
	turns  *limit.PerKey[string] // by client: one password of each client is compared at a time
}

func newLogins(shared Attempts, c clock.Clock, log *slog.Logger) *logins {
	return &logins{
		shared: shared, own: newOwnAttempts(c, MaxAttempts, LoginDelays()), log: log, turns: limit.New[string](1),
	}
}

// loginKeys returns the keys of Attempts for log-ins into an account by a client at a site.
func loginKeys(client, site, account string) [3]string {
	return [3]string{"client " + client, "account " + account, "pair " + site + " " + account}
}

// deviceKeys returns the keys of Attempts for log-ins into an account from a known browser.
func deviceKeys(device, account string) [3]string {
	pair := device + " " + account
	return [3]string{"device " + device, "device account " + pair, "device pair " + pair}
}

// WaitTurn waits until no other log-in of the client is running, so that one client cannot take
// every slot for hashing passwords. The caller must call release when its log-in is done. WaitTurn
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

// Begin counts a log-in before it is made, so that concurrent log-ins cannot exceed the limits. If
// wait is above zero, nothing is counted and the log-in must not be made. Otherwise the caller
// calls forgive unless the log-in fails because of its address or password. While the shared count
// is unreachable, this process counts its own log-ins.
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
		// The shared count may have counted the log-in before it failed.
		return func(ctx context.Context) { l.forgive(ctx, keys, l.own, l.shared) }, wait
	}
	return func(ctx context.Context) { l.forgive(ctx, keys, l.shared) }, wait
}

// forgive removes a log-in from the counts. Errors are only logged: the log-in may then stay
// counted as failed.
func (l *logins) forgive(ctx context.Context, keys [3]string, counts ...Attempts) {
	for _, c := range counts {
		if err := c.Forgive(ctx, keys); err != nil {
			l.log.WarnContext(ctx, "a login that did not fail may remain counted as failed", "error", err)
		}
	}
}
