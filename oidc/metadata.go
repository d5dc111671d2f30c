package oidc

import (
	"crypto/sha256"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"crier/platform/text"
)

const (
	// MaxMetadata is the maximum size of a registration request, in bytes.
	MaxMetadata = 16 << 10
	// MaxDocument is the maximum size of a client's metadata document, in bytes.
	MaxDocument = 64 << 10
	// maxName is the maximum length of a client's name, in characters.
	maxName = 100
)

// GrantTypes returns the supported grant types.
func GrantTypes() []string { return []string{"authorization_code", "refresh_token"} }

// ResponseTypes returns the supported response types.
func ResponseTypes() []string { return []string{"code"} }

// AuthMethods returns the supported client authentication methods.
func AuthMethods() []AuthMethod { return []AuthMethod{AuthPost, AuthBasic, AuthNone} }

// Registrant returns the client that a registration describes, without ids. It returns an Error
// with InvalidRedirectURI or InvalidClientMetadata if the metadata is invalid or not supported.
//
// The defaults follow RFC 7591, so a client that specifies no authentication method gets a secret.
func (m Metadata) Registrant() (Client, error) {
	c := Client{Kind: ClientRegistered, Auth: AuthMethod(m.Auth)}
	if m.Auth == "" {
		c.Auth = AuthBasic
	}
	return m.client(c)
}

// Documented returns the client that the document at a URL describes, without an id. It returns an
// Error with InvalidClient if the document's client_id is not the URL, or if the metadata is
// invalid or not supported.
func (m Metadata) Documented(address string) (Client, error) {
	if m.ClientID != address {
		return Client{}, Fail(InvalidClient, "The client_id in the metadata document is not the document's own URL.")
	}
	if m.Auth != "" && m.Auth != string(AuthNone) && !slices.Contains(m.AuthMethods, string(AuthNone)) {
		return Client{}, Fail(InvalidClient, "A client with a metadata document must have "+
			"token_endpoint_auth_method none, or list none in token_endpoint_auth_methods_supported.")
	}
	c, err := m.client(Client{ClientID: address, Kind: ClientDocument, Auth: AuthNone})
	if err != nil {
		return Client{}, Fail(InvalidClient, "The client's metadata document cannot be used: "+reason(err))
	}
	return c, nil
}

func reason(err error) string {
	if e, ok := err.(*Error); ok {
		return e.Message
	}
	return err.Error()
}

// client validates the metadata and returns c with the metadata's fields.
func (m Metadata) client(c Client) (Client, error) {
	refuse := func(message string) (Client, error) { return Client{}, Fail(InvalidClientMetadata, message) }
	if err := CheckRedirectURIs(m.RedirectURIs); err != nil {
		return Client{}, err
	}
	switch {
	case !slices.Contains(AuthMethods(), c.Auth):
		return refuse("token_endpoint_auth_method must be none, client_secret_basic or client_secret_post.")
	case len(m.GrantTypes) > 0 && !slices.Contains(m.GrantTypes, "authorization_code"):
		return refuse("grant_types must include authorization_code.")
	case len(m.ResponseTypes) > 0 && !slices.Contains(m.ResponseTypes, "code"):
		return refuse("response_types must include code.")
	}
	c.Name = CleanName(m.Name)
	c.URI = webURI(m.URI)
	c.RedirectURIs = slices.Clone(m.RedirectURIs)
	c.Scopes = AllScopes()
	if strings.TrimSpace(m.Scope) != "" {
		c.Scopes = ParseScopes(m.Scope)
	}
	if c.Name == "" {
		c.Name = nameless(c)
	}
	return c, nil
}

// CleanName returns a client's name as a single line of at most 100 characters, without control
// characters or characters that change the direction of the text.
func CleanName(name string) string { return text.Cut(text.Line(name, 4*maxName), maxName) }

// nameless returns a name for a client without one: the scheme and host of its first redirect URI.
func nameless(c Client) string {
	if u, err := url.Parse(c.RedirectURIs[0]); err == nil {
		return text.Cut(u.Scheme+"://"+u.Host, maxName)
	}
	return "Unnamed application"
}

// webURI returns uri if it is a valid http or https URL, and "" otherwise.
func webURI(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || len(uri) > maxURI || strings.ContainsFunc(uri, isNotURI) || u.User != nil || u.Hostname() == "" ||
		u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	return uri
}

// Fingerprint returns a hash that is equal for public clients with the same metadata. It ignores
// the order of the redirect URIs and the ports of loopback URIs, because some clients register at
// each start and listen on a different port each time.
func (c Client) Fingerprint() []byte {
	uris := make([]string, len(c.RedirectURIs))
	for i, uri := range c.RedirectURIs {
		uris[i] = uri
		if plain, ok := withoutPort(uri); ok {
			uris[i] = plain
		}
	}
	slices.Sort(uris)
	raw, err := json.Marshal([]any{c.Name, c.URI, slices.Compact(uris), c.Auth, c.Scopes.String()})
	if err != nil {
		return nil // strings can always be encoded
	}
	sum := sha256.Sum256(raw)
	return sum[:]
}

// IsDocumentURL reports whether a client id is the URL of a metadata document: https with a host
// and a path, and without a user name, a fragment or dot segments.
func IsDocumentURL(clientID string) bool {
	if !strings.HasPrefix(clientID, "https://") || len(clientID) > maxURI ||
		strings.ContainsFunc(clientID, isNotURI) || strings.Contains(clientID, "#") {
		return false
	}
	u, err := url.Parse(clientID)
	if err != nil || u.User != nil || u.Hostname() == "" || len(u.Path) < 2 {
		return false
	}
	return !slices.ContainsFunc(strings.Split(u.Path, "/"), func(s string) bool { return s == "." || s == ".." })
}
