// Package approval implements the use cases for approving drafts. Each use case has its own file
// and manages its own transactions.
package approval

import (
	"log/slog"

	"crier/platform/secret"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/db"
	"crier/publishing/pictures"
)

// Config configures Approvals.
type Config struct {
	// BaseURL is this instance's public URL. Example: https://crier.example
	BaseURL string
}

// Deps holds the dependencies of New. Only Pictures and Mailer are optional.
type Deps struct {
	Requests *Requests
	Threads  Threads
	Drafts   Drafts
	Keyring  *secret.Keyring
	// Connectors provides the platform names.
	Connectors *connector.Registry
	// Waker wakes an organization's actor after an approval has scheduled a post.
	Waker publishing.Waker
	Log   *slog.Logger
	// Pictures creates smaller pictures in this process. It is nil if other processes create them.
	Pictures *pictures.Maker
	// Mailer sends the emails. It is nil in a process that sends no email; see SendReviewMail.
	Mailer ReviewMailer
}

// Approvals implements the use cases for approving drafts. It is safe for concurrent use.
type Approvals struct {
	cfg      Config
	deps     Deps
	requests *Requests
	db       *db.DB
	sweep    approvalSweep
}

// New returns an Approvals that uses the given dependencies.
func New(cfg Config, deps Deps) *Approvals {
	s := &Approvals{cfg: cfg, deps: deps, requests: deps.Requests, db: deps.Requests.db}
	s.sweep = s.newSweep()
	return s
}
