package github

import (
	"net"
	"net/url"
	"path"
	"strings"
)

// matchRedirect returns where a successful and a refused authorization are sent. Without a
// redirect_uri, both go to the first callback URL: "Authorizing OAuth apps", section "Redirect
// URLs". A refusal goes to the registered callback URL, as "Troubleshooting authorization request
// errors" describes. It is an assumption that a loopback URL keeps the requested port.
func (a App) matchRedirect(redirect string) (success, refusal string, ok bool) {
	if redirect == "" {
		return a.Callbacks[0].URL, a.Callbacks[0].URL, true
	}
	for _, c := range a.Callbacks {
		if c.URL == redirect {
			return redirect, c.URL, true
		}
	}
	asked, err := url.Parse(redirect)
	if err != nil || !plainURL(asked) {
		return "", "", false
	}
	for _, c := range a.Callbacks {
		registered, err := url.Parse(c.URL)
		if err != nil || asked.Scheme != registered.Scheme || asked.RawQuery != registered.RawQuery {
			continue
		}
		local := loopback(asked.Hostname()) && asked.Hostname() == registered.Hostname()
		if local && matchPath(asked, registered, c.Wildcard) {
			return redirect, redirect, true
		}
		if c.Wildcard && matchHost(asked, registered) && matchPath(asked, registered, true) {
			return redirect, c.URL, true
		}
	}
	return "", "", false
}

// plainURL reports whether u is an absolute URL of a web server. It is an assumption that another
// scheme, a user, a fragment, and dots or escapes in the path are refused.
func plainURL(u *url.URL) bool {
	web := u.Scheme == "http" || u.Scheme == "https"
	clean := u.Path == "" || u.Path == "/" || path.Clean(u.Path) == strings.TrimSuffix(u.Path, "/")
	encoded := strings.Contains(u.EscapedPath(), "%")
	return web && u.Hostname() != "" && u.User == nil && u.Fragment == "" && clean && !encoded
}

// matchHost implements "Redirect URLs": the host, excluding subdomains, and the port must match
// exactly. It is an assumption that the scheme and the query must match too; they do in all
// examples.
func matchHost(asked, registered *url.URL) bool {
	host, want := strings.ToLower(asked.Hostname()), strings.ToLower(registered.Hostname())
	return port(asked) == port(registered) && (host == want || strings.HasSuffix(host, "."+want))
}

// matchPath implements "Redirect URLs": with wildcard matching, the path must be the callback's
// path or a subdirectory of it; otherwise it must be the callback's path.
func matchPath(asked, registered *url.URL, wildcard bool) bool {
	if asked.Path == registered.Path {
		return true
	}
	return wildcard && strings.HasPrefix(asked.Path, strings.TrimSuffix(registered.Path, "/")+"/")
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// loopback reports whether the port of a redirect URL may differ from the registered port:
// "Authorizing OAuth apps", section "Loopback redirect urls". The page recommends against localhost
// but does not exclude it.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// withQuery returns the callback URL with added query parameters.
func withQuery(callback string, values map[string]string) string {
	u, err := url.Parse(callback)
	if err != nil {
		return callback
	}
	query := u.Query()
	for name, value := range values {
		query.Set(name, value)
	}
	u.RawQuery = query.Encode()
	return u.String()
}
