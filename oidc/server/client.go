package server

import (
	"time"

	zoidc "github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"crier/oidc"
)

// client implements op.Client. op uses only its grant types. The other methods return the values
// for a client without OpenID Connect.
type client struct{ oidc.Client }

// GetID implements op.Client.
func (c client) GetID() string { return c.ClientID }

// RedirectURIs implements op.Client.
func (c client) RedirectURIs() []string { return c.Client.RedirectURIs }

// PostLogoutRedirectURIs implements op.Client.
func (c client) PostLogoutRedirectURIs() []string { return nil }

// ApplicationType implements op.Client.
func (c client) ApplicationType() op.ApplicationType { return op.ApplicationTypeWeb }

// AuthMethod implements op.Client.
func (c client) AuthMethod() zoidc.AuthMethod { return zoidc.AuthMethod(c.Auth) }

// ResponseTypes implements op.Client.
func (c client) ResponseTypes() []zoidc.ResponseType {
	return []zoidc.ResponseType{zoidc.ResponseTypeCode}
}

// GrantTypes implements op.Client.
func (c client) GrantTypes() []zoidc.GrantType {
	return []zoidc.GrantType{zoidc.GrantTypeCode, zoidc.GrantTypeRefreshToken}
}

// LoginURL implements op.Client.
func (c client) LoginURL(string) string { return "" }

// AccessTokenType implements op.Client.
func (c client) AccessTokenType() op.AccessTokenType { return op.AccessTokenTypeBearer }

// IDTokenLifetime implements op.Client.
func (c client) IDTokenLifetime() time.Duration { return 0 }

// DevMode implements op.Client.
func (c client) DevMode() bool { return false }

// RestrictAdditionalIdTokenScopes implements op.Client.
//
//lint:ignore ST1003 op.Client spells it this way.
func (c client) RestrictAdditionalIdTokenScopes() func([]string) []string { return noScopes }

// RestrictAdditionalAccessTokenScopes implements op.Client.
func (c client) RestrictAdditionalAccessTokenScopes() func([]string) []string { return noScopes }

func noScopes([]string) []string { return nil }

// IsScopeAllowed implements op.Client.
func (c client) IsScopeAllowed(string) bool { return false }

// IDTokenUserinfoClaimsAssertion implements op.Client.
func (c client) IDTokenUserinfoClaimsAssertion() bool { return false }

// ClockSkew implements op.Client.
func (c client) ClockSkew() time.Duration { return 0 }
