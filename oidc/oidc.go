// Package oidc defines the types and rules of the OAuth server: clients, scopes, consents, grants
// and tokens. People use the server to let agents act for them. The package does no I/O.
package oidc

import (
	"slices"
	"strings"
	"time"

	"crier/platform/id"
	"crier/tenancy"
)

// FamilyTag makes FamilyID a distinct type; see platform/id.
type FamilyTag struct{}

// FamilyID identifies a family of tokens: all tokens that descend from one code or device code.
type FamilyID = id.ID[FamilyTag]

// The prefixes of the ids, secrets, codes and tokens that the server issues. Each prefix is
// followed by 43 random base62 characters. Only the SHA-256 hash of a code, token or secret is
// stored.
const (
	CodePrefix    = "crc_"
	AccessPrefix  = "cra_"
	RefreshPrefix = "crt_"
	ClientPrefix  = "ccl_"
	SecretPrefix  = "ccs_"
	DevicePrefix  = "crd_"
)

// Fixed lifetimes. The lifetime of access tokens is a setting.
const (
	// CodeLife is how long a client has to exchange a code.
	CodeLife = time.Minute
	// RefreshIdle is how long a refresh token works after it was issued.
	RefreshIdle = 30 * 24 * time.Hour
	// DeviceLife is how long a person has to type in a device's code.
	DeviceLife = 15 * time.Minute
)

// Scope is a permission that a client can request.
type Scope string

// The scopes. ScopeWrite implies ScopeRead. ScopeOffline has no effect on whether a client receives
// a refresh token.
const (
	ScopeRead    Scope = "mcp:read"
	ScopeWrite   Scope = "mcp:write"
	ScopeOffline Scope = "offline_access"
)

// Scopes is a set of scopes, in the order of AllScopes.
type Scopes []Scope

// AllScopes returns every scope.
func AllScopes() Scopes { return Scopes{ScopeRead, ScopeWrite, ScopeOffline} }

// ParseScopes returns the known scopes in a space-separated list. If the list names neither
// ScopeRead nor ScopeWrite, the result has both.
func ParseScopes(list string) Scopes {
	named := strings.Fields(list)
	all := AllScopes()
	out := slices.DeleteFunc(slices.Clone(all), func(s Scope) bool { return !slices.Contains(named, string(s)) })
	if out.Reads() {
		return out
	}
	return slices.DeleteFunc(all, func(s Scope) bool { return s == ScopeOffline && !slices.Contains(out, s) })
}

// Reads reports whether the scopes let a client read.
func (s Scopes) Reads() bool { return slices.Contains(s, ScopeRead) || s.Writes() }

// Writes reports whether the scopes let a client make changes.
func (s Scopes) Writes() bool { return slices.Contains(s, ScopeWrite) }

// Within returns the scopes in s that other allows. ScopeWrite in other also allows ScopeRead.
func (s Scopes) Within(other Scopes) Scopes {
	return slices.DeleteFunc(slices.Clone(s), func(x Scope) bool {
		return !slices.Contains(other, x) && !(x == ScopeRead && other.Writes())
	})
}

// ScopesOf converts stored names to scopes. It ignores unknown names.
func ScopesOf(names []string) Scopes {
	return slices.DeleteFunc(AllScopes(), func(s Scope) bool { return !slices.Contains(names, string(s)) })
}

// Names returns the scopes as strings, in the form in which they are stored.
func (s Scopes) Names() []string {
	names := make([]string, len(s))
	for i, x := range s {
		names[i] = string(x)
	}
	return names
}

// String returns the scopes separated by spaces.
func (s Scopes) String() string { return strings.Join(s.Names(), " ") }

// ClientKind says where a client's description comes from.
type ClientKind string

// The kinds of client. The oauth_client table has a CHECK constraint with the same values.
const (
	// ClientRegistered clients registered themselves at /oauth/register.
	ClientRegistered ClientKind = "registered"
	// ClientDocument clients are described by a document at the URL that is their client id.
	ClientDocument ClientKind = "document"
	// ClientStatic clients were created by an administrator of an organization.
	ClientStatic ClientKind = "static"
)

// AuthMethod is how a client authenticates at the token endpoint.
type AuthMethod string

// The authentication methods. The oauth_client table has a CHECK constraint with the same values.
const (
	AuthNone  AuthMethod = "none"
	AuthBasic AuthMethod = "client_secret_basic"
	AuthPost  AuthMethod = "client_secret_post"
)

// Client is a program that can request access from people.
type Client struct {
	ID tenancy.AgentID
	// ClientID is the client_id in requests. Examples: ccl_… and https://client.example/oauth.json
	ClientID string
	Kind     ClientKind
	// Name is the name that the client chose. It is shown to people but not verified.
	Name string
	// URI is the client's home page, or empty.
	URI          string
	RedirectURIs []string
	Auth         AuthMethod
	// Scopes holds the scopes that the client may request.
	Scopes Scopes
	// Org is the organization that a ClientStatic belongs to. It is zero for other kinds.
	Org tenancy.OrgID
	// LongLived means that access tokens expire only with their grant. It is for programs that
	// cannot refresh tokens. Only a ClientStatic can be long-lived.
	LongLived bool
}

// Public reports whether the client has no secret.
func (c Client) Public() bool { return c.Auth == AuthNone }

// NeedsChallenge reports whether the client must send an S256 code challenge and a redirect URI.
// Only a ClientStatic with a secret may omit them.
func (c Client) NeedsChallenge() bool { return c.Kind != ClientStatic || c.Public() }

// Metadata is a client's description of itself, from a registration (RFC 7591) or a metadata
// document.
type Metadata struct {
	// ClientID is set in documents only.
	ClientID      string   `json:"client_id,omitempty"`
	Name          string   `json:"client_name,omitempty"`
	URI           string   `json:"client_uri,omitempty"`
	LogoURI       string   `json:"logo_uri,omitempty"`
	RedirectURIs  []string `json:"redirect_uris,omitempty"`
	Auth          string   `json:"token_endpoint_auth_method,omitempty"`
	AuthMethods   []string `json:"token_endpoint_auth_methods_supported,omitempty"`
	GrantTypes    []string `json:"grant_types,omitempty"`
	ResponseTypes []string `json:"response_types,omitempty"`
	Scope         string   `json:"scope,omitempty"`
	// ApplicationType is ignored, because the redirect rules are the same for all types.
	ApplicationType string `json:"application_type,omitempty"`
}

// Registration is a client that has just registered.
type Registration struct {
	Client
	// Secret is returned only at registration. It is empty for a public client.
	Secret   string
	IssuedAt time.Time
}

// AuthorizationRequest is a client's request for a person's consent. It has already been validated.
type AuthorizationRequest struct {
	Client Client
	// RedirectURI is where the browser is redirected with the answer. RedirectSent is false if the
	// client omitted it from the request, which only a ClientStatic with a secret may do.
	RedirectURI  string
	RedirectSent bool
	State        string
	// Challenge is the S256 code challenge. Only a ClientStatic with a secret may omit it.
	Challenge string
	Scopes    Scopes
	// Resource is the audience of the tokens: {BASE_URL}/mcp.
	Resource string
}

// Limits restricts an agent more than its person's role does. The zero Limits adds no restrictions.
type Limits struct {
	// Channels and Customers hold ids. If both are empty, the agent may use all channels.
	// Otherwise, it may use only these channels and the channels of these customers.
	Channels  []string
	Customers []string
	// MustAsk restricts the agent to drafts. A person must approve each draft before it is
	// published.
	MustAsk bool
	// PostsPerDay is how many posts the agent may queue per day, in the organization's time zone. 0
	// means no limit.
	PostsPerDay int
	// EndsAt is when the grant ends. If it is nil, the grant ends only when it is revoked.
	EndsAt *time.Time
}

// Consent is a person's answer to an authorization request.
type Consent struct {
	Request AuthorizationRequest
	// Token is the consent page's single-use token. A second consent with the same token is
	// rejected.
	Token  string
	Scopes Scopes
	Limits Limits
}

// Grant is a person's permission for a client to act for them in one organization.
type Grant struct {
	ID      tenancy.GrantID
	Org     tenancy.OrgID
	OrgName string
	Client  Client
	Person  tenancy.PersonID
	Email   string
	Scopes  Scopes
	// WriteDeclined means that the client asked to write, and the person declined.
	WriteDeclined bool
	Limits        Limits
	Created       time.Time
	LastUsed      *time.Time
}

// App is an organization's static application.
type App struct {
	Client
	Description string
	Picture     string
	CreatedAt   time.Time
}

// Tokens are issued for a code, a refresh token or a device code.
type Tokens struct {
	Access    string
	Refresh   string
	ExpiresIn time.Duration
	Scopes    Scopes
	Org       tenancy.OrgID
}

// UserInfo describes the person behind an access token.
type UserInfo struct {
	Person tenancy.PersonID
	Email  string
	// Verified means that the person has followed a link that was sent to the email address.
	Verified bool
	Name     string
	Org      tenancy.OrgID
}

// Device is a device log-in that has begun.
type Device struct {
	// Code is what the device polls with.
	Code string
	// UserCode is what the person types. Example: BCDF-GHJK
	UserCode string
	Expires  time.Duration
	Interval time.Duration
}

// CodeRequest is a client's request to exchange a code.
type CodeRequest struct {
	Code string
	// RedirectURI is empty if the client did not send it.
	RedirectURI string
	Verifier    string
}

// Introspection describes an access token (RFC 7662). The zero Introspection describes a token that
// is not valid or that the caller may not see.
type Introspection struct {
	Active   bool
	Scopes   Scopes
	ClientID string
	Person   tenancy.PersonID
	Org      tenancy.OrgID
	Resource string
	Issued   time.Time
	// Expires is nil for a token that does not expire.
	Expires *time.Time
}
