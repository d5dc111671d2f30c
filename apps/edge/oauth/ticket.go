package oauth

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"crier/oidc"
	"crier/platform/fault"
	"crier/platform/secret"
	"crier/tenancy"
)

// ticketLife is how long a consent page can be answered after it is shown.
const ticketLife = time.Hour

// nonceLength is the number of random characters in a ticket. They hold more than 128 bits of
// randomness.
const nonceLength = 22

// newTicket returns a single-use token for a consent page. The token is valid only in the session
// in which the page was shown, for the same organization and the same request. Grants.Approve
// rejects a second use.
func (a *consents) newTicket(p tenancy.Principal, r oidc.AuthorizationRequest, device string) (string, error) {
	nonce, err := secret.Token("", nonceLength)
	if err != nil {
		return "", fault.Wrap(fault.Internal, "oauth.newTicket", "", err)
	}
	body := nonce + "." + strconv.FormatInt(a.deps.Clock.Now().Add(ticketLife).Unix(), 36)
	signature, err := a.signTicket(body, p, r, device)
	return body + "." + signature, err
}

// checkTicket returns Invalid unless newTicket returned the ticket for the same arguments within
// ticketLife. If the client's description has changed in the meantime, the ticket is invalid.
func (a *consents) checkTicket(ticket string, p tenancy.Principal, r oidc.AuthorizationRequest, device string) error {
	stale := fault.New(fault.Invalid, "oauth.checkTicket",
		"This page was out of date, or the app has changed since you opened the page. Please check the page again.")
	i := strings.LastIndexByte(ticket, '.')
	if i < 0 || len(ticket) > 256 {
		return stale
	}
	body, signature := ticket[:i], ticket[i+1:]
	want, err := a.signTicket(body, p, r, device)
	if err != nil {
		return err
	}
	_, expires, _ := strings.Cut(body, ".")
	until, err := strconv.ParseInt(expires, 36, 64)
	if !secret.Equal(signature, secret.Text(want)) || err != nil || a.deps.Clock.Now().Unix() >= until {
		return stale
	}
	return nil
}

// signTicket returns an HMAC of the ticket's body and its context: the session, the organization,
// the device's code, the client's description and the request.
func (a *consents) signTicket(
	body string, p tenancy.Principal, r oidc.AuthorizationRequest, device string,
) (string, error) {
	c := r.Client
	shown, err := json.Marshal([]any{
		body, p.Session.String(), p.Person.String(), p.Org.String(), device,
		c.ID.String(), c.ClientID, c.Kind, c.Name, c.URI, c.RedirectURIs, c.Auth, c.Org.String(), c.LongLived,
		r.RedirectURI, r.RedirectSent, r.State, r.Challenge, r.Scopes, r.Resource,
	})
	if err != nil {
		return "", fault.Wrap(fault.Internal, "oauth.signTicket", "", err)
	}
	return a.deps.Gate.NameOf("consent", string(shown)), nil
}
