package edge

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"golang.org/x/sync/semaphore"

	"crier/apps/edge/request"
	"crier/platform/fault"
	"crier/tenancy"
)

// How much of a kind one organization may have in this process at once, so that it never holds all connections to the
// database, nor all memory. What is one more waits for atOncePatience.
const (
	writesAtOnce   = 4 // creates and edits of posts
	bodiesAtOnce   = 4 // largest bodies of such requests, or smaller ones with as many bytes
	readsAtOnce    = 8 // other reads of the public API
	listsAtOnce    = 2 // lists of posts
	uploadsAtOnce  = 4
	atOncePatience = 5 * time.Second
)

// atOnce limits what each organization has at once, in whatever weights are counted in.
type atOnce struct {
	most int64

	mu   sync.Mutex
	orgs map[tenancy.OrgID]*places // of those that have something, or wait
}

type places struct {
	free  *semaphore.Weighted
	users int // that have places or wait for some
}

func newAtOnce(most int64) *atOnce { return &atOnce{most: most, orgs: map[tenancy.OrgID]*places{}} }

// enter waits for places, as many as weight, which leave gives back; it is called once. A weight of more than all counts
// as all. It returns RateLimited when they are not free in time.
func (a *atOnce) enter(ctx context.Context, org tenancy.OrgID, weight int64) (leave func(), err error) {
	p, weight := a.join(org), min(weight, a.most)
	ctx, cancel := context.WithTimeout(ctx, atOncePatience)
	defer cancel()
	if err := p.free.Acquire(ctx, weight); err != nil {
		a.part(org, p)
		return nil, &fault.Error{
			Kind: fault.RateLimited, Op: "edge.atOnce", RetryAfter: time.Second, Err: err,
			Message: "Your organization has too many requests in progress; send the next one when one of them is answered.",
		}
	}
	return func() { p.free.Release(weight); a.part(org, p) }, nil
}

func (a *atOnce) join(org tenancy.OrgID) *places {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.orgs[org]
	if p == nil {
		p = &places{free: semaphore.NewWeighted(a.most)}
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

// limited has a request wait for its place among those of its organization. It has the place until it is answered.
func (s *Server) limited(most int64) fiber.Handler {
	a := newAtOnce(most)
	return func(c *fiber.Ctx) error {
		leave, err := a.enter(c.UserContext(), request.From(c.Context()).Principal.Org, 1)
		if err != nil {
			return err
		}
		defer leave()
		return c.Next()
	}
}

// limitedBodies is limited for the bytes of bodies, before they are read. One of unknown length counts as the longest.
func (s *Server) limitedBodies(longest int64) fiber.Handler {
	a := newAtOnce(bodiesAtOnce * longest)
	return func(c *fiber.Ctx) error {
		weight := int64(c.Request().Header.ContentLength())
		if weight < 0 || weight > longest {
			weight = longest
		}
		ctx, cancel := context.WithTimeout(c.UserContext(), s.cfg.Timeout)
		defer cancel()
		leave, err := a.enter(ctx, request.From(c.Context()).Principal.Org, weight)
		if err != nil {
			return err
		}
		defer leave()
		return c.Next()
	}
}

// limitedAnswers is limited for answers that may be large: a request has its place until its answer is on the wire, so
// that no client that does not read has more of them in memory.
func (s *Server) limitedAnswers(most int64) fiber.Handler {
	a := newAtOnce(most)
	return func(c *fiber.Ctx) error {
		leave, err := a.enter(c.UserContext(), request.From(c.Context()).Principal.Org, 1)
		if err != nil {
			return err
		}
		leave = sync.OnceFunc(leave)
		sent := false
		defer func() {
			if !sent {
				leave()
			}
		}()
		if err := c.Next(); err != nil {
			return err
		}
		resp := c.Response()
		body, size := resp.BodyStream(), resp.Header.ContentLength()
		if body == nil {
			own := resp.SwapBody(nil)
			body, size = bytes.NewReader(own), len(own)
		}
		resp.SetBodyStream(heldAnswer{body, leave}, size)
		sent = true
		return nil
	}
}

// heldAnswer is the body of an answer, which fasthttp closes when it was written or cannot be.
type heldAnswer struct {
	io.Reader
	leave func()
}

// Close gives the place back.
func (h heldAnswer) Close() error {
	h.leave()
	return nil
}

// byMethod applies one handler to requests that only read, and another to those that may change something.
func byMethod(reading, changing fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if c.Method() == http.MethodGet || c.Method() == http.MethodHead {
			return reading(c)
		}
		return changing(c)
	}
}
