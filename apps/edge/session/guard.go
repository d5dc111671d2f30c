// Package session authenticates requests with a session, and creates the service's cookies.
package session

import (
	"context"
	"time"

	"crier/apps/edge/admission"
	"crier/tenancy"
)

// Sessions looks up and ends sessions.
type Sessions interface {
	// Session returns the principal for a session token in an organization. If organization is
	// empty or the person is not a member of it, Session uses the person's first enabled
	// membership.
	//
	// If the person is an instance administrator and impersonate is the id of a membership, the
	// principal impersonates that member. Session returns Unauthenticated if the token is unknown.
	Session(ctx context.Context, token, organization, impersonate string, from tenancy.Source) (tenancy.Principal, error)
	// Logout ends a session and records the end of any impersonation in that session. An unknown
	// token is not an error.
	Logout(ctx context.Context, token string, from tenancy.Source) error
}

// Config configures a Guard.
type Config struct {
	// Origins lists the origins of BASE_URL, FRONTEND_URL and MAIN_URL. Pages from other origins
	// cannot use a session.
	Origins []string
	// Secure restricts cookies to https.
	Secure bool
	// Limit is the number of requests that one session may make per minute.
	Limit int
	// Timeout limits how long the authentication of a request may take.
	Timeout time.Duration
}

// Guard authenticates requests with a session. Its handlers run before the routes' own handlers. It
// is safe for concurrent use.
type Guard struct {
	cfg      Config
	sessions Sessions
	cookies  Cookies
	gate     *admission.Gate
}

// New returns a Guard.
func New(cfg Config, sessions Sessions, gate *admission.Gate) *Guard {
	return &Guard{cfg: cfg, sessions: sessions, cookies: Cookies{Secure: cfg.Secure}, gate: gate}
}
