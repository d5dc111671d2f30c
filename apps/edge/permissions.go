package edge

import (
	"slices"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/request"
	"crier/platform/fault"
	"crier/tenancy"
)

// permission names who may use the routes of a credential, of those who have the credential.
type permission struct {
	// audience names them in the OpenAPI document. It is empty if every request with the credential may use the routes.
	audience string
	// needs are the conditions on the principal, in the order in which they are checked.
	needs []condition
}

// permissions is the permission table, which every route consults. The handlers of routes check no role themselves;
// what depends on more than the role, such as the rank of another member, is decided by the use cases. A route whose
// credential is not in the table answers 500.
var permissions = map[Credential]permission{
	none:     {},
	signIn:   {},
	visitor:  {},
	operator: {},
	apiKey:   {},
	person:   {},
	member:   {needs: []condition{hasAccess}},
	joined:   {needs: []condition{hasJoined}},
	admin:    {needs: []condition{hasAccess, manages}, audience: "Only for administrators of the organization."},
	owner:    {needs: []condition{hasAccess, owns}, audience: "Only for the owner of the organization."},
	instance: {needs: []condition{administersInstance}, audience: "Only for administrators of the instance."},
}

// permit returns a handler that refuses principals who may not use the route.
func permit(r Route) fiber.Handler {
	permitted := permission{needs: needsOf(r)}
	return func(c *fiber.Ctx) error {
		if err := permitted.check(request.Principal(c.Context())); err != nil {
			return err
		}
		return c.Next()
	}
}

// needsOf returns the conditions of a route.
func needsOf(r Route) []condition {
	needs := slices.Clone(permissions[r.Credential].needs)
	if r.Personal {
		needs = append(needs, actsForItself)
	}
	return needs
}

// check returns the error of the first condition that the principal does not meet.
func (a permission) check(p tenancy.Principal) error {
	for _, met := range a.needs {
		if err := met(p); err != nil {
			return err
		}
	}
	return nil
}

// condition returns nil if the principal meets it, or Forbidden.
type condition func(tenancy.Principal) error

// hasAccess is met if the person may use the organization of the request at present.
func hasAccess(p tenancy.Principal) error {
	switch p.Access {
	case tenancy.AccessFull:
		if p.Org.IsZero() { // nobody was authenticated
			return notPermitted("")
		}
		return nil
	case tenancy.AccessNone:
		return notPermitted("You are a member of no organization.")
	case tenancy.AccessSuspended:
		return notPermitted("The operator of this service has suspended the organization.")
	case tenancy.AccessEnroll:
		refusal := notPermitted("The organization requires a second factor: enable one first.")
		refusal.Remedy = fault.RemedyEnroll
		return refusal
	}
	return notPermitted("")
}

// hasJoined is met if hasAccess is, or would be with a second factor.
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

// administersInstance is met by a session of an administrator of the instance, also while acting as another person:
// that is how the administrator ends it.
func administersInstance(p tenancy.Principal) error {
	if !p.Instance && p.Behind.IsZero() {
		return notPermitted("Only administrators of the instance may do this.")
	}
	return nil
}

// actsForItself is met if no administrator of the instance acts as the person.
func actsForItself(p tenancy.Principal) error {
	if !p.Behind.IsZero() {
		return notPermitted("Only the person may do this: stop acting as somebody else first.")
	}
	return nil
}

func notPermitted(message string) *fault.Error {
	return fault.New(fault.Forbidden, "edge.permit", message)
}
