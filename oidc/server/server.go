// Package server serves the endpoints of the OAuth server that clients call: the token endpoint,
// introspection and revocation. It runs the server of zitadel/oidc, without its sessions, signing
// keys and id tokens.
package server

import (
	"context"
	"net/http"

	zoidc "github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"crier/oidc"
	"crier/tenancy"
)

// The paths that the handler serves.
const (
	TokenPath      = "/oauth/token"
	IntrospectPath = "/oauth/introspect"
	RevokePath     = "/oauth/revoke"
)

// Clients authenticates clients.
type Clients interface {
	// Authenticate returns the client with an id and a secret, which is "" for a public client. It
	// returns an oidc.Error with InvalidClient if there is none or the secret is wrong.
	Authenticate(ctx context.Context, clientID, secret string) (oidc.Client, error)
}

// Grants issues, describes and revokes tokens. The methods that take a client assume that it has
// been authenticated.
type Grants interface {
	Exchange(ctx context.Context, c oidc.Client, r oidc.CodeRequest) (oidc.Tokens, error)
	Refresh(ctx context.Context, c oidc.Client, refresh string) (oidc.Tokens, error)
	RevokeToken(ctx context.Context, c oidc.Client, token string) error
	Introspect(ctx context.Context, c oidc.Client, token string) (oidc.Introspection, error)
	IntrospectFor(ctx context.Context, p tenancy.Principal, token string) (oidc.Introspection, error)
}

// Keys authenticates API keys.
type Keys interface {
	// Authenticate returns the principal of an API key, or Unauthenticated.
	Authenticate(ctx context.Context, authorization string) (tenancy.Principal, error)
}

// Deps are the dependencies of New. All are required.
type Deps struct {
	// BaseURL is the URL of the service, without a trailing slash. It is the issuer.
	BaseURL string
	Clients Clients
	Grants  Grants
	Keys    Keys
}

// New returns the handler for TokenPath, IntrospectPath and RevokePath. It answers in the form of
// RFC 6749, errors too. The caller sets CORS headers, limits requests, and gives each request a
// deadline.
func New(d Deps) http.Handler {
	endpoints := op.Endpoints{
		Token: op.NewEndpoint(TokenPath), Introspection: op.NewEndpoint(IntrospectPath),
		Revocation: op.NewEndpoint(RevokePath),
	}
	s := &server{deps: d}
	return &handler{server: s, next: op.RegisterServer(s, endpoints, op.WithServerCORSOptions(nil))}
}

// server implements op.Server.
type server struct {
	op.UnimplementedServer
	deps Deps
}

// VerifyClient implements op.Server.
func (s *server) VerifyClient(ctx context.Context, r *op.Request[op.ClientCredentials]) (op.Client, error) {
	c, err := s.authenticate(ctx, r.Data)
	if err != nil {
		return nil, asStatus(err)
	}
	return client{Client: c}, nil
}

func (s *server) authenticate(ctx context.Context, sent *op.ClientCredentials) (oidc.Client, error) {
	if sent.ClientAssertion != "" {
		return oidc.Client{}, oidc.Fail(oidc.InvalidClient, "Client assertions are not supported.")
	}
	return s.deps.Clients.Authenticate(ctx, sent.ClientID, sent.ClientSecret)
}

// tokenResponse is the answer of the token endpoint.
type tokenResponse struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int64  `json:"expires_in,omitempty"`
	RefreshToken string `json:"refresh_token,omitempty"`
	Scope        string `json:"scope"`
	// ID is the organization.
	ID string `json:"id"`
	// Cus is always null: organizations are no customers of a payment provider.
	Cus *string `json:"cus"`
}

func answer(t oidc.Tokens, err error) (*op.Response, error) {
	if err != nil {
		return nil, asStatus(err)
	}
	return op.NewResponse(tokenResponse{
		AccessToken: t.Access, TokenType: "bearer", ExpiresIn: int64(t.ExpiresIn.Seconds()), RefreshToken: t.Refresh,
		Scope: t.Scopes.String(), ID: t.Org.String(),
	}), nil
}

// CodeExchange implements op.Server.
func (s *server) CodeExchange(ctx context.Context, r *op.ClientRequest[zoidc.AccessTokenRequest]) (*op.Response, error) {
	if _, err := oidc.CheckResource(s.deps.BaseURL, r.Form["resource"]...); err != nil {
		return nil, asStatus(err)
	}
	sent := oidc.CodeRequest{Code: r.Data.Code, RedirectURI: r.Data.RedirectURI, Verifier: r.Data.CodeVerifier}
	if sent.RedirectURI == omitted {
		sent.RedirectURI = ""
	}
	return answer(s.deps.Grants.Exchange(ctx, clientOf(r.Client), sent))
}

// RefreshToken implements op.Server.
func (s *server) RefreshToken(ctx context.Context, r *op.ClientRequest[zoidc.RefreshTokenRequest]) (*op.Response, error) {
	if _, err := oidc.CheckResource(s.deps.BaseURL, r.Form["resource"]...); err != nil {
		return nil, asStatus(err)
	}
	return answer(s.deps.Grants.Refresh(ctx, clientOf(r.Client), r.Data.RefreshToken))
}

// Revocation implements op.Server.
func (s *server) Revocation(ctx context.Context, r *op.ClientRequest[zoidc.RevocationRequest]) (*op.Response, error) {
	if err := s.deps.Grants.RevokeToken(ctx, clientOf(r.Client), r.Data.Token); err != nil {
		return nil, asStatus(err)
	}
	return op.NewResponse(struct{}{}), nil
}

// Introspect implements op.Server.
func (s *server) Introspect(ctx context.Context, r *op.Request[op.IntrospectionRequest]) (*op.Response, error) {
	c, err := s.authenticate(ctx, r.Data.ClientCredentials)
	if err != nil {
		return nil, asStatus(err)
	}
	i, err := s.deps.Grants.Introspect(ctx, c, r.Data.Token)
	if err != nil {
		return nil, asStatus(err)
	}
	return op.NewResponse(s.introspection(i)), nil
}

// introspection is the answer of the introspection endpoint. Of an inactive token, it says nothing
// else.
type introspection struct {
	Active    bool   `json:"active"`
	Scope     string `json:"scope,omitempty"`
	ClientID  string `json:"client_id,omitempty"`
	TokenType string `json:"token_type,omitempty"`
	Subject   string `json:"sub,omitempty"`
	Org       string `json:"org_id,omitempty"`
	Expires   int64  `json:"exp,omitempty"`
	Issued    int64  `json:"iat,omitempty"`
	Audience  string `json:"aud,omitempty"`
	Issuer    string `json:"iss,omitempty"`
}

func (s *server) introspection(i oidc.Introspection) introspection {
	if !i.Active {
		return introspection{}
	}
	out := introspection{
		Active: true, Scope: i.Scopes.String(), ClientID: i.ClientID, TokenType: "bearer", Subject: i.Person.String(),
		Org: i.Org.String(), Issued: i.Issued.Unix(), Audience: i.Resource, Issuer: s.deps.BaseURL,
	}
	if i.Expires != nil {
		out.Expires = i.Expires.Unix()
	}
	return out
}
