package request

import (
	"github.com/gofiber/fiber/v2"

	"crier/platform/pg"
	"crier/tenancy"
)

// ActFor sets the request's principal. If an agent's grant is limited to some channels, later steps
// of the request can use only these channels and their data.
func ActFor(c *fiber.Ctx, p tenancy.Principal) {
	info := From(c.Context())
	p.From = info.From
	info.Principal = p
	if limits := p.Agent.Limits; limits != nil {
		c.SetUserContext(pg.Narrow(c.UserContext(), pg.Narrowing{Channels: limits.Channels, Customers: limits.Customers}))
	}
}
