package mcp

import (
	"context"
	"strings"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/request"
	"crier/platform/fault"
	"crier/platform/paste"
	"crier/platform/secret"
	"crier/tenancy"
)

// tokenPrefix begins every access token.
const tokenPrefix = "cra_"

// scopes lists the scopes that a client needs for all tools.
const scopes = "mcp:read mcp:write"

// keyParam is the path parameter that contains an API key; see MCP_KEY_IN_PATH.
const keyParam = "apiKey"

// Authenticate finds the principal for the request's API key or access token; see sentCredential.
// It never reads the query. It returns Unauthenticated if there is no valid credential.
func (a *API) Authenticate(c *fiber.Ctx) error {
	if err := a.AuthenticateAgain(c); err != nil {
		return err
	}
	return c.Next()
}

// AuthenticateAgain is like Authenticate but does not run the next handler.
func (a *API) AuthenticateAgain(c *fiber.Ctx) error {
	const op = "mcp.authenticate"
	credential, ok := sentCredential(c)
	if !ok {
		return fault.New(fault.Unauthenticated, op,
			"Send an API key or an access token: Authorization: Bearer, followed by the key or token.")
	}
	found := a.deps.Keys
	if strings.HasPrefix(credential, tokenPrefix) {
		found = a.deps.Tokens
	}
	if found == nil || c.Params(keyParam) != "" && strings.HasPrefix(credential, tokenPrefix) {
		return fault.New(fault.Unauthenticated, op, "The access token is not valid.")
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), a.deps.LookupTime)
	defer cancel()
	p, err := found.Authenticate(ctx, credential)
	if err != nil {
		return err
	}
	request.ActFor(c, p)
	request.From(c.Context()).Credential = secret.HashToken(credential)
	return nil
}

// sentCredential returns the API key in the path or, if the path has none, the bearer token in the
// Authorization header. ok is false if the request has no credential or repeats the header.
func sentCredential(c *fiber.Ctx) (credential string, ok bool) {
	if key := c.Params(keyParam); key != "" {
		return paste.Word(key), true
	}
	lines := c.Request().Header.PeekAll(fiber.HeaderAuthorization)
	if len(lines) != 1 {
		return "", false
	}
	scheme, rest, found := strings.Cut(string(lines[0]), " ")
	credential = paste.Word(rest)
	return credential, found && strings.EqualFold(scheme, "Bearer") && credential != ""
}

// challenge returns the WWW-Authenticate header for a 401 response. The header leads the client to
// the authorization server.
func (a *API) challenge(c *fiber.Ctx) string {
	out := `Bearer resource_metadata="` + a.deps.BaseURL + `/.well-known/oauth-protected-resource/mcp", scope="` + scopes + `"`
	if c.Get(fiber.HeaderAuthorization) != "" || c.Params(keyParam) != "" {
		out += `, error="invalid_token"`
	}
	return out
}

// mayWrite reports whether the principal's credential allows changes.
func mayWrite(p tenancy.Principal) bool { return p.Via != tenancy.ViaAgent || p.Agent.Write }

// asksToWrite reports whether the client must ask the person for permission to write. It returns
// false if the person has already declined.
func asksToWrite(p tenancy.Principal) bool { return !mayWrite(p) && !p.Agent.WriteDeclined }
