package record

import (
	"net/url"
)

// InvitationLink returns the address at the dashboard frontend that asks whether to accept an invitation. Browsers
// do not send the fragment to a server, so the token is in no log.
func InvitationLink(frontend, token string) string {
	return frontend + "/#org=" + url.QueryEscape(token)
}
