// Package oauth serves the OAuth server: its metadata, the consent pages, and the endpoints for
// clients.
package oauth

import (
	"context"
	"net/http"

	"crier/oidc"
	"crier/publishing"
	"crier/tenancy"
)

// Clients finds and registers clients.
type Clients interface {
	// Find returns the client with the given id, which a visitor sent. It may have to fetch the
	// client's document. It returns an oidc.Error with InvalidClient if there is no such client. It
	// returns RateLimited if too many documents have been fetched.
	Find(ctx context.Context, clientID string, from tenancy.Source) (oidc.Client, error)
	// Refetch is like Find, but always fetches the client's document. For a client without a
	// document, Refetch behaves like Find.
	Refetch(ctx context.Context, clientID string, from tenancy.Source) (oidc.Client, error)
	// Register stores a client. If the metadata is invalid, it returns an oidc.Error with
	// InvalidRedirectURI or InvalidClientMetadata. It returns RateLimited if too many clients have
	// registered from the source.
	Register(ctx context.Context, m oidc.Metadata, from tenancy.Source) (oidc.Registration, error)
}

// Grants manages the access that people have granted.
type Grants interface {
	// Approve stores a person's consent and returns the code for the client. It returns Conflict if
	// the consent's token has been used. If a limit is not valid in the organization, it returns an
	// Invalid fault that names the field.
	Approve(ctx context.Context, p tenancy.Principal, c oidc.Consent) (code string, err error)
	// List returns the person's own grants in all organizations, newest first.
	List(ctx context.Context, p tenancy.Principal) ([]oidc.Grant, error)
	// ListAll returns all grants of the organization, newest first. Only administrators may call
	// it.
	ListAll(ctx context.Context, p tenancy.Principal) ([]oidc.Grant, error)
	// Revoke ends a grant and all its tokens. People may revoke their own grants in any
	// organization. Administrators may revoke any grant in their organization. Revoke returns
	// NotFound if there is no such grant.
	Revoke(ctx context.Context, p tenancy.Principal, grant string) error
	// Authenticate returns an access token's principal. It returns Unauthenticated if the token is
	// invalid, and Forbidden if the person or the organization has lost access.
	Authenticate(ctx context.Context, accessToken string) (tenancy.Principal, error)
	// AuthenticateHash is like Authenticate, but takes the access token's SHA-256 hash.
	AuthenticateHash(ctx context.Context, hash []byte) (tenancy.Principal, error)
	// UserInfo describes the person behind an access token. It returns the same errors as
	// Authenticate.
	UserInfo(ctx context.Context, accessToken string) (oidc.UserInfo, error)
}

// Apps manages an organization's static application. Only administrators may call it.
type Apps interface {
	// App returns the organization's application, or NotFound.
	App(ctx context.Context, p tenancy.Principal) (oidc.App, error)
	// CreateApp stores an application and returns its secret, which is not shown again. It returns
	// Conflict if the organization already has an application.
	CreateApp(ctx context.Context, p tenancy.Principal, a oidc.App) (oidc.App, string, error)
	// UpdateApp changes the name, description, picture and redirect URL.
	UpdateApp(ctx context.Context, p tenancy.Principal, a oidc.App) (oidc.App, error)
	// DeleteApp deletes the application, its grants and their tokens.
	DeleteApp(ctx context.Context, p tenancy.Principal) error
	// RotateAppSecret replaces the secret and returns the new one.
	RotateAppSecret(ctx context.Context, p tenancy.Principal) (string, error)
}

// Devices logs devices in.
type Devices interface {
	// StartDevice begins a log-in. It returns an oidc.Error with InvalidClient or InvalidScope if
	// the client or the scopes are not accepted. It returns RateLimited if too many log-ins have
	// begun from the source.
	StartDevice(
		ctx context.Context, clientID string, scopes oidc.Scopes, from tenancy.Source,
	) (oidc.Device, error)
	// DeviceRequest returns the authorization request of the device that shows userCode. It returns
	// NotFound if the code is unknown, answered or expired. It returns RateLimited if the person
	// has tried too many codes.
	DeviceRequest(ctx context.Context, p tenancy.Principal, userCode string) (oidc.AuthorizationRequest, error)
	// AnswerDevice stores the person's answer. A nil consent denies access.
	AnswerDevice(ctx context.Context, p tenancy.Principal, userCode string, c *oidc.Consent) error
	// PollDevice returns the tokens once the person has approved the log-in. Before the person
	// answers, it returns an oidc.Error with AuthorizationPending or SlowDown. After a denial or
	// once the code has expired, it returns one with AccessDenied or ExpiredToken.
	PollDevice(ctx context.Context, deviceCode string) (oidc.Tokens, error)
}

// Prover checks that a request comes from the principal's person.
type Prover interface {
	// ProveLately accepts the password, or a sign-in within the last ten minutes. If the person has
	// a second factor, ProveLately also requires a code, unless that sign-in used the factor. It
	// returns Invalid if the proof is missing or wrong.
	ProveLately(ctx context.Context, op string, p tenancy.Principal, proof tenancy.Proof) error
}

// Channels lists the channels and customers that an agent can be limited to.
type Channels interface {
	// List returns the organization's channels or, if customer is not empty, that customer's
	// channels.
	List(ctx context.Context, p tenancy.Principal, customer string) ([]publishing.Channel, error)
	Customers(ctx context.Context, p tenancy.Principal) ([]publishing.Customer, error)
}

// Organizations lists a person's organizations.
type Organizations interface {
	// Organizations returns the organizations in which the person is an enabled member, sorted from
	// the oldest membership to the newest.
	Organizations(ctx context.Context, p tenancy.Principal) ([]tenancy.OrganizationOf, error)
}

// Provider is an identity provider that people can sign in with.
type Provider struct {
	// ID is the provider's name in URLs. Example: GITHUB
	ID string
	// Label is the provider's name on pages. Example: GitHub
	Label string
}

// Ports holds what the OAuth server's endpoints need from other packages. If a field is nil, the
// endpoints that need it respond with 501.
type Ports struct {
	Clients Clients
	Grants  Grants
	Apps    Apps
	Devices Devices
	// Tokens serves POST /oauth/token, /oauth/introspect and /oauth/revoke. It expects forms.
	Tokens http.Handler
	Prover Prover
	// Providers lists the identity providers of this instance.
	Providers []Provider
}
