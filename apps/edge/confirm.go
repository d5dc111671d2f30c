package edge

import (
	"time"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/request"
)

// confirmAfter is how long a credential counts as valid while the body of its request arrives. Who is removed or signed
// out must not act by a request whose headers were sent before.
const confirmAfter = 500 * time.Millisecond

// startConfirm stores how the handler of a request confirms later that the request is still permitted. It runs before
// the credential is looked up, so that what the look-up reads is no older than the time stored here.
func (s *Server) startConfirm(r Route) fiber.Handler {
	again := s.credentialCheck(r.Credential)
	permitted := permission{needs: needsOf(r)}
	return func(c *fiber.Ctx) error {
		info, before := request.From(c.Context()), s.deps.Clock.Now()
		info.Confirm = func() error {
			if age := s.deps.Clock.Now().Sub(before); again == nil || age >= 0 && age < confirmAfter {
				return nil
			}
			if err := again(c); err != nil {
				return err
			}
			return permitted.check(info.Principal)
		}
		return c.Next()
	}
}

// confirm refuses a request whose credential was looked up more than confirmAfter ago and that is no longer permitted.
func confirm(c *fiber.Ctx) error {
	if err := request.From(c.Context()).Confirm(); err != nil {
		return err
	}
	return c.Next()
}

// credentialCheck returns a function that authenticates a request a second time, without counting it; nil for a
// credential that is not looked up.
func (s *Server) credentialCheck(credential Credential) func(*fiber.Ctx) error {
	switch credential {
	case apiKey:
		return s.authenticateKey
	case none, signIn, operator:
		return nil
	default:
		return s.session.Confirm
	}
}
