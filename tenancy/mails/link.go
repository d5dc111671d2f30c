package mails

import (
	"net/url"

	"crier/tenancy"
)

// Zoned returns an instance whose messages show times in a zone, or in UTC if the zone is not known
// here.
func Zoned(from Instance, zone string) Instance {
	if known, err := tenancy.LoadZone(zone); err == nil {
		from.Zone = known
	}
	return from
}

// Link returns an address of the dashboard whose fragment has a token. Browsers send no fragment to
// a server, so the token is in no log.
func (i Instance) Link(path, name, token string) string {
	return i.Frontend + path + "#" + name + "=" + url.QueryEscape(token)
}
