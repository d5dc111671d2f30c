package oauth

import (
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/oidc"
)

// McpRegisterDto is the body of POST /oauth/register (RFC 7591). Other members are ignored.
type McpRegisterDto struct {
	RedirectURIs    []string `json:"redirect_uris" doc:"1 to 10 URIs: https, http on loopback, or an app's own scheme."`
	Name            string   `json:"client_name,omitempty"`
	URI             string   `json:"client_uri,omitempty"`
	LogoURI         string   `json:"logo_uri,omitempty"`
	Auth            string   `json:"token_endpoint_auth_method,omitempty" enum:"none,client_secret_basic,client_secret_post"`
	GrantTypes      []string `json:"grant_types,omitempty"`
	ResponseTypes   []string `json:"response_types,omitempty"`
	Scope           string   `json:"scope,omitempty"`
	ApplicationType string   `json:"application_type,omitempty"`
}

// RegisteredClient is the response to a registration.
type RegisteredClient struct {
	ClientID        string   `json:"client_id"`
	Secret          string   `json:"client_secret,omitempty" doc:"Returned only in this response; absent for public clients."`
	SecretExpiresAt *int64   `json:"client_secret_expires_at,omitempty" doc:"Always 0: the secret does not expire."`
	IssuedAt        int64    `json:"client_id_issued_at" doc:"Unix time."`
	Name            string   `json:"client_name,omitempty"`
	URI             string   `json:"client_uri,omitempty"`
	RedirectURIs    []string `json:"redirect_uris"`
	Auth            string   `json:"token_endpoint_auth_method"`
	GrantTypes      []string `json:"grant_types"`
	ResponseTypes   []string `json:"response_types"`
	Scope           string   `json:"scope"`
}

// Register returns the endpoint at which clients register themselves.
func (a *clients) Register() route.Endpoint {
	d := route.Described(route.Describe("OAuth server", "Register a client"),
		"Errors follow RFC 7591. Registering the same metadata again returns the same public client. Clients "+
			"that nobody approves within 30 days are deleted.")
	return route.Raw(d, a.register, route.RequestBody[McpRegisterDto](),
		route.Answer[RegisteredClient](http.StatusCreated, "The client."), failures(400, 413, 429))
}

func (a *clients) register(c *fiber.Ctx) error {
	if err := available("oauth.register", a.deps.Clients); err != nil {
		return err
	}
	var in McpRegisterDto
	if err := json.Unmarshal(request.From(c.Context()).Body.Loaded(), &in); err != nil {
		return oidc.Fail(oidc.InvalidClientMetadata, "The body is not a JSON object with RFC 7591 metadata.")
	}
	made, err := a.deps.Clients.Register(contextOf(c), oidc.Metadata{
		Name: in.Name, URI: in.URI, LogoURI: in.LogoURI, RedirectURIs: in.RedirectURIs, Auth: in.Auth,
		GrantTypes: in.GrantTypes, ResponseTypes: in.ResponseTypes, Scope: in.Scope,
		ApplicationType: in.ApplicationType,
	}, request.From(c.Context()).From)
	if err != nil {
		return err
	}
	noStore(c)
	return c.Status(http.StatusCreated).JSON(newRegisteredClient(made))
}

func newRegisteredClient(made oidc.Registration) RegisteredClient {
	scopes := made.Scopes
	if len(scopes) == 0 {
		scopes = oidc.AllScopes()
	}
	out := RegisteredClient{
		ClientID: made.ClientID, Secret: made.Secret, IssuedAt: made.IssuedAt.Unix(), Name: made.Name, URI: made.URI,
		RedirectURIs: made.RedirectURIs, Auth: string(made.Auth), Scope: scopes.String(),
		GrantTypes: oidc.GrantTypes(), ResponseTypes: oidc.ResponseTypes(),
	}
	if made.Secret != "" {
		out.SecretExpiresAt = new(int64)
	}
	return out
}

// failures describes error responses in the format of RFC 6749.
func failures(statuses ...int) route.Detail {
	return func(schemas huma.Registry, op *huma.Operation) {
		for _, status := range append(statuses, http.StatusInternalServerError) {
			route.Answer[Failure](status, http.StatusText(status))(schemas, op)
		}
	}
}
