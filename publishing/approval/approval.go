// Package approval implements the use cases of draft approvals, one per file, and owns their
// transactions.
package approval

import (
	"log/slog"

	"crier/platform/secret"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/db"
	"crier/publishing/pictures"
)

// Config configures the use cases.
type Config struct {
	// BaseURL is the public address of this instance.
	BaseURL string
}

// Deps holds the dependencies of New. Only Pictures and Mailer are optional.
type Deps struct {
	Requests *Requests
	Threads  Threads
	Drafts   Drafts
	Keyring  *secret.Keyring
	// Connectors provides the names of the platforms.
	Connectors *connector.Registry
	// Waker wakes an organization after an approval has scheduled a post.
	Waker publishing.Waker
	Log   *slog.Logger
	// Pictures creates smaller pictures in this process. It is nil if other processes create them.
	Pictures *pictures.Maker
	// Mailer is nil in a process that sends no mail; see SendReviewMail.
	Mailer ReviewMailer
}

// Approvals are the use cases of draft approvals. They are safe for concurrent use.
type Approvals struct {
	cfg      Config
	deps     Deps
	requests *Requests
	db       *db.DB
	sweep    approvalSweep
}

// New returns the use cases of approvals.
func New(cfg Config, deps Deps) *Approvals {
	s := &Approvals{cfg: cfg, deps: deps, requests: deps.Requests, db: deps.Requests.db}
	s.sweep = s.newSweep()
	return s
}
