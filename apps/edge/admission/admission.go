// Package admission limits what clients without an API key may do.
package admission

import (
	"context"
	"crypto/rand"
	"log/slog"

	"crier/platform/clock"
	"crier/tenancy"
)

// Senders identifies the mailboxes toward which emails are counted. It also identifies the browsers
// in which a person has signed in before.
type Senders interface {
	// Senders returns hashes of the mailboxes that the principal's emails count toward: the mailbox
	// of the person responsible for the organization, and the mailbox of the principal's person.
	Senders(ctx context.Context, p tenancy.Principal) ([]string, error)
	// KnownDevice reports whether the person with the email address has previously signed in with
	// the browser that from.Device identifies.
	KnownDevice(ctx context.Context, email string, from tenancy.Source) (bool, error)
}

// Deps holds the dependencies of a Gate. Only Attempts, Windows and AccountKey are optional.
type Deps struct {
	// Attempts counts logins across all processes. If it is nil, this process counts its own
	// logins.
	Attempts Attempts
	// Windows counts requests across all processes. If it is nil, this process counts its own
	// requests.
	Windows Windows
	// AccountKey is the HMAC key for account names in logs. It is also the key for the names of
	// accounts, browsers and sessions in Attempts and Windows. It must be the same in all
	// processes. If it is empty, a random key is used.
	AccountKey []byte
	Accounts   Senders
	Clock      clock.Clock
	Log        *slog.Logger
}

// Gate limits clients that have no API key. It limits logins, emails, the use of tokens, and the
// requests of each session. It identifies a request's client by the request's Info. A Gate is safe
// for concurrent use.
type Gate struct {
	windows *windows
	Buckets buckets
	Logins  *logins

	accounts   Senders
	accountKey []byte
	clock      clock.Clock
	log        *slog.Logger
}

// New returns a Gate. sessionLimit is the number of requests that one session may make per minute.
// If d.AccountKey is empty, New generates a random key, and each process then logs different
// account names.
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
