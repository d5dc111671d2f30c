package edgetest

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"crier/apps/edge"
	"crier/apps/edge/oauth"
	"crier/oidc"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/secret"
	"crier/tenancy"
)

// The access tokens of agents that act for Ada; see Agents.
const (
	WriterToken    = "cra_writer"
	ReaderToken    = "cra_reader"
	SuspendedToken = "cra_suspended"
)

// UserCode is the only code of a device that waits for an answer.
const UserCode = "BCDF-GHJK"

// OAuthServer is the state of the fakes behind the OAuth server's endpoints. Its fields may be
// changed before the first request.
type OAuthServer struct {
	*World
	mu sync.Mutex
	// Known holds the clients by their ids on the wire.
	Known map[string]oidc.Client
	// Documents holds clients whose documents have changed since Find fetched them.
	Documents map[string]oidc.Client
	// Consents holds what was approved, and Denied the codes of devices that were denied.
	Consents []oidc.Consent
	Denied   []string
	// By holds the principal of each consent.
	By []tenancy.Principal
	// Granted holds what people have approved before.
	Granted []oidc.Grant
	// Registered holds what clients have said of themselves.
	Registered []oidc.Metadata
	// Forms holds the requests to the token endpoints, as "path form".
	Forms []string
	// Proofs holds the passwords of proofs.
	Proofs []string
	// Started holds the client ids of device log-ins, and DeviceClient is the id of the client that
	// DeviceRequest returns.
	Started      []string
	DeviceClient string
	// Refusal, if set, is returned by Approve.
	Refusal error
}

// NewOAuth serves an edge with an OAuth server until the test ends. change may replace its ports.
func NewOAuth(t testing.TB, vars map[string]string, change ...func(*edge.Deps)) (*Service, *OAuthServer) {
	t.Helper()
	o := &OAuthServer{Known: Clients(), DeviceClient: "ccl_public"}
	s := New(t, vars, append([]func(*edge.Deps){func(d *edge.Deps) { d.OAuth = o.Ports() }}, change...)...)
	o.World = s.World
	return s, o
}

// Ports returns the ports of the fakes.
func (o *OAuthServer) Ports() oauth.Ports {
	return oauth.Ports{
		Clients: o, Grants: oauthGrants{OAuthServer: o}, Apps: o, Devices: o, Tokens: http.HandlerFunc(o.serveToken),
		Prover:    o,
		Providers: []oauth.Provider{{ID: "GITHUB", Label: "GitHub"}},
	}
}

// Clients returns a public client that has registered, one that has a document, and the
// confidential application of the organization.
func Clients() map[string]oidc.Client {
	return map[string]oidc.Client{
		"ccl_public": {
			ID: id.New[tenancy.AgentTag](), ClientID: "ccl_public", Kind: oidc.ClientRegistered, Name: "Planner",
			RedirectURIs: []string{"https://planner.test/callback?from=crier", "http://127.0.0.1/callback", "cursor://planner/callback"},
			Auth:         oidc.AuthNone, Scopes: oidc.AllScopes(),
		},
		"https://writer.test/client.json": {
			ID: id.New[tenancy.AgentTag](), ClientID: "https://writer.test/client.json", Kind: oidc.ClientDocument,
			Name: "Writer", URI: "https://www.writer.test/", RedirectURIs: []string{"https://writer.test/callback"},
			Auth: oidc.AuthNone, Scopes: oidc.AllScopes(),
		},
		"ccl_static": {
			ID: id.New[tenancy.AgentTag](), ClientID: "ccl_static", Kind: oidc.ClientStatic, Name: "Newsroom",
			RedirectURIs: []string{"https://newsroom.test/callback"}, Auth: oidc.AuthPost, Scopes: oidc.AllScopes(),
			Org: OrgID,
		},
	}
}

// Agents returns the principal of each access token: one that may write, one that may only read,
// and one whose organization is suspended.
func Agents() map[string]tenancy.Principal {
	with := func(write bool, access tenancy.Access) tenancy.Principal {
		return tenancy.Principal{
			Org: OrgID, Person: PersonID, Role: tenancy.RoleUser, Via: tenancy.ViaAgent, Access: access, Name: Ada,
			Agent: tenancy.Agent{ID: id.New[tenancy.AgentTag](), Grant: id.New[tenancy.GrantTag](), Name: "Planner", Write: write},
		}
	}
	return map[string]tenancy.Principal{
		WriterToken: with(true, tenancy.AccessFull), ReaderToken: with(false, tenancy.AccessFull),
		SuspendedToken: with(true, tenancy.AccessSuspended),
	}
}

// AGrant returns what Ada has approved for the client with a document.
func AGrant() oidc.Grant {
	return oidc.Grant{
		ID: id.New[tenancy.GrantTag](), Org: OrgID, OrgName: "Acme",
		Client: Clients()["https://writer.test/client.json"],
		Person: PersonID, Email: Ada, Scopes: oidc.AllScopes(), Limits: oidc.Limits{MustAsk: true, PostsPerDay: 3},
		Created: Day,
	}
}

// Find implements the port of clients.
func (o *OAuthServer) Find(_ context.Context, clientID string, _ tenancy.Source) (oidc.Client, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c, ok := o.Known[clientID]
	if !ok {
		return c, oidc.Fail(oidc.InvalidClient, "This service does not know the client.")
	}
	return c, nil
}

// Refetch implements the port of clients.
func (o *OAuthServer) Refetch(ctx context.Context, clientID string, from tenancy.Source) (oidc.Client, error) {
	o.mu.Lock()
	c, ok := o.Documents[clientID]
	o.mu.Unlock()
	if ok {
		return c, nil
	}
	return o.Find(ctx, clientID, from)
}

// SetClient changes a client, as a new version of its document would.
func (o *OAuthServer) SetClient(c oidc.Client) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Known[c.ClientID] = c
}

// Register implements the port of clients. It refuses a redirect URI with the scheme javascript.
func (o *OAuthServer) Register(_ context.Context, m oidc.Metadata, _ tenancy.Source) (oidc.Registration, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Registered = append(o.Registered, m)
	switch {
	case len(m.RedirectURIs) == 0:
		return oidc.Registration{}, oidc.Fail(oidc.InvalidRedirectURI, "The client needs a redirect URI.")
	case m.Name == "flood":
		return oidc.Registration{}, &fault.Error{Kind: fault.RateLimited, Op: "fake", RetryAfter: time.Minute}
	}
	r := oidc.Registration{Client: Clients()["ccl_public"], IssuedAt: Day}
	r.Name, r.RedirectURIs = m.Name, m.RedirectURIs
	if m.Auth == string(oidc.AuthBasic) {
		r.Auth, r.Secret = oidc.AuthBasic, "ccs_secret"
	}
	return r, nil
}

// ProveLately implements the port of proofs. The password must be "right".
func (o *OAuthServer) ProveLately(_ context.Context, _ string, _ tenancy.Principal, proof tenancy.Proof) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Proofs = append(o.Proofs, proof.Password)
	return prove(proof.Password)
}

// App implements the port of applications.
func (o *OAuthServer) App(context.Context, tenancy.Principal) (oidc.App, error) {
	return oidc.App{Client: Clients()["ccl_static"], Description: "Writes news.", CreatedAt: Day}, nil
}

// CreateApp implements the port of applications.
func (o *OAuthServer) CreateApp(_ context.Context, _ tenancy.Principal, a oidc.App) (oidc.App, string, error) {
	a.ClientID, a.CreatedAt = "ccl_new", Day
	return a, "ccs_new", nil
}

// UpdateApp implements the port of applications.
func (o *OAuthServer) UpdateApp(_ context.Context, _ tenancy.Principal, a oidc.App) (oidc.App, error) {
	a.ClientID, a.CreatedAt = "ccl_static", Day
	return a, nil
}

// DeleteApp implements the port of applications.
func (o *OAuthServer) DeleteApp(context.Context, tenancy.Principal) error { return o.note("DeleteApp") }

// RotateAppSecret implements the port of applications.
func (o *OAuthServer) RotateAppSecret(context.Context, tenancy.Principal) (string, error) {
	return "ccs_rotated", nil
}

// StartDevice implements the port of devices.
func (o *OAuthServer) StartDevice(_ context.Context, clientID string, scopes oidc.Scopes, _ tenancy.Source) (oidc.Device, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Started = append(o.Started, clientID)
	if clientID == "unknown" || clientID == "" {
		return oidc.Device{}, oidc.Fail(oidc.InvalidClient, "This service does not know the client.")
	}
	return oidc.Device{Code: "crd_device", UserCode: UserCode, Expires: oidc.DeviceLife, Interval: 5 * time.Second}, nil
}

// DeviceRequest implements the port of devices.
func (o *OAuthServer) DeviceRequest(
	_ context.Context, _ tenancy.Principal, userCode string,
) (oidc.AuthorizationRequest, error) {
	if userCode != UserCode {
		return oidc.AuthorizationRequest{}, fault.New(fault.NotFound, "fake", "There is no such code.")
	}
	return oidc.AuthorizationRequest{Client: o.Known[o.DeviceClient], Scopes: oidc.AllScopes()}, nil
}

// AnswerDevice implements the port of devices.
func (o *OAuthServer) AnswerDevice(_ context.Context, p tenancy.Principal, userCode string, c *oidc.Consent) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c == nil {
		o.Denied = append(o.Denied, userCode)
		return nil
	}
	o.Consents, o.By = append(o.Consents, *c), append(o.By, p)
	return nil
}

// PollDevice implements the port of devices. The person has approved once there is a consent.
func (o *OAuthServer) PollDevice(_ context.Context, deviceCode string) (oidc.Tokens, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case deviceCode != "crd_device":
		return oidc.Tokens{}, oidc.Fail(oidc.ExpiredToken, "The code has expired.")
	case len(o.Consents) == 0:
		return oidc.Tokens{}, oidc.Fail(oidc.AuthorizationPending, "The person has not answered yet.")
	}
	return oidc.Tokens{
		Access: "cra_new", Refresh: "crt_new", ExpiresIn: time.Hour, Scopes: oidc.AllScopes(), Org: OrgID,
	}, nil
}

// serveToken stands for the token server. It records each form and fails for the grant type "bad".
func (o *OAuthServer) serveToken(w http.ResponseWriter, r *http.Request) {
	err := r.ParseForm()
	o.mu.Lock()
	defer o.mu.Unlock()
	_, hasDeadline := r.Context().Deadline()
	if err != nil || !hasDeadline {
		http.Error(w, "the request has no form or no deadline", http.StatusInternalServerError)
		return
	}
	o.Forms = append(o.Forms, r.URL.Path+" "+r.PostForm.Encode()+" "+r.Header.Get("Authorization"))
	w.Header().Set("Content-Type", "application/json")
	if r.PostForm.Get("grant_type") == "bad" {
		w.Header().Set("WWW-Authenticate", "Basic")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":"invalid_client"}`))
		return
	}
	_, _ = w.Write([]byte(`{"access_token":"cra_new"}`))
}

// oauthGrants implements the port of grants.
type oauthGrants struct{ *OAuthServer }

// Approve refuses a page's token that was used before.
func (o oauthGrants) Approve(_ context.Context, p tenancy.Principal, c oidc.Consent) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.Refusal != nil {
		return "", o.Refusal
	}
	if slices.ContainsFunc(o.Consents, func(other oidc.Consent) bool { return other.Token == c.Token }) {
		return "", fault.New(fault.Conflict, "fake", "The page was answered before.")
	}
	o.Consents, o.By = append(o.Consents, c), append(o.By, p)
	return "crc_code", nil
}

func (o oauthGrants) List(context.Context, tenancy.Principal) ([]oidc.Grant, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.Granted), nil
}

func (o oauthGrants) ListAll(ctx context.Context, p tenancy.Principal) ([]oidc.Grant, error) {
	return o.List(ctx, p)
}

func (o oauthGrants) Revoke(_ context.Context, _ tenancy.Principal, grant string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := len(o.Granted)
	o.Granted = slices.DeleteFunc(o.Granted, func(g oidc.Grant) bool { return g.ID.String() == grant })
	if len(o.Granted) == before {
		return fault.New(fault.NotFound, "fake", "There is no such grant.")
	}
	return nil
}

func (o oauthGrants) Authenticate(_ context.Context, accessToken string) (tenancy.Principal, error) {
	p, ok := Agents()[accessToken]
	if !ok {
		return p, fault.New(fault.Unauthenticated, "fake", "Invalid access token.")
	}
	return p, nil
}

func (o oauthGrants) AuthenticateHash(ctx context.Context, hash []byte) (tenancy.Principal, error) {
	for token := range Agents() {
		if bytes.Equal(hash, secret.HashToken(token)) {
			return o.Authenticate(ctx, token)
		}
	}
	return o.Authenticate(ctx, "")
}

func (o oauthGrants) UserInfo(ctx context.Context, accessToken string) (oidc.UserInfo, error) {
	p, err := o.Authenticate(ctx, accessToken)
	if err == nil && p.Access != tenancy.AccessFull {
		err = fault.New(fault.Forbidden, "fake", "The organization is suspended.")
	}
	return oidc.UserInfo{Person: PersonID, Email: Ada, Name: "Ada", Org: OrgID}, err
}
