package oauth

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/oidc"
)

// McpTokenDto is the body of POST /oauth/token, as JSON or as a form.
type McpTokenDto struct {
	GrantType    string `json:"grant_type" enum:"authorization_code,refresh_token"`
	Code         string `json:"code,omitempty"`
	RedirectURI  string `json:"redirect_uri,omitempty" doc:"Required if it was sent with the authorization request."`
	CodeVerifier string `json:"code_verifier,omitempty"`
	RefreshToken string `json:"refresh_token,omitempty"`
	Scope        string `json:"scope,omitempty"`
	Resource     string `json:"resource,omitempty"`
	ClientID     string `json:"client_id,omitempty" doc:"Absent with HTTP Basic authentication."`
	ClientSecret string `json:"client_secret,omitempty"`
}

// TokenResponse is the response to POST /oauth/token.
type TokenResponse struct {
	AccessToken  string  `json:"access_token"`
	TokenType    string  `json:"token_type"`
	ExpiresIn    int     `json:"expires_in,omitempty" doc:"Seconds until the access token expires."`
	RefreshToken string  `json:"refresh_token,omitempty" doc:"Replaces the refresh token in the request."`
	Scope        string  `json:"scope"`
	Organization string  `json:"id,omitempty" doc:"Id of the organization."`
	Customer     *string `json:"cus,omitempty" nullable:"true"`
}

// McpIntrospectDto is the body of POST /oauth/introspect, as JSON or as a form.
type McpIntrospectDto struct {
	Token string `json:"token"`
	Hint  string `json:"token_type_hint,omitempty"`
}

// Introspection is the response to POST /oauth/introspect (RFC 7662). Only active is always
// present.
type Introspection struct {
	Active       bool   `json:"active"`
	Scope        string `json:"scope,omitempty"`
	ClientID     string `json:"client_id,omitempty"`
	TokenType    string `json:"token_type,omitempty"`
	Subject      string `json:"sub,omitempty"`
	Organization string `json:"org_id,omitempty"`
	Expires      int64  `json:"exp,omitempty"`
	Issued       int64  `json:"iat,omitempty"`
	Audience     any    `json:"aud,omitempty"`
	Issuer       string `json:"iss,omitempty"`
}

// McpRevokeDto is the body of POST /oauth/revoke, as JSON or as a form.
type McpRevokeDto struct {
	Token        string `json:"token"`
	Hint         string `json:"token_type_hint,omitempty"`
	ClientID     string `json:"client_id,omitempty"`
	ClientSecret string `json:"client_secret,omitempty"`
}

// Token returns the endpoint from which clients get tokens.
func (a *clients) Token() route.Endpoint {
	d := route.Described(route.Describe("OAuth server", "Get tokens for a code or a refresh token"),
		"Clients authenticate with HTTP Basic, with client_secret in the body or, if they are public, with client_id "+
			"alone. An unknown client or a wrong secret returns 401 invalid_client. A public client that gets this "+
			"error should register again.")
	return route.Raw(d, a.serveTokens, route.RequestBody[McpTokenDto](), alsoForm[McpTokenDto](),
		route.Answer[TokenResponse](http.StatusOK, "The tokens."), failures(400, 401, 413, 429))
}

// Introspect returns the endpoint that describes a token to the client that owns it.
func (a *clients) Introspect() route.Endpoint {
	d := route.Describe("OAuth server", "Describe a token")
	d.Parameters = []*huma.Param{{
		Name: "Authorization", In: "header", Required: true, Schema: &huma.Schema{Type: huma.TypeString},
		Description: "HTTP Basic with the id and the secret of a client.",
	}}
	return route.Raw(d, a.serveTokens, route.RequestBody[McpIntrospectDto](), alsoForm[McpIntrospectDto](),
		route.Answer[Introspection](http.StatusOK, "The token. active is false if it is unknown, expired or revoked."),
		failures(400, 401, 413, 429))
}

// Revoke returns the endpoint that revokes a client's token.
func (a *clients) Revoke() route.Endpoint {
	return route.Raw(route.Describe("OAuth server", "Revoke a token"), a.serveTokens,
		route.RequestBody[McpRevokeDto](), alsoForm[McpRevokeDto](),
		route.Content(http.StatusOK, "The token no longer works. Unknown tokens get this response too.", "", nil),
		failures(400, 401, 413, 429))
}

// alsoForm documents that the request body, whose schema is T, can also be a form.
func alsoForm[T any]() route.Detail {
	return func(_ huma.Registry, op *huma.Operation) {
		op.RequestBody.Content[fiber.MIMEApplicationForm] = op.RequestBody.Content[fiber.MIMEApplicationJSON]
	}
}

// serveTokens passes a request to the token server as a form.
func (a *clients) serveTokens(c *fiber.Ctx) error {
	if err := available("oauth.serveTokens", a.deps.Tokens); err != nil {
		return err
	}
	if err := a.deps.Gate.AdmitClient(contextOf(c), a.deps.Gate.Buckets.Token); err != nil {
		return err
	}
	form, err := clientForm(c)
	if err != nil {
		return err
	}
	body := []byte(form.Encode())
	req, err := http.NewRequestWithContext(contextOf(c), c.Method(), a.deps.BaseURL+c.Path(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range c.Request().Header.All() {
		req.Header.Add(string(name), string(value))
	}
	for _, name := range []string{fiber.HeaderTransferEncoding, fiber.HeaderContentLength, fiber.HeaderHost} {
		req.Header.Del(name)
	}
	req.Header.Set(fiber.HeaderContentType, fiber.MIMEApplicationForm)
	req.RemoteAddr, req.RequestURI = c.Context().RemoteAddr().String(), c.Path()
	w := &responseWriter{header: http.Header{}}
	a.deps.Tokens.ServeHTTP(w, req)
	w.send(c)
	return nil
}

// clientForm returns the body of a client's request, which is a form or a JSON object, as a form.
// It returns InvalidRequest if the body is malformed or repeats a parameter that must be unique.
func clientForm(c *fiber.Ctx) (url.Values, error) {
	data := request.From(c.Context()).Body.Loaded()
	kind, _, _ := mime.ParseMediaType(c.Get(fiber.HeaderContentType))
	if kind == fiber.MIMEApplicationJSON {
		return jsonForm(data)
	}
	form, err := url.ParseQuery(string(data))
	if err != nil {
		return nil, oidc.Fail(oidc.InvalidRequest, "The form is not valid.")
	}
	for name, values := range form {
		if len(values) > 1 && name != "resource" && name != "audience" {
			return nil, oidc.Fail(oidc.InvalidRequest, "A parameter was sent twice.")
		}
	}
	return form, nil
}

// jsonForm converts a JSON object to a form. Null members count as absent.
func jsonForm(data []byte) (url.Values, error) {
	var members map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&members); err != nil || d.More() {
		return nil, oidc.Fail(oidc.InvalidRequest, "The body is not a JSON object.")
	}
	form := url.Values{}
	for name, member := range members {
		list, ok := member.([]any)
		if !ok {
			list = []any{member}
		}
		for _, value := range list {
			text, present, ok := scalar(value)
			if !ok || name != "resource" && len(list) > 1 {
				return nil, oidc.Fail(oidc.InvalidRequest, "A member of the body is not a string.")
			}
			if present {
				form.Add(name, text)
			}
		}
	}
	return form, nil
}

// scalar returns a JSON value as text. present is false for null, and ok is false for an object or
// an array.
func scalar(value any) (text string, present, ok bool) {
	switch v := value.(type) {
	case nil:
		return "", false, true
	case string:
		return v, true, true
	case json.Number:
		return v.String(), true, true
	case bool:
		if v {
			return "true", true, true
		}
		return "false", true, true
	}
	return "", false, false
}

// responseWriter buffers the token server's response, which is short.
type responseWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *responseWriter) Header() http.Header { return w.header }

func (w *responseWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *responseWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// send copies the response to c, except for the CORS, Content-Length and Vary headers, which the
// edge sets itself.
func (w *responseWriter) send(c *fiber.Ctx) {
	w.WriteHeader(http.StatusOK)
	for name, values := range w.header {
		own := strings.HasPrefix(name, "Access-Control-") || name == fiber.HeaderContentLength || name == fiber.HeaderVary
		for i, value := range values {
			switch {
			case own:
			case i == 0:
				c.Set(name, value)
			default:
				c.Response().Header.Add(name, value)
			}
		}
	}
	noStore(c)
	c.Status(w.status).Response().SetBody(w.body.Bytes())
}
