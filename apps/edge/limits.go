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

// These constants limit how many requests of each kind an organization can run concurrently in this
// process. They keep one organization from using up all database connections or memory. Further
// requests wait for up to placeTimeout.
const (
	maxWrites  = 4 // requests that create or edit posts
	maxBodies  = 4 // total size of their bodies, as a multiple of the largest allowed body
	maxReads   = 8 // other reads of the public API
	maxLists   = 2 // lists of posts, and reports
	maxUploads = 4
	maxFetches = 2 // uploads from URLs
	maxCalls   = 8 // requests to the MCP server
	maxStreams = 2 // videos that one address can play through the service
	// maxOriginals limits requests for uploaded files in their original form. It applies to
	// requests with an API key or a session.
	maxOriginals = 4
	// maxStatistics limits requests for statistics, which may have to wait for a platform's server.
	// It applies to requests with an API key or a session.
	maxStatistics = 32
	// maxSessions limits requests with a session, which are counted separately from requests to the
	// public API. It also limits one person's requests to routes without an organization.
	maxSessions = 4

	placeTimeout = 5 * time.Second
)

// orgLimit counts the slots that each organization has taken in this process. One slot stands for a
// request or, in limitBodies, for one byte of a body.
type orgLimit struct{ *limit.PerKey[tenancy.OrgID] }

func newOrgLimit(most int) orgLimit { return orgLimit{PerKey: limit.New[tenancy.OrgID](most)} }

// take waits for n slots for the request's organization. The caller must call release exactly once,
// when it no longer needs the slots. take returns RateLimited if the slots do not become free
// within placeTimeout.
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

// limitPersons returns a handler that limits how many of a person's requests run concurrently,
// across all organizations.
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

// limitRequests returns a handler that limits how many of an organization's requests run
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

// limitBodies is like limitRequests but limits the total size of an organization's request bodies.
// Its handler runs before the body is read. longest is the maximum size of one body, in bytes. A
// body of unknown length counts as longest bytes.
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

// bodySize returns the request's Content-Length, or longest if the length is unknown or greater.
func bodySize(c *fiber.Ctx, longest int64) int {
	size := c.Request().Header.ContentLength()
	if size < 0 || size > int(longest) {
		return int(longest)
	}
	return size
}

// limitAnswers is like limitRequests but for large responses. A request keeps its slot until its
// response has been written, because the response stays in memory until the client has read it.
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

// limitedBody is a response body that holds a slot. fasthttp closes it once it has been written, or
// once writing it has failed.
type limitedBody struct {
	io.Reader
	release func()
}

func (b limitedBody) Close() error {
	b.release()
	return nil
}
