package bluesky

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"crier/platform/paste"
	"crier/publishing"
	"crier/publishing/connector"
)

// credential is the decoded form of Session.Credential, which the engine stores encrypted.
type credential struct {
	// Service is the URL used to sign in and to refresh. Example: https://bsky.social
	Service string `json:"service"`
	// Server is the URL of the server that holds the account's repository.
	Server     string `json:"server"`
	Identifier string `json:"identifier"`
	// Password is an app password.
	Password   string `json:"password"`
	DID        string `json:"did"`
	Handle     string `json:"handle"`
	AccessJWT  string `json:"accessJwt"`
	RefreshJWT string `json:"refreshJwt"`
}

// session is the response to a sign-in or a refresh.
type session struct {
	DID        string          `json:"did"`
	Handle     string          `json:"handle"`
	AccessJWT  string          `json:"accessJwt"`
	RefreshJWT string          `json:"refreshJwt"`
	DIDDoc     json.RawMessage `json:"didDoc"`
	Active     *bool           `json:"active"`
	Status     string          `json:"status"`
}

// Connect signs in and returns the account. It returns KindContent if the entered address does not
// belong to a Bluesky service, and KindReauth if the password is wrong.
func (c *Connector) Connect(
	ctx context.Context, env connector.Env, fields map[string]string,
) (connector.Connected, error) {
	base, err := parseService(fields["service"])
	if err != nil {
		return connector.Connected{}, err
	}
	cred := credential{Service: base, Identifier: identifierOf(fields["identifier"]), Password: appPassword(fields["password"])}
	if cred.Identifier == "" || cred.Password == "" {
		return connector.Connected{}, badForm("Enter your handle and an app password.", nil)
	}
	cred, err = signIn(ctx, env, cred)
	if connector.WrongAddress(err) {
		return connector.Connected{}, badForm("This address does not respond like a Bluesky service.", err)
	}
	if err != nil {
		return connector.Connected{}, tooLarge(err)
	}
	account, err := fetchAccount(ctx, env, cred)
	if err != nil {
		return connector.Connected{}, tooLarge(err)
	}
	raw, err := json.Marshal(cred)
	return connector.Connected{Account: account, Credential: raw}, err
}

// profileTime is the maximum time that Refresh waits for the account's profile.
const profileTime = 3 * time.Second

// Refresh exchanges the refresh token, which can be used only once, for new tokens. It also reads
// the account's current names and picture. Because sign-ins per day are limited, Refresh signs in
// again only if the server rejects the refresh token.
func (c *Connector) Refresh(ctx context.Context, s *connector.Session) (connector.Refreshed, error) {
	cred, err := readCredential(s)
	if err != nil {
		return connector.Refreshed{}, err
	}
	fresh, err := refreshSession(ctx, s.Env, cred)
	if err != nil && connector.KindOf(err, false) == connector.KindReauth {
		cred.Identifier = cred.DID // the typed handle may belong to another account by now
		fresh, err = signIn(ctx, s.Env, cred)
	}
	if err != nil {
		return connector.Refreshed{}, err
	}
	raw, err := json.Marshal(fresh)
	if err != nil {
		return connector.Refreshed{}, err
	}
	out := connector.Refreshed{Credential: raw, Destination: fresh.destination()}
	if !fresh.hasHandle() {
		// the handle cannot be verified at the moment, for example because its domain does not
		// respond
		return out, nil
	}
	out.Profile = fresh.Handle
	ctx, cancel := context.WithTimeout(ctx, profileTime)
	defer cancel()
	// The new tokens must be stored even if the profile cannot be read. The account then keeps its
	// name until the next refresh.
	if account, err := fetchAccount(ctx, s.Env, fresh); err == nil {
		out.Name, out.Picture = account.Name, account.Picture
	}
	return out, nil
}

func signIn(ctx context.Context, env connector.Env, cred credential) (credential, error) {
	body, err := json.Marshal(map[string]string{"identifier": cred.Identifier, "password": cred.Password})
	if err != nil {
		return cred, badForm("The identifier or the app password cannot be sent.", err)
	}
	var answer session
	cl := client{http: env.HTTP, clock: env.Clock, base: cred.Service, secrets: []string{cred.Password}}
	if err := cl.call(ctx, "com.atproto.server.createSession", "application/json", body, &answer); err != nil {
		return cred, refusedSignIn(err)
	}
	return cred.withSession(answer)
}

func refreshSession(ctx context.Context, env connector.Env, cred credential) (credential, error) {
	var answer session
	cl := client{
		http: env.HTTP, clock: env.Clock, base: cred.Service, token: cred.RefreshJWT, secrets: []string{cred.Password},
	}
	if err := cl.call(ctx, "com.atproto.server.refreshSession", "", nil, &answer); err != nil {
		return cred, err
	}
	return cred.withSession(answer)
}

// withSession returns the credential with the session's tokens. It returns KindReauth if the
// session belongs to a different account, because a handle can move to another account. It returns
// KindDisconnect if the account is inactive.
func (cred credential) withSession(answer session) (credential, error) {
	if !strings.HasPrefix(answer.DID, "did:") || answer.AccessJWT == "" || answer.RefreshJWT == "" {
		return cred, badAnswer(http.StatusOK, errors.New("a session lacks its DID or a token"), false)
	}
	if cred.DID != "" && cred.DID != answer.DID {
		const public = "The stored name and app password now open a different account; reconnect the channel."
		return cred, &connector.Error{Kind: connector.KindReauth, Public: public}
	}
	if answer.Active != nil && !*answer.Active {
		const public = "This Bluesky account is not active; check its settings in Bluesky."
		return cred, &connector.Error{Kind: connector.KindDisconnect, Code: answer.Status, Public: public}
	}
	cred.DID, cred.Handle = answer.DID, answer.Handle
	cred.AccessJWT, cred.RefreshJWT = answer.AccessJWT, answer.RefreshJWT
	if server := serverOf(answer); server != "" {
		cred.Server = server
	}
	if cred.Server == "" {
		cred.Server = cred.Service
	}
	return cred, nil
}

// serverOf returns the server URL from the account's DID document, or "" if there is none. It
// ignores URLs that do not use https, because they may be valid only inside the server's own
// network.
func serverOf(answer session) string {
	var doc struct {
		ID      string
		Service []struct{ ID, Type, ServiceEndpoint string }
	}
	if len(answer.DIDDoc) == 0 || json.Unmarshal(answer.DIDDoc, &doc) != nil || doc.ID != answer.DID {
		return "" // requests then go through the service
	}
	for _, s := range doc.Service {
		if strings.TrimPrefix(s.ID, doc.ID) != "#atproto_pds" || s.Type != "AtprotoPersonalDataServer" {
			continue
		}
		base, err := parseService(s.ServiceEndpoint)
		if err != nil || !strings.HasPrefix(base, "https://") {
			continue
		}
		return base
	}
	return ""
}

// refusedSignIn rewords the public message for a rejected sign-in, because the usual message does
// not suit the connect form.
func refusedSignIn(err error) error {
	var e *connector.Error
	if !errors.As(err, &e) {
		return err
	}
	if e.Kind == connector.KindReauth && e.Code != "AuthFactorTokenRequired" {
		e.Public = "Bluesky does not accept this identifier and app password."
	}
	return e
}

// tooLarge rewords an error's public message if the server rejected a request as too large. The
// usual message mentions a post, but the connect form has none.
func tooLarge(err error) error {
	var e *connector.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Status {
	case http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong, http.StatusRequestHeaderFieldsTooLarge:
		e.Public = "The Bluesky server refuses this sign-in's requests as too large; ask whoever runs the server."
	}
	return err
}

// fetchAccount returns the account with the name and picture from its profile. If the account has
// no profile, its handle is used as the name.
func fetchAccount(ctx context.Context, env connector.Env, cred credential) (connector.Account, error) {
	out := connector.Account{
		ID: cred.DID, Name: cred.Handle, Profile: cred.Handle, Grade: publishing.GradeIdempotent,
		Destination: cred.destination(),
	}
	if !cred.hasHandle() {
		out.Name, out.Profile = cred.DID, cred.DID
	}
	var answer struct {
		Value struct {
			DisplayName string
			Avatar      blob
		}
	}
	query := url.Values{"repo": {cred.DID}, "collection": {"app.bsky.actor.profile"}, "rkey": {"self"}}
	err := cred.client(env).query(ctx, "com.atproto.repo.getRecord", query, &answer)
	if codeOf(err) == "RecordNotFound" {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	if name := strings.TrimSpace(answer.Value.DisplayName); name != "" {
		out.Name = name
	}
	if cid := answer.Value.Avatar.Ref.Link; cid != "" {
		query := url.Values{"did": {cred.DID}, "cid": {cid}}
		out.Picture = cred.Server + "/xrpc/com.atproto.sync.getBlob?" + query.Encode()
	}
	return out, nil
}

// hasHandle returns false if the server could not verify the account's handle. In that case, the
// server reports the handle as handle.invalid.
func (cred credential) hasHandle() bool { return cred.Handle != "" && cred.Handle != "handle.invalid" }

func readCredential(s *connector.Session) (credential, error) {
	var cred credential
	if err := json.Unmarshal(s.Credential, &cred); err != nil || cred.Service == "" || cred.DID == "" {
		const public = "The stored credentials cannot be read; reconnect the channel."
		return cred, &connector.Error{Kind: connector.KindReauth, Public: public}
	}
	return cred, nil
}

// destination returns both hosts on which publishing depends: the server that holds the repository
// and the service that refreshes the session. The service itself names the server. If destination
// returned only the server, a service could pose as any other destination.
func (cred credential) destination() string { return connector.Destination(cred.Server, cred.Service) }

// client returns an authenticated client for the server that holds the account's repository.
func (cred credential) client(env connector.Env) client {
	return client{
		http: env.HTTP, clock: env.Clock, base: cred.Server, token: cred.AccessJWT,
		secrets: []string{cred.RefreshJWT, cred.Password},
	}
}

// parseService returns the base URL of the service that a user typed, or the entryway if typed is
// empty. The scheme must be https, or http for a loopback address. The outbound guard decides which
// hosts may be reached.
func parseService(typed string) (string, error) {
	u, err := url.Parse(cmp.Or(strings.TrimSpace(typed), entryway))
	if err != nil {
		return "", badForm("The service is not a valid address.", err)
	}
	switch {
	case u.Host == "" || u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" ||
		u.RawQuery != "" || u.Fragment != "":
		return "", badForm("The service must be an address like https://bsky.social, with nothing after the host.", nil)
	case u.Scheme == "https", u.Scheme == "http" && loopback(u.Hostname()):
		return u.Scheme + "://" + strings.ToLower(u.Host), nil
	}
	return "", badForm("The service must begin with https://.", nil)
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

func badForm(public string, err error) *connector.Error {
	return &connector.Error{Kind: connector.KindContent, Public: public, Err: err}
}

// identifierOf extracts the handle, DID or email address from pasted text. Users often paste a
// handle with its @, or a profile URL.
func identifierOf(pasted string) string {
	word := paste.Word(pasted)
	for _, before := range []string{"https://", "http://", "bsky.app/profile/", "at://", "@"} {
		word = strings.TrimPrefix(word, before)
	}
	return strings.TrimSuffix(word, "/")
}

var appPasswordForm = regexp.MustCompile(`^[a-z0-9]{4}(-[a-z0-9]{4}){3}$`)

// appPassword extracts an app password from pasted text. It returns any other password unchanged,
// because it may contain any kind of space or dash.
func appPassword(pasted string) string {
	if word := paste.Word(pasted); appPasswordForm.MatchString(word) {
		return word
	}
	return pasted
}
