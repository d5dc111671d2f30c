package edge

import (
	"time"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/request"
)

// confirmAfter is how long a credential stays trusted while the request's body arrives. After that,
// the credential is checked again. Otherwise, a person who has been removed or signed out could
// still act through a request whose headers were sent earlier.
const confirmAfter = 500 * time.Millisecond

// startConfirm sets Info.Confirm, which handlers call later to confirm that the request is still
// permitted. It records the time before the credential is looked up, so that Confirm never
// underestimates the age of the lookup.
func (s *Server) startConfirm(r Route) fiber.Handler {
	again := credentials[r.Credential].again(s)
	return func(c *fiber.Ctx) error {
		info, before := request.From(c.Context()), s.deps.Clock.Now()
		info.Confirm = func() error {
			if age := s.deps.Clock.Now().Sub(before); again == nil || age >= 0 && age < confirmAfter {
				return nil
			}
			if err := again(c); err != nil {
				return err
			}
			return r.permits(info.Principal)
		}
		return c.Next()
	}
}

// confirm rejects a request if its credential was looked up at least confirmAfter ago and no longer
// permits the request.
func confirm(c *fiber.Ctx) error {
	if err := request.From(c.Context()).Confirm(); err != nil {
		return err
	}
	return c.Next()
}
