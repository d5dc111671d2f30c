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

// sharedWait bounds the calls that count one log-in together with other processes.
const sharedWait = 500 * time.Millisecond

// logins delays log-ins after failed ones. Three are counted: those of a client, those of an account, and those of an account
// from one client.
//
// An account and a client that has failed on it wait longer after each failure, and longer still when the account is
// attacked from elsewhere: a thousand addresses get hardly more tries than one. A client that has not failed waits for
// nobody, and strangers cannot lengthen the delay of one that has: whatever they do, the right password of an account gets
// in at once from an address without failures, and after the longest delay from any other that is not theirs.
type logins struct {
	shared Attempts // nil without other processes
	own    *ownAttempts
	log    *slog.Logger
	turns  *limit.PerKey[string] // of clients: each has one password compared at a time

	client  []time.Duration // of a client, whatever the account
	account []time.Duration // of a client that has failed on the account, by the failures of all clients
	pair    []time.Duration // of a client that has failed on the account, by its own failures
}

func newLogins(shared Attempts, c clock.Clock, log *slog.Logger) *logins {
	return &logins{
		shared: shared, own: newOwnAttempts(c, MaxAttempts), log: log, turns: limit.New[string](1),
		client:  growing(20, time.Second, time.Minute),
		account: growing(10, time.Minute, 15*time.Minute),
		pair:    growing(5, time.Minute, 15*time.Minute),
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
// above zero; then nothing is counted. Otherwise succeeded is to be called if it succeeds. While the shared count cannot be
// reached, this process counts alone.
func (l *logins) begin(ctx context.Context, client, account string) (succeeded func(context.Context), wait time.Duration) {
	keys := [3]string{"client " + client, "account " + account, "pair " + client + " " + account}
	places := []Attempts{l.own}
	if l.shared != nil {
		places = []Attempts{l.shared, l.own}
	}
	for _, at := range places {
		wait, err := l.beginAt(ctx, at, keys)
		if err == nil {
			return func(ctx context.Context) { l.forgive(ctx, at, keys[:]) }, wait
		}
		l.log.WarnContext(ctx, "log-ins cannot be counted together with other processes; this one counts its own", "error", err)
	}
	return func(context.Context) {}, 0
}

func (l *logins) beginAt(ctx context.Context, at Attempts, keys [3]string) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, sharedWait)
	defer cancel()
	if _, wait, err = at.Begin(ctx, keys[0], l.client, 0); err != nil || wait > 0 {
		return wait, err
	}
	n, _, err := at.Begin(ctx, keys[1], nil, 0)
	if err != nil {
		return 0, err
	}
	if _, wait, err = at.Begin(ctx, keys[2], l.pair, nth(l.account, n)); err == nil && wait > 0 {
		l.forgive(ctx, at, keys[:2])
	}
	return wait, err
}

// forgive takes counted log-ins back.
func (l *logins) forgive(ctx context.Context, at Attempts, keys []string) {
	ctx, cancel := context.WithTimeout(ctx, sharedWait)
	defer cancel()
	for _, key := range keys {
		if err := at.Forgive(ctx, key); err != nil {
			l.log.WarnContext(ctx, "a log-in that did not fail stays counted as failed", "error", err)
			return
		}
	}
}
