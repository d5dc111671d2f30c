// Package session authenticates the requests of people with a session, and makes the cookies of the
// service.
package session

import (
	"context"
	"time"

	"crier/apps/edge/admission"
	"crier/tenancy"
)

// Sessions authenticate requests.
type Sessions interface {
	// Session returns the principal of a session token in an organization. If organization is empty
	// or the person is not a member of it, Session chooses the person's first enabled membership.
	// If impersonate is the id of a membership and the person is an administrator of the instance,
	// the principal acts as that member. Session returns Unauthenticated for an unknown token.
	Session(ctx context.Context, token, organization, impersonate string, from tenancy.Source) (tenancy.Principal, error)
	// Logout ends a session and records the end of its impersonation, if any. An unknown token is
	// not an error.
	Logout(ctx context.Context, token string, from tenancy.Source) error
}

// Config are the settings of a Guard.
type Config struct {
	// Origins are the origins of BASE_URL, FRONTEND_URL and MAIN_URL. Pages of other origins cannot
	// use a session.
	Origins []string
	// Secure restricts cookies to https.
	Secure bool
	// Limit is the number of requests a minute that one session may make.
	Limit int
	// Timeout limits the authentication of a request.
	Timeout time.Duration
}

// Guard authenticates requests with a session. Its handlers run before the handlers of the routes.
// It is safe for concurrent use.
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
