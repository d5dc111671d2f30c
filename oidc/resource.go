package oidc

import (
	"net/url"
	"strings"
)

// Resource returns the audience of every token: the URL of the service's MCP endpoint.
func Resource(base string) string { return strings.TrimSuffix(base, "/") + "/mcp" }

// CheckResource returns the audience for a request with the given resource parameters (RFC 8707).
// Each parameter must be the URL of the MCP endpoint or of the service. The case of the host and a
// trailing slash are ignored. CheckResource returns an Error with InvalidTarget for any other
// resource.
func CheckResource(base string, sent ...string) (string, error) {
	for _, resource := range sent {
		got, ok := normalized(resource)
		service, _ := normalized(base)
		if !ok || got != service && got != service+"/mcp" {
			return "", Fail(InvalidTarget, "resource must be "+Resource(base)+".")
		}
	}
	return Resource(base), nil
}

// normalized returns a URL with its scheme and host in lower case and without a trailing slash. It
// returns false for a string that cannot be a resource's URL.
func normalized(resource string) (string, bool) {
	u, err := url.Parse(resource)
	if err != nil || u.Host == "" || u.User != nil || u.Opaque != "" || strings.ContainsAny(resource, "?#") {
		return "", false
	}
	return u.Scheme + "://" + strings.ToLower(u.Host) + strings.TrimSuffix(u.EscapedPath(), "/"), true
}
