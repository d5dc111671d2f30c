package bluesky

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"crier/publishing"
	"crier/publishing/connector"
)

// credential is what the engine seals.
type credential struct {
	Service    string `json:"service"` // signs in and refreshes
	Server     string `json:"server"`  // holds the repository
	Identifier string `json:"identifier"`
	Password   string `json:"password"` // app password
	DID        string `json:"did"`
	Handle     string `json:"handle"`
	AccessJWT  string `json:"accessJwt"`
	RefreshJWT string `json:"refreshJwt"`
}

// session is the server's answer to a sign-in and to a refresh.
type session struct {
	DID        string          `json:"did"`
	Handle     string          `json:"handle"`
	AccessJWT  string          `json:"accessJwt"`
	RefreshJWT string          `json:"refreshJwt"`
	DIDDoc     json.RawMessage `json:"didDoc"`
	Active     *bool           `json:"active"`
	Status     string          `json:"status"`
}

// Connect signs in and tells whose account it is.
func (c *Connector) Connect(ctx context.Context, env connector.Env, fields map[string]string) (connector.Connected, error) {
	base, err := service(fields["service"])
	if err != nil {
		return connector.Connected{}, err
	}
	cred := credential{Service: base, Identifier: strings.TrimPrefix(strings.TrimSpace(fields["identifier"]), "@"), Password: fields["password"]}
	if cred.Identifier == "" || cred.Password == "" {
		return connector.Connected{}, badForm("Type in your handle and an app password.", nil)
	}
	cred, err = signIn(ctx, env, cred)
	if connector.WrongAddress(err) {
		return connector.Connected{}, badForm("This address does not answer like a Bluesky service.", err)
	}
	if err != nil {
		return connector.Connected{}, tooLarge(err)
	}
	account, err := account(ctx, env, cred)
	if err != nil {
		return connector.Connected{}, tooLarge(err)
	}
	raw, err := json.Marshal(cred)
	return connector.Connected{Account: account, Credential: raw}, err
}

// Refresh exchanges the refresh token, which dies by that, and signs in anew only when the server does not take it: sign-ins are few a day.
func (c *Connector) Refresh(ctx context.Context, s *connector.Session) (connector.Refreshed, error) {
	cred, err := readCredential(s)
	if err != nil {
		return connector.Refreshed{}, err
	}
	fresh, err := rotate(ctx, s.Env, cred)
	if err != nil && connector.KindOf(err, false) == connector.KindReauth {
		fresh, err = signIn(ctx, s.Env, cred)
	}
	if err != nil {
		return connector.Refreshed{}, err
	}
	raw, err := json.Marshal(fresh)
	return connector.Refreshed{Credential: raw, Destination: fresh.destination()}, err
}

func signIn(ctx context.Context, env connector.Env, cred credential) (credential, error) {
	body, err := json.Marshal(map[string]string{"identifier": cred.Identifier, "password": cred.Password})
	if err != nil {
		return cred, badForm("The identifier or the app password cannot be sent.", err)
	}
	var said session
	cl := client{http: env.HTTP, clock: env.Clock, base: cred.Service, secrets: []string{cred.Password}}
	if err := cl.call(ctx, "com.atproto.server.createSession", "application/json", body, &said); err != nil {
		return cred, refusedSignIn(err)
	}
	return cred.renewed(said)
}

func rotate(ctx context.Context, env connector.Env, cred credential) (credential, error) {
	var said session
	cl := client{http: env.HTTP, clock: env.Clock, base: cred.Service, token: cred.RefreshJWT, secrets: []string{cred.Password}}
	if err := cl.call(ctx, "com.atproto.server.refreshSession", "", nil, &said); err != nil {
		return cred, err
	}
	return cred.renewed(said)
}

// renewed takes over what a session says. A session of another account is refused: a handle may change hands.
func (cred credential) renewed(said session) (credential, error) {
	if !strings.HasPrefix(said.DID, "did:") || said.AccessJWT == "" || said.RefreshJWT == "" {
		return cred, unreadable(http.StatusOK, errors.New("a session lacks its DID or a token"), false)
	}
	if cred.DID != "" && cred.DID != said.DID {
		return cred, &connector.Error{Kind: connector.KindReauth, Public: "The stored name and app password now open another account; reconnect the channel."}
	}
	if said.Active != nil && !*said.Active {
		return cred, &connector.Error{Kind: connector.KindDisconnect, Code: said.Status, Public: "This Bluesky account is not active; look into its settings in Bluesky."}
	}
	cred.DID, cred.Handle, cred.AccessJWT, cred.RefreshJWT = said.DID, said.Handle, said.AccessJWT, said.RefreshJWT
	if server := serverOf(said); server != "" {
		cred.Server = server
	}
	if cred.Server == "" {
		cred.Server = cred.Service
	}
	return cred, nil
}

// serverOf is the server that the DID document names, or "". What is not https is for the server's own network, so the typed address stays.
func serverOf(said session) string {
	var doc struct {
		ID      string
		Service []struct{ ID, Type, ServiceEndpoint string }
	}
	if len(said.DIDDoc) == 0 || json.Unmarshal(said.DIDDoc, &doc) != nil || doc.ID != said.DID {
		return "" // an unusable document only costs the shorter way
	}
	for _, s := range doc.Service {
		if strings.TrimPrefix(s.ID, doc.ID) != "#atproto_pds" || s.Type != "AtprotoPersonalDataServer" {
			continue
		}
		if base, err := service(s.ServiceEndpoint); err == nil && strings.HasPrefix(base, "https://") {
			return base
		}
	}
	return ""
}

// refusedSignIn puts what Connect and Refresh meet into words for the person at the form.
func refusedSignIn(err error) error {
	var e *connector.Error
	if !errors.As(err, &e) {
		return err
	}
	if e.Kind == connector.KindReauth && e.Code != "AuthFactorTokenRequired" {
		e.Public = "Bluesky does not know this identifier and app password."
	}
	return e
}

// tooLarge gives a request that its server finds too large the words of a connect, in which there is no post.
func tooLarge(err error) error {
	var e *connector.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Status {
	case http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong, http.StatusRequestHeaderFieldsTooLarge:
		e.Public = "The Bluesky server refuses the requests of this sign-in as too large; ask whoever runs the server."
	}
	return err
}

// account reads name and picture from the profile's record; an account without a profile goes by its handle.
func account(ctx context.Context, env connector.Env, cred credential) (connector.Account, error) {
	out := connector.Account{
		ID: cred.DID, Name: cred.Handle, Profile: cred.Handle, Grade: publishing.GradeIdempotent,
		Destination: cred.destination(),
	}
	if out.Name == "" {
		out.Name = cred.DID
	}
	var said struct {
		Value struct {
			DisplayName string
			Avatar      blob
		}
	}
	query := url.Values{"repo": {cred.DID}, "collection": {"app.bsky.actor.profile"}, "rkey": {"self"}}
	err := cred.client(env).query(ctx, "com.atproto.repo.getRecord", query, &said)
	if codeOf(err) == "RecordNotFound" {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	if name := strings.TrimSpace(said.Value.DisplayName); name != "" {
		out.Name = name
	}
	if cid := said.Value.Avatar.Ref.Link; cid != "" {
		out.Picture = cred.Server + "/xrpc/com.atproto.sync.getBlob?" + url.Values{"did": {cred.DID}, "cid": {cid}}.Encode()
	}
	return out, nil
}

func readCredential(s *connector.Session) (credential, error) {
	var cred credential
	if err := json.Unmarshal(s.Credential, &cred); err != nil || cred.Service == "" || cred.DID == "" {
		return cred, &connector.Error{Kind: connector.KindReauth, Public: "The stored access cannot be read; reconnect the channel."}
	}
	return cred, nil
}

// destination names both hosts that a post may wait for: the one that holds the repository and the one that refreshes
// the session. The first is named by the second, so that alone a service could hang under the name of any other.
func (cred credential) destination() string { return connector.Destination(cred.Server, cred.Service) }

// client calls the account's own server under its access token.
func (cred credential) client(env connector.Env) client {
	return client{http: env.HTTP, clock: env.Clock, base: cred.Server, token: cred.AccessJWT, secrets: []string{cred.RefreshJWT, cred.Password}}
}

// service checks an address: https, or http on this machine. The outbound guard decides what can be reached.
func service(typed string) (string, error) {
	if typed = strings.TrimSpace(typed); typed == "" {
		typed = entryway
	}
	u, err := url.Parse(typed)
	if err != nil {
		return "", badForm("The service is not an address.", err)
	}
	switch {
	case u.Host == "" || u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
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
