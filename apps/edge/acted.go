package edge

import (
	"net/http"
	"net/url"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/request"
)

// recordActed returns the handlers that record in the organization's audit log what an instance
// administrator does while impersonating a member. They record every request to a route that
// changes something, even if the use case adds an audit entry too. The request is recorded before
// it is carried out, and rejected if it cannot be recorded.
func (s *Server) recordActed(r Route) []fiber.Handler {
	if r.State != Built || !r.Changing() {
		return nil
	}
	return []fiber.Handler{func(c *fiber.Ctx) error {
		p := request.Principal(c.Context())
		if p.Impersonator.IsZero() {
			return c.Next()
		}
		path := url.URL{Path: c.Path()} // escaped, because ids in the path come from the client
		err := s.deps.Accounts.RecordActed(c.UserContext(), p, c.Method()+" "+r.Operation+" "+path.EscapedPath())
		if err != nil {
			return err
		}
		return c.Next()
	}}
}

// Changing reports whether requests to the route may change something.
func (r Route) Changing() bool {
	return r.changing || r.Method != http.MethodGet && r.Method != http.MethodHead
}
