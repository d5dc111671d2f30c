package oauth

import (
	"net/url"
	"strings"
)

// withParameters appends parameters to a redirect URI. It leaves the URI's own query unchanged.
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

// destination returns a human-readable description of where a redirect URI leads.
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
