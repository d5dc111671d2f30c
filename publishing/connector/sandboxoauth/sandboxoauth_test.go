package sandboxoauth_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	platform "crier/apps/sim/sandbox"
	"crier/platform/clock"
	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/connector/conformance"
	"crier/publishing/connector/sandboxoauth"
)

const callback = "https://crier.test/connect/sandbox-oauth"

var app = connector.App{ClientID: "the-client", Secret: "the secret of the client"}

// world is a simulated platform that listens on a port.
type rig struct {
	handler http.Handler
	url     string
	host    string
}

func open(t *testing.T) *rig {
	t.Helper()
	p, err := platform.Open(t.TempDir(), platform.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.AddApp(platform.App{ClientID: app.ClientID, Secret: app.Secret, Redirects: []string{callback}}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(p.Handler())
	t.Cleanup(func() {
		server.Close()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return &rig{handler: p.Handler(), url: server.URL, host: server.Listener.Addr().String()}
}

func (w *rig) connector() connector.Connector {
	return sandboxoauth.New(sandboxoauth.Config{URL: w.url})
}

// call calls the platform without the connector.
func (w *rig) call(t *testing.T, method, address, contentType, body string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequest(method, address, strings.NewReader(body))
	req.Header.Set("Content-Type", contentType)
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, req)
	if rec.Code > 399 {
		t.Fatalf("%s %s: got %d %s, want a success", method, address, rec.Code, rec.Body)
	}
	return rec
}

// consent submits the form of the consent page as the user ada.
func (w *rig) consent(t *testing.T, address string, decision conformance.Decision) string {
	t.Helper()
	if page := w.call(t, http.MethodGet, address, "", "").Body.String(); !strings.Contains(page, "<form") {
		t.Fatalf("the consent page has no form: %s", page)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	form := u.Query()
	form["allow"], form["user"], form["decision"] = []string{"publish", "insights"}, []string{"ada"}, []string{"allow"}
	switch decision {
	case conformance.Deny:
		form.Set("decision", "deny")
	case conformance.Withhold:
		form["allow"] = []string{"insights"}
	}
	u.RawQuery = ""
	return w.call(t, http.MethodPost, u.String(), "application/x-www-form-urlencoded", form.Encode()).Header().Get("Location")
}

func (w *rig) published(t *testing.T, account connector.Account) []conformance.Seen {
	t.Helper()
	var all struct {
		Posts []struct {
			ID      string
			Text    string
			ReplyTo string
			Media   []struct{ Alt, SHA256 string }
		}
	}
	answer := w.call(t, http.MethodGet, w.url+"/_sim/posts?account="+account.Name, "", "")
	if err := json.Unmarshal(answer.Body.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	var out []conformance.Seen
	for _, p := range all.Posts {
		seen := conformance.Seen{ID: p.ID, Text: p.Text, Parent: p.ReplyTo}
		for _, m := range p.Media {
			seen.Alts, seen.MediaSHA256 = append(seen.Alts, m.Alt), append(seen.MediaSHA256, m.SHA256)
		}
		out = append(out, seen)
	}
	return out
}

func TestConnector_Conforms(t *testing.T) {
	t.Parallel()
	w := open(t)
	conformance.Run(t, conformance.Suite{
		New: w.connector, Allow: []string{w.host}, Published: w.published,
		Grade: publishing.GradeIdempotent, KeyOnly: true, Settings: json.RawMessage(`{"topic":"cats"}`),
		OAuth: &conformance.OAuth{
			App: app, RedirectURI: callback, Consent: w.consent,
			Revoke: func(t *testing.T) {
				w.call(t, http.MethodPost, w.url+"/_sim/oauth/revoke", "application/json", `{"user":"ada"}`)
			},
		},
	})
}

// connected returns a session for the first page that a consent offers.
func (w *rig) connected(t *testing.T) *connector.Session {
	t.Helper()
	const verifier = "0123456789012345678901234567890123456789012345"
	sum := sha256.Sum256([]byte(verifier))
	c := sandboxoauth.New(sandboxoauth.Config{URL: w.url})
	env := connector.Env{HTTP: conformance.NewLine(t, w.host), Clock: clock.System{}}
	address, err := c.AuthorizeURL(connector.Authorization{
		App: app, RedirectURI: callback, State: "state", Challenge: base64.RawURLEncoding.EncodeToString(sum[:]),
	})
	if err != nil {
		t.Fatal(err)
	}
	back, err := url.Parse(w.consent(t, address, conformance.Allow))
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Exchange(t.Context(), env, app, connector.Code{
		Code: back.Query().Get("code"), Verifier: verifier, RedirectURI: callback,
	})
	if err != nil {
		t.Fatal(err)
	}
	done, err := c.Select(t.Context(), env, app, got.Credential, got.Candidates[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	return &connector.Session{Env: env, Account: done.Account, Credential: done.Credential, App: app}
}

func TestRead_ToolsListAndStatistics(t *testing.T) {
	t.Parallel()
	w := open(t)
	s := w.connected(t)
	registry, err := connector.NewRegistry(w.connector())
	if err != nil {
		t.Fatal(err)
	}
	c, _ := registry.Get("sandbox-oauth")
	want := []connector.Ability{
		connector.AbilityOAuth, connector.AbilityRefresh, connector.AbilityAnalytics,
		connector.AbilityTools, connector.AbilityList,
	}
	if got := connector.Abilities(c); !slices.Equal(got, want) {
		t.Errorf("got the abilities %v, want %v", got, want)
	}
	tools, _ := connector.ToolBoxOf(c)
	out, err := tools.Call(t.Context(), s, "topics", map[string]any{"query": "ca"})
	if err != nil || string(out) != `[{"id":"cats","name":"Cats"},{"id":"cars","name":"Cars"}]` {
		t.Errorf("the tool returned %s (%v), want two topics", out, err)
	}
	item := connector.Item{
		Publication: id.New[publishing.PublicationTag](), Text: "Hello", Settings: json.RawMessage(`{"topic":"cats"}`),
	}
	ref, err := conformance.Publish(t.Context(), c, s, item)
	if err != nil {
		t.Fatal(err)
	}
	lister, _ := connector.ListerOf(c)
	recent, err := lister.Recent(t.Context(), s, 10)
	if err != nil || len(recent) != 1 || recent[0] != (connector.RemoteItem{ID: ref.ID, URL: ref.URL}) {
		t.Errorf("the recent items are %v (%v), want the post %v", recent, err, ref)
	}
	analyst, _ := connector.AnalystOf(c)
	until := s.Clock.Now()
	series, err := analyst.Channel(t.Context(), s, until.AddDate(0, 0, -6), until)
	if err != nil || len(series) != 3 || len(series[0].Points) != 7 || !series[0].Level {
		t.Errorf("the statistics of the page are %+v (%v), want three series of a week", series, err)
	}
	series, err = analyst.Post(t.Context(), s, ref, until, until)
	if err != nil || len(series) != 2 {
		t.Errorf("the statistics of the post are %+v (%v), want two series", series, err)
	}
}

// A platform may accept a post without naming its id. The post is published then, and its release
// is missing.
func TestCommit_LostIDIsNotAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	w := open(t)
	s := w.connected(t)
	w.call(t, http.MethodPost, w.url+"/_sim/faults", "application/json", `{"action":"lose_id"}`)
	item := connector.Item{Publication: id.New[publishing.PublicationTag](), Text: "Hello"}
	ref, err := conformance.Publish(t.Context(), w.connector(), s, item)
	if err != nil || ref.ID != "" {
		t.Errorf("got %v (%v), want an empty Ref", ref, err)
	}
	if n := len(w.published(t, s.Account)); n != 1 {
		t.Errorf("the platform has %d posts, want 1", n)
	}
}
