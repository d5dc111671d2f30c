package oauth

import (
	"net/http"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/route"
	"crier/oidc"
)

// metadataAge is the Cache-Control header for metadata.
const metadataAge = "public, max-age=3600"

// ServerMetadata describes the authorization server (RFC 8414). It lists only supported features.
type ServerMetadata struct {
	Issuer               string   `json:"issuer"`
	Authorization        string   `json:"authorization_endpoint"`
	Token                string   `json:"token_endpoint"`
	Registration         string   `json:"registration_endpoint"`
	Introspection        string   `json:"introspection_endpoint"`
	Revocation           string   `json:"revocation_endpoint"`
	UserInfo             string   `json:"userinfo_endpoint"`
	Scopes               []string `json:"scopes_supported"`
	ResponseTypes        []string `json:"response_types_supported"`
	ResponseModes        []string `json:"response_modes_supported"`
	GrantTypes           []string `json:"grant_types_supported"`
	TokenMethods         []string `json:"token_endpoint_auth_methods_supported"`
	RevocationMethods    []string `json:"revocation_endpoint_auth_methods_supported"`
	IntrospectionMethods []string `json:"introspection_endpoint_auth_methods_supported"`
	ChallengeMethods     []string `json:"code_challenge_methods_supported"`
	IssuerInResponse     bool     `json:"authorization_response_iss_parameter_supported"`
	ClientMetadata       bool     `json:"client_id_metadata_document_supported"`
	RequestParameter     bool     `json:"request_parameter_supported"`
	RequestURIParameter  bool     `json:"request_uri_parameter_supported"`
	ServiceDocumentation string   `json:"service_documentation"`
	ProtectedResources   []string `json:"protected_resources"`
	UILocales            []string `json:"ui_locales_supported"`
}

// ResourceMetadata describes the MCP endpoint (RFC 9728).
type ResourceMetadata struct {
	Resource      string   `json:"resource"`
	Name          string   `json:"resource_name"`
	Servers       []string `json:"authorization_servers"`
	Scopes        []string `json:"scopes_supported"`
	Methods       []string `json:"bearer_methods_supported"`
	Documentation string   `json:"resource_documentation"`
}

// ServerMetadata returns the endpoint for the authorization server's metadata.
func (a *clients) ServerMetadata() route.Endpoint {
	methods := []string{string(oidc.AuthNone), string(oidc.AuthBasic), string(oidc.AuthPost)}
	at := func(path string) string { return a.deps.BaseURL + path }
	m := ServerMetadata{
		Issuer: a.deps.BaseURL, Authorization: at(authorizePath), Token: at("/oauth/token"),
		Registration: at("/oauth/register"), Introspection: at("/oauth/introspect"), Revocation: at("/oauth/revoke"),
		UserInfo: at("/oauth/userinfo"), Scopes: oidc.AllScopes().Names(), ResponseTypes: oidc.ResponseTypes(),
		ResponseModes: []string{"query"}, GrantTypes: oidc.GrantTypes(),
		TokenMethods: methods, RevocationMethods: methods, IntrospectionMethods: methods[1:],
		ChallengeMethods: []string{"S256"}, IssuerInResponse: true, ClientMetadata: true,
		ServiceDocumentation: at("/docs"), ProtectedResources: []string{a.audienceURL()}, UILocales: []string{"en"},
	}
	return route.Raw(route.Describe("OAuth server", "Get the metadata of the authorization server"),
		sendMetadata(m), route.Answer[ServerMetadata](http.StatusOK, "The metadata, as RFC 8414 defines it."))
}

// ResourceMetadata returns the endpoint for the MCP endpoint's metadata.
func (a *clients) ResourceMetadata() route.Endpoint {
	m := ResourceMetadata{
		Resource: a.audienceURL(), Name: "Crier", Servers: []string{a.deps.BaseURL}, Scopes: oidc.AllScopes().Names(),
		Methods: []string{"header"}, Documentation: a.deps.BaseURL + "/docs",
	}
	return route.Raw(route.Describe("OAuth server", "Get the metadata of the MCP endpoint"),
		sendMetadata(m), route.Answer[ResourceMetadata](http.StatusOK, "The metadata, as RFC 9728 defines it."))
}

// sendMetadata returns a handler that responds with m as JSON. Pages on any site can read the
// response.
func sendMetadata(m any) fiber.Handler {
	return func(c *fiber.Ctx) error {
		c.Set(fiber.HeaderAccessControlAllowOrigin, "*")
		c.Set(fiber.HeaderCacheControl, metadataAge)
		return c.JSON(m)
	}
}

// openPaths lists the endpoints that pages from any origin may call.
var openPaths = []string{
	"/oauth/token", "/oauth/register", "/oauth/introspect", "/oauth/revoke", "/oauth/userinfo", "/device/code",
	"/device/token",
}

// IsOpen reports whether pages from any origin may call the endpoint at a path.
func IsOpen(path string) bool {
	return slices.Contains(openPaths, path) || strings.HasPrefix(path, "/.well-known/oauth-")
}
