package edge

import (
	"context"
	"time"

	"github.com/gofiber/fiber/v2"

	"crier/platform/fault"
	"crier/platform/limit"
)

// The longest bodies that are read without a credential, in bytes.
const (
	loginBody   = 4 << 10   // an e-mail address and a password, each character escaped
	connectBody = 150 << 10 // a code of 100,000 characters and a state of 1,000
)

// The bytes of such bodies in this process at once. Log-ins have a part of their own, so that nobody who fills the other
// keeps people from logging in. One site has an eighth of a part. What is one more waits for atOncePatience.
const (
	loginBodies   = 16 << 20
	connectBodies = 48 << 20
	siteShare     = 8
)

// openBodies reads the body of a request without a credential, of at most longest bytes, when it has its place among the
// bodies of all such requests. It has the place until it is answered.
func (s *Server) openBodies(all int, longest int64) []fiber.Handler {
	longest = min(longest, s.cfg.BodyLimit)
	whole, sites := limit.New[struct{}](all), limit.New[string](all/siteShare)
	places := func(c *fiber.Ctx) error {
		size := bodySize(c, longest)
		ctx, cancel := context.WithTimeout(c.UserContext(), atOncePatience)
		defer cancel()
		leaveSite, err := sites.Take(ctx, s.clientSite(c), size)
		if err != nil {
			return crowded(err)
		}
		defer leaveSite()
		leave, err := whole.Take(ctx, struct{}{}, size)
		if err != nil {
			return crowded(err)
		}
		defer leave()
		return c.Next()
	}
	return []fiber.Handler{places, s.body(longest, ordinaryValues), s.deadline(s.cfg.Timeout)}
}

func crowded(err error) error {
	return &fault.Error{
		Kind: fault.Unavailable, Op: "edge.openBodies", RetryAfter: time.Second, Err: err,
		Message: "Too many such requests are in progress; try again in a second.",
	}
}
