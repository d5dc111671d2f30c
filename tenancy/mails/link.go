package mails

import (
	"net/url"

	"crier/tenancy"
)

// Zoned returns a copy of from whose messages show times in the given zone. If the zone is unknown,
// it returns from unchanged.
func Zoned(from Instance, zone string) Instance {
	if known, err := tenancy.LoadZone(zone); err == nil {
		from.Zone = known
	}
	return from
}

// Link returns a dashboard URL with a token in the URL's fragment. Browsers do not send fragments
// to servers, so the token does not appear in server logs. Example:
// https://crier.example/auth/activate#code=3xY7
func (i Instance) Link(path, name, token string) string {
	return i.Frontend + path + "#" + name + "=" + url.QueryEscape(token)
}
