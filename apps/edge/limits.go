package edge

import (
	"bytes"
	"context"
	"io"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/request"
	"crier/platform/fault"
	"crier/platform/limit"
	"crier/tenancy"
)

// How many requests of one kind an organization may run concurrently in this process, so that it
// never takes all database connections or all memory. Further requests wait for placeTimeout.
const (
	maxWrites  = 4 // creates and edits of posts
	maxBodies  = 4 // as many bytes as four of the largest bodies of such requests
	maxReads   = 8 // other reads of the public API
	maxLists   = 2 // lists of posts, and reports
	maxUploads = 4
	maxFetches = 2 // uploads from URLs
	maxStreams = 2 // videos that one address plays through the service
	// maxOriginals is for files as they were uploaded, requested with keys and with sessions.
	maxOriginals = 4
	// maxStatistics is for reads of statistics with keys and with sessions, which may wait for the
	// servers of platforms.
	maxStatistics = 32
	// maxSessions is for requests with a session, in addition to those in the public API. It is
	// also the limit for one person's requests to routes without an organization.
	maxSessions = 4

	placeTimeout = 5 * time.Second
)

// orgLimit counts the slots that each organization has taken in this process. A slot is a request
// or, in limitBodies, one byte of a body.
type orgLimit struct{ *limit.PerKey[tenancy.OrgID] }

func newOrgLimit(most int) orgLimit { return orgLimit{PerKey: limit.New[tenancy.OrgID](most)} }

// take waits for n slots of the request's organization. The caller must call release once, when it
// is done with them. take returns RateLimited if they are not free within placeTimeout.
func (a orgLimit) take(ctx context.Context, c *fiber.Ctx, n int) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, placeTimeout)
	defer cancel()
	release, err = a.Take(ctx, request.From(c.Context()).Principal.Org, n)
	if err != nil {
		return nil, tooManyInProgress("Your organization has", err)
	}
	return release, nil
}

func tooManyInProgress(whoHas string, cause error) error {
	return &fault.Error{
		Kind: fault.RateLimited, Op: "edge.tooManyInProgress", RetryAfter: time.Second, Err: cause,
		Message: whoHas + " too many requests in progress. Wait for one of them to finish before you send another.",
	}
}

// limitPersons returns a handler that bounds how many requests of a person run concurrently, in all
// organizations together.
func limitPersons(most int) fiber.Handler {
	persons := limit.New[tenancy.PersonID](most)
	return func(c *fiber.Ctx) error {
		ctx, cancel := context.WithTimeout(c.UserContext(), placeTimeout)
		defer cancel()
		release, err := persons.Enter(ctx, request.From(c.Context()).Principal.Person)
		if err != nil {
			return tooManyInProgress("You have", err)
		}
		defer release()
		return c.Next()
	}
}

// limitRequests returns a handler that bounds how many requests of an organization run
// concurrently. A request keeps its slot until its handler returns.
func limitRequests(most int) fiber.Handler {
	a := newOrgLimit(most)
	return func(c *fiber.Ctx) error {
		release, err := a.take(c.UserContext(), c, 1)
		if err != nil {
			return err
		}
		defer release()
		return c.Next()
	}
}

// limitBodies is like limitRequests, but limits the bytes of bodies. It runs before they are read.
// longest is the maximum size of a body, in bytes; a body of unknown length counts as the longest.
func limitBodies(longest int64) fiber.Handler {
	a := newOrgLimit(maxBodies * int(longest))
	return func(c *fiber.Ctx) error {
		release, err := a.take(c.UserContext(), c, bodySize(c, longest))
		if err != nil {
			return err
		}
		defer release()
		return c.Next()
	}
}

// bodySize returns how many bytes the body of a request may have, at most longest.
func bodySize(c *fiber.Ctx, longest int64) int {
	size := c.Request().Header.ContentLength()
	if size < 0 || size > int(longest) {
		return int(longest)
	}
	return size
}

// limitAnswers is like limitRequests, but for large responses: a request keeps its slot until its
// response is written, because the response stays in memory until the client has read it.
func limitAnswers(most int) fiber.Handler {
	a := newOrgLimit(most)
	return func(c *fiber.Ctx) error {
		release, err := a.take(c.UserContext(), c, 1)
		if err != nil {
			return err
		}
		release = sync.OnceFunc(release)
		sent := false
		defer func() {
			if !sent {
				release()
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
		resp.SetBodyStream(limitedBody{Reader: body, release: release}, size)
		sent = true
		return nil
	}
}

// limitedBody is a response body that has a slot. fasthttp closes it once it has been written or
// cannot be written.
type limitedBody struct {
	io.Reader
	release func()
}

func (b limitedBody) Close() error {
	b.release()
	return nil
}
