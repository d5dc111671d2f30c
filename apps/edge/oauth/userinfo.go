package oauth

import (
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/oidc"
	"crier/platform/fault"
)

// UserInfoResponse describes the person behind an access token.
type UserInfoResponse struct {
	Subject       string `json:"sub" doc:"Id of the person."`
	Email         string `json:"email"`
	EmailVerified bool   `json:"email_verified"`
	Name          string `json:"name,omitempty"`
	Organization  string `json:"org_id" doc:"Id of the organization that the token is for."`
}

// UserInfo returns the endpoint that describes the person behind an access token.
func (a *clients) UserInfo() route.Endpoint {
	d := route.Described(route.Describe("OAuth server", "Describe the person behind an access token"),
		"401 means that the token is missing, unknown, expired or revoked. 403 means that the person or the "+
			"organization has lost access.")
	d.Parameters = []*huma.Param{{
		Name: "Authorization", In: "header", Required: true, Schema: &huma.Schema{Type: huma.TypeString},
		Description: "Bearer, followed by an access token.",
	}}
	return route.Raw(d, a.userInfo,
		route.Answer[UserInfoResponse](http.StatusOK, "The person."), failures(401, 403, 429))
}

func (a *clients) userInfo(c *fiber.Ctx) error {
	scheme, token, _ := strings.Cut(c.Get(fiber.HeaderAuthorization), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || !strings.HasPrefix(token, oidc.AccessPrefix) {
		return a.refuseToken(c, http.StatusUnauthorized, oidc.InvalidToken,
			"Send an access token: Authorization: Bearer cra_…")
	}
	if err := available("oauth.userInfo", a.deps.Grants); err != nil {
		return err
	}
	who, err := a.deps.Grants.UserInfo(contextOf(c), token)
	switch {
	case fault.Is(err, fault.Unauthenticated):
		request.From(c.Context()).Err = err
		return a.refuseToken(c, http.StatusUnauthorized, oidc.InvalidToken, "The token is unknown, expired or revoked.")
	case fault.Is(err, fault.Forbidden):
		request.From(c.Context()).Err = err
		return a.refuseToken(c, http.StatusForbidden, "insufficient_scope", "The person or the organization has lost access.")
	case err != nil:
		return sendFailure(c, err)
	}
	noStore(c)
	return c.JSON(UserInfoResponse{
		Subject: who.Person.String(), Email: who.Email, EmailVerified: who.Verified, Name: who.Name,
		Organization: who.Org.String(),
	})
}

// refuseToken responds to a request whose access token is not accepted (RFC 6750, section 3).
func (a *clients) refuseToken(c *fiber.Ctx, status int, code oidc.Code, message string) error {
	noStore(c)
	c.Set(fiber.HeaderWWWAuthenticate, `Bearer resource_metadata="`+a.deps.BaseURL+
		`/.well-known/oauth-protected-resource/mcp", error="`+string(code)+`"`)
	return c.Status(status).JSON(Failure{Error: string(code), Description: message})
}
