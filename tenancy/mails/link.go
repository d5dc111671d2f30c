package mails

import (
	"net/url"

	"crier/tenancy"
)

// Zoned returns an instance whose messages show times in a zone, or in UTC if the zone is unknown.
func Zoned(from Instance, zone string) Instance {
	if known, err := tenancy.LoadZone(zone); err == nil {
		from.Zone = known
	}
	return from
}

// Link returns an address of the dashboard with a token in its fragment. Browsers do not send the
// fragment to the server, so the token appears in no log. Example:
// https://crier.example/auth/activate#code=3xY7
func (i Instance) Link(path, name, token string) string {
	return i.Frontend + path + "#" + name + "=" + url.QueryEscape(token)
}
