package edge

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/request"
	"crier/platform/fault"
	"crier/platform/limit"
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
	sessionsAtOnce = 4 // requests of people who are signed in, beside those of the public API
	atOncePatience = 5 * time.Second
)

// atOnce limits what each organization has at once.
type atOnce struct{ *limit.PerKey[tenancy.OrgID] }

func newAtOnce(most int) atOnce { return atOnce{limit.New[tenancy.OrgID](most)} }

// take waits for so many places of the organization of a request, which leave gives back; it is called once. It returns
// RateLimited when they are not free in time.
func (a atOnce) take(ctx context.Context, c *fiber.Ctx, n int) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, atOncePatience)
	defer cancel()
	leave, err = a.Take(ctx, request.From(c.Context()).Principal.Org, n)
	if err != nil {
		return nil, &fault.Error{
			Kind: fault.RateLimited, Op: "edge.atOnce", RetryAfter: time.Second, Err: err,
			Message: "Your organization has too many requests in progress; send the next one when one of them is answered.",
		}
	}
	return leave, nil
}

// limited has a request wait for its place among those of its organization. It has the place until it is answered.
func (s *Server) limited(most int) fiber.Handler {
	a := newAtOnce(most)
	return func(c *fiber.Ctx) error {
		leave, err := a.take(c.UserContext(), c, 1)
		if err != nil {
			return err
		}
		defer leave()
		return c.Next()
	}
}

// limitedBodies is limited for the bytes of bodies, before they are read. One of unknown length counts as the longest.
func (s *Server) limitedBodies(longest int64) fiber.Handler {
	a := newAtOnce(bodiesAtOnce * int(longest))
	return func(c *fiber.Ctx) error {
		leave, err := a.take(c.UserContext(), c, bodySize(c, longest))
		if err != nil {
			return err
		}
		defer leave()
		return c.Next()
	}
}

// bodySize returns how many bytes the body of a request may bring, at most longest.
func bodySize(c *fiber.Ctx, longest int64) int {
	size := c.Request().Header.ContentLength()
	if size < 0 || size > int(longest) {
		return int(longest)
	}
	return size
}

// limitedAnswers is limited for answers that may be large: a request has its place until its answer is on the wire, so
// that no client that does not read has more of them in memory.
func (s *Server) limitedAnswers(most int) fiber.Handler {
	a := newAtOnce(most)
	return func(c *fiber.Ctx) error {
		leave, err := a.take(c.UserContext(), c, 1)
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
