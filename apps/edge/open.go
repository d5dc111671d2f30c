package edge

import (
	"context"
	"time"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/request"
	"crier/platform/fault"
	"crier/platform/limit"
)

// The longest bodies that are read without a credential, in bytes.
const (
	loginBody    = 4 << 10   // an e-mail address and a password, each character escaped
	registerBody = 8 << 10   // these and two names of 128 characters; a code of an identity provider
	connectBody  = 150 << 10 // a code of 100,000 characters and a state of 1,000
)

// The bytes of such bodies that this process reads at the same time. Log-ins have their own share, so that they still
// work when the others are full. One site has an eighth of a share. Further bodies wait for placeTimeout.
const (
	loginBodies    = 16 << 20
	registerBodies = 16 << 20
	connectBodies  = 48 << 20
	siteShare      = 8
)

// openBodies returns the handlers that read the body, of at most longest bytes, of a request without a credential. All
// such bodies together have at most all bytes. A request that does not get its share within placeTimeout is
// Unavailable, others keep it until they are answered.
func (s *Server) openBodies(all int, longest int64) []fiber.Handler {
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
	return []fiber.Handler{places, s.readBody(longest, maxBodyValues), s.deadline(s.cfg.Timeout)}
}

func tooManyBodies(err error) error {
	return &fault.Error{
		Kind: fault.Unavailable, Op: "edge.openBodies", RetryAfter: time.Second, Err: err,
		Message: "Too many such requests are in progress; try again in a second.",
	}
}
