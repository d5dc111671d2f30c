package edge

import (
	"slices"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/request"
	"crier/platform/fault"
	"crier/tenancy"
)

// permit returns a handler that rejects principals that may not use the route.
func permit(r Route) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if err := r.permits(request.Principal(c.Context())); err != nil {
			return err
		}
		return c.Next()
	}
}

// permits returns nil if the principal meets all conditions. Otherwise, it returns the error from
// the first condition that is not met.
func (r Route) permits(p tenancy.Principal) error {
	if r.Credential == apiKey && p.Via == tenancy.ViaAgent {
		return r.permitsAgent(p)
	}
	needs := slices.Clone(credentials[r.Credential].needs)
	if r.Personal {
		needs = append(needs, actsForItself)
	}
	for _, met := range needs {
		if err := met(p); err != nil {
			return err
		}
	}
	return nil
}

// permitsAgent returns nil if an agent's access token may be used for a route that also accepts API
// keys. The agent's person needs the role that the same endpoint requires in a session. Unless the
// route only reads, the token also needs the scope mcp:write.
func (r Route) permitsAgent(p tenancy.Principal) error {
	if r.KeyOnly {
		return notPermitted("An app's access token may not do this. Use an API key or the dashboard.")
	}
	for _, met := range credentials[r.twin].needs {
		if err := met(p); err != nil {
			return err
		}
	}
	if r.Changing() {
		return writes(p)
	}
	return nil
}

// writes is met unless the principal is an agent that may only read.
func writes(p tenancy.Principal) error {
	if p.Via == tenancy.ViaAgent && !p.Agent.Write {
		refusal := notPermitted("The access token lacks the scope mcp:write, so it can only read.")
		refusal.Remedy = fault.RemedyScope
		return refusal
	}
	return nil
}

// condition returns nil if the principal meets it, and Forbidden otherwise.
type condition func(tenancy.Principal) error

// hasAccess is met if the person may currently use the request's organization.
func hasAccess(p tenancy.Principal) error {
	switch p.Access {
	case tenancy.AccessFull:
		if p.Org.IsZero() { // nobody was authenticated
			return notPermitted("")
		}
		return nil
	case tenancy.AccessNone:
		return notPermitted("You are not a member of any organization.")
	case tenancy.AccessSuspended:
		return notPermitted("The operator of this service has suspended the organization.")
	case tenancy.AccessEnroll:
		refusal := notPermitted("The organization requires a second factor: enable one first.")
		refusal.Remedy = fault.RemedyEnroll
		return refusal
	}
	return notPermitted("")
}

// hasJoined is met if hasAccess is met, or would be met if the person had a second factor.
func hasJoined(p tenancy.Principal) error {
	if p.Access == tenancy.AccessEnroll && !p.Org.IsZero() {
		return nil
	}
	return hasAccess(p)
}

func manages(p tenancy.Principal) error {
	if !p.Role.Manages() {
		return notPermitted("Only administrators of the organization may do this.")
	}
	return nil
}

func owns(p tenancy.Principal) error {
	if p.Role != tenancy.RoleSuperAdmin {
		return notPermitted("Only the owner of the organization may do this.")
	}
	return nil
}

// administersInstance is met by an instance administrator's session. It is met even during
// impersonation, because the administrator must be able to stop impersonating.
func administersInstance(p tenancy.Principal) error {
	if !p.Instance && p.Impersonator.IsZero() {
		return notPermitted("Only instance administrators may do this.")
	}
	return nil
}

// actsForItself is met unless an instance administrator is impersonating the person.
func actsForItself(p tenancy.Principal) error {
	if !p.Impersonator.IsZero() {
		return notPermitted("Only the person themselves can do this. Stop impersonating first.")
	}
	return nil
}

func notPermitted(message string) *fault.Error {
	return fault.New(fault.Forbidden, "edge.permit", message)
}
