package edge

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/request"
	"crier/platform/fault"
	"crier/tenancy"
)

// How many requests of a kind one organization may have at work in this process, so that it never holds all
// connections to the database, nor all memory. The next one waits for atOncePatience.
const (
	writesAtOnce   = 4 // creates and edits of posts
	listsAtOnce    = 2 // lists of posts
	uploadsAtOnce  = 4
	atOncePatience = 5 * time.Second
)

// atOnce limits how many requests of each organization are at work.
type atOnce struct {
	most int

	mu   sync.Mutex
	orgs map[tenancy.OrgID]*places // of those with a request at work, or one that waits
}

type places struct {
	taken chan struct{}
	users int // at work or waiting
}

func newAtOnce(most int) *atOnce { return &atOnce{most: most, orgs: map[tenancy.OrgID]*places{}} }

// enter waits for a place, which leave gives back. It returns RateLimited when none is free in time, and the error of ctx.
func (a *atOnce) enter(ctx context.Context, org tenancy.OrgID) (leave func(), err error) {
	p := a.join(org)
	patience := time.NewTimer(atOncePatience)
	defer patience.Stop()
	select {
	case p.taken <- struct{}{}:
		return func() { <-p.taken; a.part(org, p) }, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-patience.C:
		err = &fault.Error{
			Kind: fault.RateLimited, Op: "edge.atOnce", RetryAfter: time.Second,
			Message: "Too many requests of your organization are at work; send the next one when one of them is answered.",
		}
	}
	a.part(org, p)
	return nil, err
}

func (a *atOnce) join(org tenancy.OrgID) *places {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.orgs[org]
	if p == nil {
		p = &places{taken: make(chan struct{}, a.most)}
		a.orgs[org] = p
	}
	p.users++
	return p
}

func (a *atOnce) part(org tenancy.OrgID, p *places) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.users--; p.users == 0 {
		delete(a.orgs, org)
	}
}

// limited has a request wait for its place among those of its organization.
func (s *Server) limited(a *atOnce) fiber.Handler {
	return func(c *fiber.Ctx) error {
		leave, err := a.enter(c.UserContext(), request.From(c.Context()).Principal.Org)
		if err != nil {
			return err
		}
		defer leave()
		return c.Next()
	}
}

// changing applies a handler only to requests that may change something.
func changing(h fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if c.Method() == http.MethodGet || c.Method() == http.MethodHead {
			return c.Next()
		}
		return h(c)
	}
}
