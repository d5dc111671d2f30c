package edge

import (
	"context"
	"mime"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/request"
	"crier/platform/fault"
	"crier/platform/limit"
)

// These constants are the maximum sizes, in bytes, of bodies that are read without a credential.
const (
	loginBody    = 4 << 10   // an email address and a password, with each character escaped
	registerBody = 8 << 10   // the same and two names of 128 characters, or a provider's code
	connectBody  = 150 << 10 // a code of 100,000 characters and a state of 1,000
	pageBody     = 32 << 10  // a note of 2,000 characters and a name of 128, at four escaped bytes each
	consentBody  = 64 << 10  // 1,000 ids of channels and an authorization request
	clientBody   = 16 << 10  // a client's metadata with 10 redirect URIs, or a code and its verifier
)

// These constants limit the total size, in bytes, of the bodies that this process reads
// concurrently. Each kind of body has its own limit, so that logins still work when the other
// limits have been reached. One site can use at most an eighth of a limit. Further bodies wait for
// up to placeTimeout.
const (
	loginBodies    = 16 << 20
	registerBodies = 16 << 20
	connectBodies  = 48 << 20
	pageBodies     = 16 << 20
	consentBodies  = 16 << 20
	clientBodies   = 16 << 20
	siteShare      = 8
)

// openBodies returns the handlers that read the body of a request without a credential. read
// returns the handler that reads the body itself. One body may have at most longest bytes, and all
// bodies that are read concurrently may total at most all bytes. A body counts until the request's
// handler returns. A request that has to wait longer than placeTimeout fails with Unavailable.
func (s *Server) openBodies(all int, longest int64, read func(longest int64) fiber.Handler) []fiber.Handler {
	longest = min(longest, s.cfg.BodyLimit)
	whole, sites := limit.New[struct{}](all), limit.New[string](all/siteShare)
	places := func(c *fiber.Ctx) error {
		size := bodySize(c, longest)
		ctx, cancel := context.WithTimeout(c.UserContext(), placeTimeout)
		defer cancel()
		releaseSite, err := sites.Take(ctx, request.From(c.Context()).From.Site, size)
		if err != nil {
			return tooManyBodies(err)
		}
		defer releaseSite()
		release, err := whole.Take(ctx, struct{}{}, size)
		if err != nil {
			return tooManyBodies(err)
		}
		defer release()
		return c.Next()
	}
	return []fiber.Handler{places, read(longest), deadline(s.cfg.Timeout)}
}

func readJSON(longest int64) fiber.Handler { return readBody(longest, maxBodyValues) }

// readForm returns a handler that reads a page's form.
func readForm(longest int64) fiber.Handler {
	return func(c *fiber.Ctx) error {
		kind, _, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType))
		if err != nil || kind != fiber.MIMEApplicationForm {
			return fault.Wrap(fault.Invalid, "edge.readForm", "The body must be the submitted form of the page.", err)
		}
		if encoding := c.Get(fiber.HeaderContentEncoding); encoding != "" && !strings.EqualFold(encoding, "identity") {
			return fiber.ErrUnsupportedMediaType
		}
		if _, err := request.From(c.Context()).Body.Load(c.Context(), longest); err != nil {
			return err
		}
		return c.Next()
	}
}

// readEither returns a handler that reads JSON or a form. A request without a body needs no type.
func readEither(longest int64) fiber.Handler {
	asForm, asJSON := readForm(longest), readJSON(longest)
	return func(c *fiber.Ctx) error {
		kind, _, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType))
		if err == nil && kind == fiber.MIMEApplicationForm {
			return asForm(c)
		}
		return asJSON(c)
	}
}

func tooManyBodies(err error) error {
	return &fault.Error{
		Kind: fault.Unavailable, Op: "edge.openBodies", RetryAfter: time.Second, Err: err,
		Message: "Too many requests of this kind are in progress. Try again in a second.",
	}
}
