package signin

import (
	"net/netip"
	"net/url"
	"strings"

	"crier/platform/env"
	"crier/platform/secret"
	"crier/tenancy"
)

// Provider is the name of an identity provider in URLs and tables.
type Provider string

// The providers, in the order in which Names returns them.
const (
	ProviderGitHub  Provider = "GITHUB"
	ProviderGoogle  Provider = "GOOGLE"
	ProviderGeneric Provider = "GENERIC" // any OpenID Connect issuer
)

const (
	gitHubURL    = "https://github.com"
	googleIssuer = "https://accounts.google.com"
)

// maxIssuer is the maximum length of a stored issuer, in bytes.
const maxIssuer = 512

// maxLabel is the maximum length of OIDC_NAME, in characters.
const maxLabel = 64

// Config holds the credentials that identify this instance to the identity providers. A provider
// without a client id is not offered.
type Config struct {
	GitHubID     string      `env:"GITHUB_CLIENT_ID" doc:"Client id of a GitHub OAuth app for sign-in."`
	GitHubSecret secret.Text `env:"GITHUB_CLIENT_SECRET" doc:"Client secret of the GitHub OAuth app."`
	// GitHubURL has no path. On any host other than github.com, the API is at /api/v3.
	GitHubURL string `env:"GITHUB_URL, default=https://github.com" doc:"URL of GitHub or GitHub Enterprise."`

	GoogleID     string      `env:"GOOGLE_CLIENT_ID" doc:"Client id of a Google web application for sign-in."`
	GoogleSecret secret.Text `env:"GOOGLE_CLIENT_SECRET" doc:"Client secret of the Google web application."`

	// Issuer must equal the issuer in the provider's metadata, except for a trailing slash.
	Issuer string      `env:"OIDC_ISSUER" doc:"Issuer URL of an OpenID Connect provider; it can be on a private network."`
	ID     string      `env:"OIDC_CLIENT_ID" doc:"Client id at the OpenID Connect provider."`
	Secret secret.Text `env:"OIDC_CLIENT_SECRET" doc:"Client secret at the OpenID Connect provider."`
	Label  string      `env:"OIDC_NAME, default=SSO" doc:"Name of the OpenID Connect provider on the sign-in page."`
	// TrustEmail means that all email addresses from the issuer count as verified. Anybody who can
	// set an address at the issuer can then register with that address.
	TrustEmail bool `env:"OIDC_TRUST_EMAIL, default=false" doc:"Whether all email addresses from OIDC_ISSUER count as verified."`
}

// Validate checks the configuration and returns all errors joined. errors.As finds an env.Fault in
// the result.
func (c Config) Validate() error {
	var faults env.Faults
	addPair(&faults, "GITHUB_CLIENT_ID", c.GitHubID, "GITHUB_CLIENT_SECRET", c.GitHubSecret.Reveal())
	addPair(&faults, "GOOGLE_CLIENT_ID", c.GoogleID, "GOOGLE_CLIENT_SECRET", c.GoogleSecret.Reveal())
	addPair(&faults, "OIDC_CLIENT_ID", c.ID, "OIDC_CLIENT_SECRET", c.Secret.Reveal())
	addPair(&faults, "OIDC_CLIENT_ID", c.ID, "OIDC_ISSUER", c.Issuer)
	if c.GitHubURL != "" && !isOrigin(c.GitHubURL) {
		faults.Add("GITHUB_URL", "must be an https address without a path (http only on loopback)")
	}
	if c.Issuer != "" && !isIssuer(c.Issuer) {
		faults.Add("OIDC_ISSUER", "must be an https address without a query (http only on loopback)")
	}
	if _, rule := tenancy.CleanName(c.Label, 1, maxLabel); c.Label != "" && rule != "" {
		faults.Add("OIDC_NAME", rule)
	}
	return faults.Err()
}

// addPair adds a fault if only one of the two variables is set.
func addPair(faults *env.Faults, name, value, otherName, other string) {
	if value == "" && other != "" {
		faults.Add(name, "is required with "+otherName)
	}
	if value != "" && other == "" {
		faults.Add(otherName, "is required with "+name)
	}
}

func isOrigin(address string) bool {
	u, ok := parseAddress(address)
	return ok && strings.Trim(u.Path, "/") == "" && u.RawQuery == "" && len(address) <= maxIssuer
}

func isIssuer(address string) bool {
	u, ok := parseAddress(address)
	return ok && u.RawQuery == "" && len(address) <= maxIssuer
}

// parseAddress parses an https URL, or an http URL on loopback. It returns false for any other
// string, and for a URL with credentials or a fragment.
func parseAddress(raw string) (*url.URL, bool) {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" || u.User != nil || strings.Contains(raw, "#") {
		return nil, false
	}
	return u, u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname())
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}
