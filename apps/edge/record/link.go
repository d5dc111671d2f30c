package record

import (
	"net/url"
)

// InvitationLink returns the URL of the dashboard page that asks whether to accept an invitation.
// The token is in the fragment, which browsers do not send to servers, so it appears in no log.
func InvitationLink(frontend, token string) string {
	return frontend + "/#org=" + url.QueryEscape(token)
}
