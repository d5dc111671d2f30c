// Package sandboxoauth is the connector for pages on the simulated platform in apps/sim/sandbox.
// Pages are connected by OAuth 2. With this connector, tests can cover OAuth, page selection, token
// rotation, statistics and tools without an account on a real platform.
package sandboxoauth

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/connector/sandbox"
)

// Config configures access to the sandbox.
type Config struct {
	// URL is the sandbox's base URL. Example: http://127.0.0.1:4009
	URL string
	// HTTP is the client for URL. If it is nil, the Env's or Session's client is used.
	HTTP connector.HTTP
}

// Connector publishes to pages on a sandbox. It implements connector.Connector and every optional
// interface except connector.Deriver.
type Connector struct {
	url   string
	http  connector.HTTP
	posts *sandbox.Connector
}

// New returns a Connector. It does no I/O.
func New(cfg Config) *Connector {
	return &Connector{
		url: strings.TrimRight(cfg.URL, "/"), http: cfg.HTTP,
		posts: sandbox.New(sandbox.Config{URL: cfg.URL, HTTP: cfg.HTTP}),
	}
}

var (
	_ connector.Connector  = (*Connector)(nil)
	_ connector.Authorizer = (*Connector)(nil)
	_ connector.Refresher  = (*Connector)(nil)
	_ connector.ToolBox    = (*Connector)(nil)
	_ connector.Lister     = (*Connector)(nil)
	_ connector.Analyst    = (*Connector)(nil)
)

// refreshLead is a twelfth of a sandbox access token's lifetime.
const refreshLead = 5 * time.Minute

// Describe returns the sandbox connector's descriptor, adapted for pages and without form fields.
func (c *Connector) Describe() connector.Descriptor {
	d := c.posts.Describe()
	d.ID, d.Name = "sandbox-oauth", "Sandbox page"
	d.ToolTip = "A page on a pretend platform, connected by OAuth: nothing leaves this instance."
	d.Fields, d.RefreshLead = nil, refreshLead
	d.Settings = json.RawMessage(`{"type":"object","properties":{"topic":{"type":"string","description":` +
		`"ID of a topic, from the topics tool."}},"additionalProperties":true}`)
	d.Rules = "Plain text of up to 500 characters and up to 4 PNG, JPEG, GIF or MP4 files, with an optional topic. " +
		"Threads are chains of replies. Nothing is really published."
	return d
}

// Family returns the sandbox's family of application credentials.
func (c *Connector) Family() connector.Family {
	return connector.Family{ID: "sandbox-oauth", Name: "Sandbox"}
}

// Connect returns KindContent, because pages are connected by OAuth.
func (c *Connector) Connect(context.Context, connector.Env, map[string]string) (connector.Connected, error) {
	return connector.Connected{}, &connector.Error{
		Kind: connector.KindContent, Public: "A sandbox page is connected on the page of the sandbox, not with a form.",
	}
}

// required maps the permissions that the connector needs to the words shown to users.
var required = map[string]string{
	"publish":  "publish to your pages",
	"insights": "read the statistics of your pages",
}

// AuthorizeURL returns the URL of the consent page.
func (c *Connector) AuthorizeURL(r connector.Authorization) (string, error) {
	q := url.Values{
		"client_id": {r.App.ClientID}, "redirect_uri": {r.RedirectURI}, "response_type": {"code"}, "state": {r.State},
		"code_challenge": {r.Challenge}, "code_challenge_method": {"S256"}, "scope": {"publish insights"},
	}
	return c.url + "/oauth/authorize?" + q.Encode(), nil
}

// Exchange redeems the code and returns the user's pages as candidates.
func (c *Connector) Exchange(
	ctx context.Context, env connector.Env, app connector.App, code connector.Code,
) (connector.Authorized, error) {
	cl := c.client(env.HTTP, c.url)
	t, err := cl.token(ctx, app, url.Values{
		"grant_type": {"authorization_code"}, "code": {code.Code}, "code_verifier": {code.Verifier},
		"redirect_uri": {code.RedirectURI},
	})
	if err != nil {
		return connector.Authorized{}, refused(err, connector.KindContent, "The sandbox does not accept this sign-in; start over.")
	}
	if missing := missingFrom(t.Scope); len(missing) > 0 {
		return connector.Authorized{Missing: missing}, nil
	}
	cred := c.credentialOf(t, env.Clock.Now())
	cl.access = cred.AccessToken
	var list struct {
		Pages []page `json:"pages"`
	}
	if err := cl.get(ctx, "/api/oauth/pages", &list); err != nil {
		return connector.Authorized{}, err
	}
	out := connector.Authorized{}
	for _, p := range list.Pages {
		out.Candidates = append(out.Candidates, connector.Candidate{ID: p.ID, Name: p.Name, Picture: p.Picture})
	}
	out.Credential, err = json.Marshal(cred)
	return out, err
}

func missingFrom(scope string) []string {
	given := strings.Fields(scope)
	var out []string
	for name, words := range required {
		if !slices.Contains(given, name) {
			out = append(out, words)
		}
	}
	slices.Sort(out)
	return out
}

// Select binds the credential to one of the user's pages and returns the page as the account. If
// the access token has expired since Exchange, Select refreshes it first.
func (c *Connector) Select(
	ctx context.Context, env connector.Env, app connector.App, credential json.RawMessage, candidate string,
) (connector.Connected, error) {
	cred, err := parseCredential(credential)
	if err != nil {
		return connector.Connected{}, err
	}
	cl := c.client(env.HTTP, cred.Service)
	if !env.Clock.Now().Before(cred.ExpiresAt) {
		cred, err = c.rotate(ctx, cl, app, cred, env.Clock.Now())
		if err != nil {
			return connector.Connected{}, err
		}
	}
	cl.access = cred.AccessToken
	var p page
	if err := cl.post(ctx, "/api/oauth/page", map[string]string{"page": candidate}, &p); err != nil {
		return connector.Connected{}, err
	}
	if p.ID == "" || !publishing.Grade(p.Grade).Valid() {
		return connector.Connected{}, unusable(nil)
	}
	data, err := json.Marshal(map[string]int{"maxLength": p.MaxLength})
	if err != nil {
		return connector.Connected{}, err
	}
	raw, err := json.Marshal(cred)
	return connector.Connected{
		Account: connector.Account{
			ID: p.ID, Name: p.Name, Profile: p.Name, Picture: p.Picture, Data: data,
			Grade: publishing.Grade(p.Grade), Destination: connector.Destination(cred.Service),
		},
		Credential: raw, ExpiresAt: cred.ExpiresAt,
	}, err
}

// Refresh rotates the tokens. It returns KindReauth if the user's consent was revoked or if the
// refresh token was already used.
func (c *Connector) Refresh(ctx context.Context, s *connector.Session) (connector.Refreshed, error) {
	cred, err := parseCredential(s.Credential)
	if err != nil {
		return connector.Refreshed{}, err
	}
	cred, err = c.rotate(ctx, c.client(s.HTTP, cred.Service), s.App, cred, s.Clock.Now())
	if err != nil {
		return connector.Refreshed{}, err
	}
	raw, err := json.Marshal(cred)
	return connector.Refreshed{
		Credential: raw, Destination: connector.Destination(cred.Service), ExpiresAt: cred.ExpiresAt,
	}, err
}

func (c *Connector) rotate(
	ctx context.Context, cl client, app connector.App, cred credential, now time.Time,
) (credential, error) {
	t, err := cl.token(ctx, app, url.Values{
		"grant_type": {"refresh_token"}, "refresh_token": {cred.RefreshToken},
	})
	if err != nil {
		return credential{}, refused(err, connector.KindReauth, "The sandbox no longer accepts this channel's credentials; reconnect the channel.")
	}
	fresh := c.credentialOf(t, now)
	fresh.Service = cred.Service
	return fresh, nil
}

// Validate applies the platform's rules and the page's own length limit, and checks that the topic
// is a string.
func (c *Connector) Validate(draft connector.Draft) []connector.Problem {
	out := c.posts.Validate(draft)
	for i := range out {
		out[i].Message = strings.ReplaceAll(out[i].Message, "Sandbox accepts", "Sandbox page accepts")
	}
	var settings struct {
		Topic any `json:"topic"`
	}
	if len(draft.Settings) == 0 || json.Unmarshal(draft.Settings, &settings) != nil || settings.Topic == nil {
		return out
	}
	if _, ok := settings.Topic.(string); !ok {
		out = append(out, connector.Problem{Settings: true, Message: "The topic setting must be a string."})
	}
	return out
}

// Prepare calls the sandbox connector's Prepare.
func (c *Connector) Prepare(ctx context.Context, s *connector.Session, item connector.Item) (connector.Step, error) {
	return c.posts.Prepare(ctx, s, item)
}

// Commit calls the sandbox connector's Commit.
func (c *Connector) Commit(ctx context.Context, s *connector.Session, item connector.Item) (connector.Ref, error) {
	return c.posts.Commit(ctx, s, item)
}

// Reconcile calls the sandbox connector's Reconcile.
func (c *Connector) Reconcile(
	ctx context.Context, s *connector.Session, item connector.Item,
) (connector.Verdict, error) {
	return c.posts.Reconcile(ctx, s, item)
}
