package oidc

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

const (
	// MaxRedirectURIs is the maximum number of redirect URIs per client.
	MaxRedirectURIs = 10
	// maxURI is the maximum length of a client's URI, in bytes.
	maxURI = 2048
)

// refusedSchemes lists schemes that run code, read files, or open something other than the client.
var refusedSchemes = []string{
	"about", "android-app", "blob", "chrome", "chrome-extension", "cmd", "content", "data", "edge", "facetime", "feed",
	"file", "filesystem",
	"ftp", "ftps", "geo", "gopher", "help", "intent", "itms", "itms-apps", "itms-services", "jar", "javascript", "ldap",
	"ldaps", "livescript", "mailto",
	"market", "mhtml", "microsoft-edge", "mk", "mocha", "moz-extension", "nfs", "opera", "powershell",
	"resource", "search", "search-ms", "sftp", "shell", "sip", "sms", "smb", "ssh", "tel", "telnet", "urn", "vbscript",
	"view-source", "vnc", "webcal", "wiki", "ws", "wss", "wyciwyg", "x-apple-helpbasic", "xmpp",
}

// loopback lists the hosts that an http redirect URI may have. All of them refer to the person's
// own machine.
var loopback = []string{"localhost", "127.0.0.1", "::1"}

// CheckRedirectURIs returns an Error with InvalidRedirectURI unless uris has 1 to MaxRedirectURIs
// entries that a client may use.
func CheckRedirectURIs(uris []string) error {
	if len(uris) == 0 || len(uris) > MaxRedirectURIs {
		return Fail(InvalidRedirectURI, fmt.Sprintf("redirect_uris must have 1 to %d entries.", MaxRedirectURIs))
	}
	for _, uri := range uris {
		if err := CheckRedirectURI(uri); err != nil {
			return err
		}
	}
	return nil
}

// CheckRedirectURI returns an Error with InvalidRedirectURI unless a client may use the redirect
// URI.
//
// A redirect URI may use https, or http on the person's own machine (localhost, 127.0.0.1 or
// [::1]). It may also use a private scheme, which opens an application. Examples:
// cursor://host/path, com.example.app:/callback
func CheckRedirectURI(uri string) error {
	rule := redirectRule(uri)
	if rule == "" {
		return nil
	}
	return Fail(InvalidRedirectURI, "A redirect URI "+rule+".")
}

// redirectRule returns the rule that a redirect URI breaks, or "".
func redirectRule(uri string) string {
	if uri == "" || len(uri) > maxURI {
		return fmt.Sprintf("must have 1 to %d bytes", maxURI)
	}
	if strings.ContainsFunc(uri, isNotURI) {
		return "must contain only characters that RFC 3986 allows"
	}
	u, err := url.Parse(uri)
	switch {
	case err != nil || u.Scheme == "":
		return "must be an absolute URI"
	case strings.Contains(uri, "#"):
		return "must not have a fragment"
	case u.User != nil || strings.Contains(u.Host, "@"):
		return "must not have a user name"
	case u.Scheme == "https":
		if u.Hostname() == "" || strings.ContainsFunc(u.Hostname(), isNotHost) {
			return "must name a host"
		}
	case u.Scheme == "http":
		if !slices.Contains(loopback, u.Hostname()) {
			return "may use http only on localhost, 127.0.0.1 or [::1]"
		}
	case slices.Contains(refusedSchemes, u.Scheme), isWindowsScheme(u.Scheme):
		return "must not use the scheme " + u.Scheme
	case u.Opaque == "" && u.Host == "" && u.Path == "":
		return "must have something after its scheme"
	}
	return ""
}

// isWindowsScheme reports whether a scheme opens a part of Windows or of an Office program.
// Examples: ms-settings, ms-word. Applications from the store of Windows use ms-appx-web.
func isWindowsScheme(scheme string) bool {
	return strings.HasPrefix(scheme, "ms-") && scheme != "ms-appx-web"
}

// isNotURI reports whether a character cannot be in a URI. Everything that RFC 3986 does not allow
// is rejected: spaces, control characters, backslashes, quotes, and all non-ASCII characters.
func isNotURI(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	}
	return !strings.ContainsRune("-._~:/?#[]@!$&'()*+,;=%", r)
}

// isNotHost reports whether a character is invalid in a host name or an IP address, such as the
// asterisk in a pattern.
func isNotHost(r rune) bool {
	return isNotURI(r) || strings.ContainsRune("_~/?#[]@!$&'()*+,;=%", r)
}

// MatchRedirect reports whether an authorization request may use a redirect URI. The URI must
// exactly match one that the client registered. Only the port of an http URI on the person's own
// machine may differ, because a client on that machine listens on any free port (RFC 8252).
func (c Client) MatchRedirect(sent string) bool {
	if slices.Contains(c.RedirectURIs, sent) {
		return true
	}
	want, ok := withoutPort(sent)
	return ok && slices.ContainsFunc(c.RedirectURIs, func(registered string) bool {
		got, ok := withoutPort(registered)
		return ok && got == want
	})
}

// withoutPort removes the port from an http URI on the person's own machine. It returns false for
// any other URI.
func withoutPort(uri string) (string, bool) {
	const scheme = "http://"
	if !strings.HasPrefix(uri, scheme) || redirectRule(uri) != "" {
		return "", false
	}
	u, err := url.Parse(uri)
	if err != nil {
		return "", false
	}
	host := strings.TrimSuffix(u.Host, ":"+u.Port())
	return scheme + host + strings.TrimPrefix(uri, scheme+u.Host), true
}
