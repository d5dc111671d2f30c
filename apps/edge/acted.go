package edge

import (
	"net/http"
	"net/url"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/request"
)

// recordActed returns handlers that record what an instance administrator does while impersonating
// a member. Before each request to a route that can change something, they add an entry to the
// organization's audit log. If the entry cannot be added, they reject the request. The use case may
// add an entry of its own.
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

// Changing reports whether a request to the route can change anything.
func (r Route) Changing() bool {
	return r.changing || r.Method != http.MethodGet && r.Method != http.MethodHead
}
