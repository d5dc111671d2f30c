// Package session authenticates the requests of people with a session, and makes the cookies of the service.
package session

import (
	"context"
	"time"

	"crier/apps/edge/admission"
	"crier/tenancy"
)

// Sessions authenticate requests.
type Sessions interface {
	// Session returns the principal of a session token in an organization, and as another person when impersonate is the
	// id of a membership and the person of the session is an administrator of the instance. With an empty organization,
	// or one that the person is no member of, that is the first enabled membership. An unknown token is Unauthenticated.
	Session(ctx context.Context, token, organization, impersonate string, from tenancy.Source) (tenancy.Principal, error)
	// Logout ends a session, and records the end of what it acts as. An unknown token is no error.
	Logout(ctx context.Context, token string, from tenancy.Source) error
}

// Config are the settings of a Guard.
type Config struct {
	// Origins are the origins of BASE_URL, FRONTEND_URL and MAIN_URL: pages of others cannot use a session.
	Origins []string
	// Secure restricts cookies to https.
	Secure bool
	// Limit is the limit of requests a minute of one session.
	Limit int
	// Timeout limits the authentication of a request.
	Timeout time.Duration
}

// Guard authenticates the requests of sessions: its methods run before the handlers of their routes. It is safe for
// concurrent use.
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
