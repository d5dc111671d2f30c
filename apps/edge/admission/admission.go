// Package admission limits what clients without an API key may do.
package admission

import (
	"context"
	"crypto/rand"
	"log/slog"

	"crier/platform/clock"
	"crier/tenancy"
)

// Senders are the use cases that tell whom mails and log-ins are counted for.
type Senders interface {
	// Senders returns hashes of the mailboxes against which the principal's mails count: the
	// mailbox of the person who answers for the organization, and the mailbox of the principal's
	// person.
	Senders(ctx context.Context, p tenancy.Principal) ([]string, error)
	// KnownDevice reports whether the person with the address has signed in before in the browser
	// that from names.
	KnownDevice(ctx context.Context, email string, from tenancy.Source) (bool, error)
}

// Deps are the dependencies of a Gate. Only Attempts, Windows and AccountKey are optional.
type Deps struct {
	// Attempts counts the log-ins of all processes together. If it is nil, this process counts its
	// own.
	Attempts Attempts
	// Windows counts the requests of all processes together. If it is nil, this process counts its
	// own.
	Windows Windows
	// AccountKey is the HMAC key for the names of accounts in logs, and of accounts, browsers and
	// sessions in Attempts and Windows. It must be the same in all processes. If it is empty, a
	// random key is used.
	AccountKey []byte
	Accounts   Senders
	Clock      clock.Clock
	Log        *slog.Logger
}

// Gate limits what clients without an API key may do: log-ins, mails, uses of tokens, and the
// requests of a session. It reads the client of a request from the request's Info in package
// request. It is safe for concurrent use.
type Gate struct {
	windows *windows
	Buckets buckets
	Logins  *logins

	accounts   Senders
	accountKey []byte
	clock      clock.Clock
	log        *slog.Logger
}

// New returns a Gate. sessionLimit is the number of requests a minute that one session may make.
// Without d.AccountKey it makes a random key, so account names in logs differ between processes.
func New(sessionLimit int, d Deps) *Gate {
	key := d.AccountKey
	if len(key) == 0 {
		key = []byte(rand.Text())
	}
	return &Gate{
		windows: &windows{shared: d.Windows, clock: d.Clock, log: d.Log},
		Buckets: newBuckets(sessionLimit, d.Clock),
		Logins:  newLogins(d.Attempts, d.Clock, d.Log),

		accounts: d.Accounts, accountKey: key, clock: d.Clock, log: d.Log,
	}
}
