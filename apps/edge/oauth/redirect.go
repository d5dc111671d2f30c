package oauth

import (
	"net/url"
	"strings"

	"crier/apps/edge/request"
	"crier/oidc"
)

// matchesRedirect reports whether a client may receive its answer at uri. The URI must equal one of
// the client's redirect URIs. Only the port of an http URI on loopback is ignored, because programs
// on a person's computer listen on any free port (RFC 8252, section 7.3).
func matchesRedirect(c oidc.Client, uri string) bool {
	for _, known := range c.RedirectURIs {
		if uri == known || sameButPort(known, uri) {
			return true
		}
	}
	return false
}

// sameButPort reports whether two URIs are http URIs on the same loopback host that differ at most
// in the port.
func sameButPort(known, uri string) bool {
	knownHost, knownRest, ok := cutLoopback(known)
	if !ok {
		return false
	}
	host, rest, ok := cutLoopback(uri)
	return ok && host == knownHost && rest == knownRest
}

// cutLoopback splits an http URI on loopback into the host without the port, and everything after
// the port. Example: "http://127.0.0.1:8080/x?y" becomes "127.0.0.1" and "/x?y".
func cutLoopback(uri string) (host, rest string, ok bool) {
	after, ok := strings.CutPrefix(uri, "http://")
	if !ok {
		return "", "", false
	}
	end := strings.IndexAny(after, "/?#")
	if end < 0 {
		end = len(after)
	}
	authority, rest := after[:end], after[end:]
	host, port := authority, ""
	if i := strings.LastIndexByte(authority, ':'); i > strings.LastIndexByte(authority, ']') {
		host, port = authority[:i], authority[i+1:]
	}
	if strings.Trim(port, "0123456789") != "" || len(port) > 5 {
		return "", "", false
	}
	return host, rest, request.IsLoopback(strings.Trim(host, "[]"))
}

// isSafeTarget reports whether a page may link to a redirect URI. Clients with other URIs cannot
// register; this is the second check, because the pages do not filter the URI again.
func isSafeTarget(uri string) bool {
	u, err := url.Parse(uri)
	if err != nil || u.Fragment != "" || u.User != nil || strings.ContainsFunc(uri, isUnprintable) {
		return false
	}
	switch strings.ToLower(u.Scheme) {
	case "https":
		return u.Host != ""
	case "http":
		return request.IsLoopback(u.Hostname())
	case "", "javascript", "vbscript", "data", "blob", "file", "filesystem", "about", "intent", "view-source", "ws",
		"wss", "ftp", "content", "jar", "mailto", "tel", "sms":
		return false
	}
	return true
}

// isUnprintable reports whether a character may not be in a URI.
func isUnprintable(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"<>\\^`{|}", r)
}

// withParameters appends parameters to a redirect URI. It keeps the URI's own query as it is.
func withParameters(uri string, parameters url.Values) string {
	separator := "?"
	switch {
	case strings.HasSuffix(uri, "?"), strings.HasSuffix(uri, "&"):
		separator = ""
	case strings.Contains(uri, "?"):
		separator = "&"
	}
	return uri + separator + parameters.Encode()
}

// destination says in words where a redirect URI leads.
func destination(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return "an unknown address"
	}
	switch {
	case u.Scheme == "http":
		return "a program on this computer"
	case u.Scheme == "https":
		return asciiHost(u)
	}
	return "the app on this device that opens " + u.Scheme + ": addresses"
}

// asciiHost returns a URL's host. Characters outside ASCII, which can look like other characters,
// are escaped.
func asciiHost(u *url.URL) string {
	var b strings.Builder
	for _, r := range strings.ToLower(u.Host) {
		if r > ' ' && r < 0x7f {
			b.WriteRune(r)
		} else {
			b.WriteString(url.QueryEscape(string(r)))
		}
	}
	return b.String()
}
