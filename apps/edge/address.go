package edge

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/api/media"
	"crier/apps/edge/request"
	"crier/platform/fault"
	"crier/publishing"
	"crier/tenancy"
)

// addressKey is the key of the request's upload address among its values.
type addressKey struct{}

// findAddress finds the upload address in the path, and the principal of the API key or access
// token that requested it. It returns NotFound if there is no such address, and Gone if the address
// has expired. If the credential no longer works, it returns Unauthenticated or Forbidden.
func (s *Server) findAddress(c *fiber.Ctx) error {
	// Only guesses need a limit here, because uploads count toward the organization's limit.
	if err := s.gate.AdmitPage(c, ""); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), s.cfg.Timeout)
	defer cancel()
	a, err := s.deps.Media.Address(ctx, c.Params(media.TokenParam))
	if err != nil {
		return err
	}
	c.Locals(addressKey{}, a)
	if err := s.authenticateAsker(c); err != nil {
		return err
	}
	return c.Next()
}

// authenticateAsker authenticates the credential that requested the request's upload address.
func (s *Server) authenticateAsker(c *fiber.Ctx) error {
	a, ok := c.Locals(addressKey{}).(publishing.UploadAddress)
	if !ok {
		return fault.New(fault.Internal, "edge.authenticateAsker", "")
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), s.cfg.Timeout)
	defer cancel()
	authenticate := s.deps.Accounts.AuthenticateHash
	if a.Via == tenancy.ViaAgent {
		if s.deps.OAuth.Grants == nil {
			return fault.New(fault.Unauthenticated, "edge.authenticateAsker", "Invalid access token.")
		}
		authenticate = s.deps.OAuth.Grants.AuthenticateHash
	}
	p, err := authenticate(ctx, a.Credential)
	if fault.Is(err, fault.Unauthenticated) {
		err = fault.Wrap(fault.Unauthenticated, "edge.authenticateAsker",
			"The API key or access token that requested this upload address no longer works. "+
				"Request a new address with another one.", err)
	}
	if err != nil {
		return err
	}
	request.ActFor(c, p)
	return nil
}
