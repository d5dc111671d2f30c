// Package server serves the OAuth endpoints that clients call: token, introspection and revocation.
// It uses the server from zitadel/oidc, but not its sessions, signing keys or ID tokens.
package server

import (
	"context"
	"log/slog"
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
	// Authenticate returns the client with the given id and secret. A public client's secret is "".
	// Authenticate returns an oidc.Error with InvalidClient if there is no such client or the
	// secret is wrong.
	Authenticate(ctx context.Context, clientID, secret string) (oidc.Client, error)
}

// Grants issues, describes and revokes tokens. Methods that take a client must be called only after
// the client has been authenticated.
type Grants interface {
	Exchange(ctx context.Context, c oidc.Client, r oidc.CodeRequest) (oidc.Tokens, error)
	Refresh(ctx context.Context, c oidc.Client, refresh string) (oidc.Tokens, error)
	RevokeToken(ctx context.Context, c oidc.Client, token string) error
	Introspect(ctx context.Context, c oidc.Client, token string) (oidc.Introspection, error)
	IntrospectFor(ctx context.Context, p tenancy.Principal, token string) (oidc.Introspection, error)
}

// Keys authenticates API keys.
type Keys interface {
	// Authenticate returns the principal for an API key. It returns Unauthenticated if the key is
	// not valid, and Forbidden if the key's organization has no access.
	Authenticate(ctx context.Context, authorization string) (tenancy.Principal, error)
}

// Deps are the dependencies of New. All are required.
type Deps struct {
	// BaseURL is the service's URL, without a trailing slash. It is the issuer.
	BaseURL string
	Clients Clients
	Grants  Grants
	Keys    Keys
	// Log receives the causes of internal errors.
	Log *slog.Logger
}

// New returns the handler for TokenPath, IntrospectPath and RevokePath. Errors from these paths
// have the format of RFC 6749. The caller must set CORS headers, limit requests, and give each
// request a deadline.
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

// call holds the client and the error of one request. The handler passes it to op in the context.
// The methods of server store errors in it, because op would log every error and change the status
// of some responses.
type call struct {
	client oidc.Client
	err    error
}

type callKey struct{}

func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// answer returns a response with the given body, and stores err in the call.
func answer(ctx context.Context, body any, err error) (*op.Response, error) {
	callOf(ctx).err = err
	return op.NewResponse(body), nil
}

// VerifyClient implements op.Server.
func (s *server) VerifyClient(ctx context.Context, _ *op.Request[op.ClientCredentials]) (op.Client, error) {
	return client{Client: callOf(ctx).client}, nil
}

// tokenResponse is the token endpoint's response.
type tokenResponse struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int64  `json:"expires_in,omitempty"`
	RefreshToken string `json:"refresh_token,omitempty"`
	Scope        string `json:"scope"`
	// ID is the organization.
	ID string `json:"id"`
	// Cus is always null, because organizations are not customers of a payment provider.
	Cus *string `json:"cus"`
}

func newTokenResponse(t oidc.Tokens) tokenResponse {
	return tokenResponse{
		AccessToken: t.Access, TokenType: "bearer", ExpiresIn: int64(t.ExpiresIn.Seconds()), RefreshToken: t.Refresh,
		Scope: t.Scopes.String(), ID: t.Org.String(),
	}
}

// CodeExchange implements op.Server.
func (s *server) CodeExchange(ctx context.Context, r *op.ClientRequest[zoidc.AccessTokenRequest]) (*op.Response, error) {
	sent := oidc.CodeRequest{Code: r.Data.Code, RedirectURI: r.Data.RedirectURI, Verifier: r.Data.CodeVerifier}
	if sent.RedirectURI == omitted {
		sent.RedirectURI = ""
	}
	t, err := s.deps.Grants.Exchange(ctx, callOf(ctx).client, sent)
	return answer(ctx, newTokenResponse(t), err)
}

// RefreshToken implements op.Server.
func (s *server) RefreshToken(ctx context.Context, r *op.ClientRequest[zoidc.RefreshTokenRequest]) (*op.Response, error) {
	t, err := s.deps.Grants.Refresh(ctx, callOf(ctx).client, r.Data.RefreshToken)
	return answer(ctx, newTokenResponse(t), err)
}

// Revocation implements op.Server.
func (s *server) Revocation(ctx context.Context, r *op.ClientRequest[zoidc.RevocationRequest]) (*op.Response, error) {
	return answer(ctx, struct{}{}, s.deps.Grants.RevokeToken(ctx, callOf(ctx).client, r.Data.Token))
}

// Introspect implements op.Server.
func (s *server) Introspect(ctx context.Context, r *op.Request[op.IntrospectionRequest]) (*op.Response, error) {
	i, err := s.deps.Grants.Introspect(ctx, callOf(ctx).client, r.Data.Token)
	return answer(ctx, s.introspection(i), err)
}

// introspection is the introspection endpoint's response. For an inactive token, it contains only
// the active field.
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
