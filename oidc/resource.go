package oidc

import (
	"net/url"
	"strings"
)

// Resource returns the audience of every token: the MCP endpoint of the service.
func Resource(base string) string { return strings.TrimSuffix(base, "/") + "/mcp" }

// CheckResource returns the audience for the resource parameters of a request (RFC 8707). A
// parameter may name the MCP endpoint or the service. A trailing slash and the case of the host are
// ignored. CheckResource returns an Error with InvalidTarget for any other resource.
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

// normalized returns a URL with its scheme and host in lowercase and without a trailing slash. It
// returns false for a URL that no resource can have.
func normalized(resource string) (string, bool) {
	u, err := url.Parse(resource)
	if err != nil || u.Host == "" || u.User != nil || u.Opaque != "" || strings.ContainsAny(resource, "?#") {
		return "", false
	}
	return u.Scheme + "://" + strings.ToLower(u.Host) + strings.TrimSuffix(u.EscapedPath(), "/"), true
}
