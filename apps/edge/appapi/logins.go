package appapi

import (
	"context"
	"log/slog"
	"time"

	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/limit"
)

// turnWait is how long a log-in waits for another one of its client.
const turnWait = 3 * time.Second

// logins delays log-ins after failed ones. Three are counted: those of a client, those of an account, and those of an account
// from one site. A client has one IPv4 address or the /64 network of an IPv6 address; a site has the /48, because one
// subscriber may have all of its 65,536 networks of /64, each of which would have tries of its own.
//
// An account and a site that has failed on it wait longer after each failure, and after three of them longer still when the
// account is attacked from elsewhere: each of a thousand sites gets hardly more than three tries. A site with fewer failures
// on the account does not wait, and failures of other sites do not lengthen the delay of one that has more: the right
// password of an account gets in at once from a site with at most two failures, and after the longest delay from any other
// on which nobody fails meanwhile.
//
// Whoever shares an address or a network shares its delays. A stranger in the same office or the same /48, or any client behind a
// proxy that is not in TRUSTED_PROXIES, can delay the log-ins of all there by up to a minute, and those into one account by
// up to 15, again and again.
type logins struct {
	shared Attempts // nil without other processes
	own    *ownAttempts
	log    *slog.Logger
	turns  *limit.PerKey[string] // of clients: each has one password compared at a time
}

func newLogins(shared Attempts, c clock.Clock, log *slog.Logger) *logins {
	return &logins{
		shared: shared, own: newOwnAttempts(c, MaxAttempts, LoginDelays()), log: log, turns: limit.New[string](1),
	}
}

// turn waits until no other log-in of the client is being made, so that one client cannot take all places in which
// passwords are hashed. It returns RateLimited when that takes too long; otherwise leave ends the turn.
func (l *logins) turn(ctx context.Context, client string) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, turnWait)
	defer cancel()
	if leave, err = l.turns.Enter(ctx, client); err != nil {
		return nil, &fault.Error{
			Kind: fault.RateLimited, Op: "appapi.turn", RetryAfter: turnWait,
			Message: "Other log-ins from your network are being made; try again when they are answered.",
		}
	}
	return leave, nil
}

// begin counts a log-in before it is made, so that parallel ones cannot pass the limits. It must not be made when wait is
// above zero; then nothing is counted. Otherwise forgive is to be called unless the log-in fails because of its address or
// password. While the shared count cannot be reached, this process counts alone.
func (l *logins) begin(ctx context.Context, client, site, account string) (forgive func(context.Context), wait time.Duration) {
	keys := [3]string{"client " + client, "account " + account, "pair " + site + " " + account}
	places := []Attempts{l.own}
	if l.shared != nil {
		wait, err := l.shared.Begin(ctx, keys)
		if err == nil {
			return func(ctx context.Context) { l.forgive(ctx, keys, l.shared) }, wait
		}
		l.log.WarnContext(ctx, "log-ins cannot be counted together with other processes; this one counts its own", "error", err)
		places = append(places, l.shared) // it may have counted, and answered too late
	}
	wait, _ = l.own.Begin(ctx, keys)
	return func(ctx context.Context) { l.forgive(ctx, keys, places...) }, wait
}

// forgive takes a counted log-in back.
func (l *logins) forgive(ctx context.Context, keys [3]string, places ...Attempts) {
	for _, at := range places {
		if err := at.Forgive(ctx, keys); err != nil {
			l.log.WarnContext(ctx, "a log-in that did not fail may stay counted as failed", "error", err)
		}
	}
}
