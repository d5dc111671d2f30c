package analytics_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sandboxsim "crier/apps/sim/sandbox"
	"crier/publishing"
	"crier/publishing/access"
	channelstore "crier/publishing/channel/store"
	"crier/publishing/connector"
	"crier/publishing/connector/bluesky"
	"crier/publishing/connector/conformance"
	"crier/publishing/connector/sandboxoauth"
	"crier/tests/fixture"
	"crier/tests/pds"
	"crier/tests/sandboxtest"
)

// outage is an organization with a page of the sandbox and an account of a real Bluesky server.
// Both platforms can be made unavailable. The clock starts on March 10, 2027, except on the Bluesky
// server.
type outage struct {
	*analyticsRig
	away          atomic.Bool
	bluesky       *pds.Server
	page, account publishing.ChannelID
}

func newOutage(t *testing.T) *outage {
	t.Helper()
	o := &outage{analyticsRig: newAnalyticsRig(t), bluesky: pds.Start(t)}
	sim, err := sandboxsim.Open(t.TempDir(), sandboxsim.Options{Log: o.Logger, Clock: o.Deps.Clock})
	o.OK(err)
	const callback = "https://crier.test/connect/sandbox-oauth"
	app := connector.App{ClientID: "the-client", Secret: "the secret of the client"}
	o.OK(sim.AddApp(sandboxsim.App{ClientID: app.ClientID, Secret: app.Secret, Redirects: []string{callback}}))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o.away.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		sim.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.Close()
		o.OK(sim.Close())
	})
	line := conformance.NewLine(t, server.Listener.Addr().String(), strings.TrimPrefix(o.bluesky.URL, "http://"))
	pages := sandboxoauth.New(sandboxoauth.Config{URL: server.URL})
	o.Deps.Connectors = o.Registry(pages, bluesky.New())
	o.Deps.Access = access.New(access.Deps{
		DB: o.Store, Keyring: o.Keyring, Connectors: o.Deps.Connectors, HTTP: line, Clock: o.Deps.Clock, Log: o.Logger,
		Apps: map[string]connector.App{"sandbox-oauth": app}, Timeout: time.Minute,
	})
	o.analytics = o.process()
	env := connector.Env{HTTP: line, Clock: o.Deps.Clock}
	o.page = o.store("sandbox-oauth", app, connectPage(o, pages, env, app, callback, server.URL))
	account := o.bluesky.CreateAccount(t, "outage.test", "outage-outage")
	form := map[string]string{"service": o.bluesky.URL, "identifier": account.Handle, "password": account.Password}
	connected, err := bluesky.New().Connect(t.Context(), env, form)
	o.OK(err)
	o.account = o.store("bluesky", connector.App{}, connected)
	return o
}

// connectPage connects the first page of a user.
func connectPage(
	o *outage, pages *sandboxoauth.Connector, env connector.Env, app connector.App, callback, server string,
) connector.Connected {
	o.Helper()
	const verifier = "0123456789012345678901234567890123456789012345"
	sum := sha256.Sum256([]byte(verifier))
	address, err := pages.AuthorizeURL(connector.Authorization{
		App: app, RedirectURI: callback, State: "state", Challenge: base64.RawURLEncoding.EncodeToString(sum[:]),
	})
	o.OK(err)
	back, err := sandboxtest.Judge{URL: server}.Browse(o.Context(), address, sandboxtest.Consent{User: "ada"})
	o.OK(err)
	u, err := url.Parse(back)
	o.OK(err)
	code := connector.Code{Code: u.Query().Get("code"), Verifier: verifier, RedirectURI: callback}
	got, err := pages.Exchange(o.Context(), env, app, code)
	o.OK(err)
	connected, err := pages.Select(o.Context(), env, app, got.Credential, got.Candidates[0].ID)
	o.OK(err)
	return connected
}

// store stores an account as a channel.
func (o *outage) store(platform string, app connector.App, of connector.Connected) publishing.ChannelID {
	o.Helper()
	c := fixture.Channel(o.who.Org)
	c.Connector, c.Name, c.AccountID, c.Account = platform, of.Account.Name, of.Account.ID, of.Account.Data
	if c.Account == nil {
		c.Account = []byte(`{}`)
	}
	c.AppID = app.ClientID
	sealed, err := o.Keyring.Seal(of.Credential, o.who.Org.String())
	o.OK(err)
	stored, _, err := channelstore.ConnectChannel(o.Context(), o.Store, c, sealed, nil, nil)
	o.OK(err)
	return stored.ID
}

// setAway makes both platforms unavailable, or available again.
func (o *outage) setAway(away bool) {
	o.Helper()
	o.away.Store(away)
	o.bluesky.AppViewAway(o.T, away)
}

// days returns which of the last four days have a value of the channel's metric, such as "10 11".
func (o *outage) days(channel publishing.ChannelID, label string) string {
	o.Helper()
	out, err := o.analytics.Channel(o.Context(), o.who, publishing.GetAnalytics{Channel: channel.String(), Days: 4})
	o.OK(err)
	var days []string
	for _, m := range out.Metrics {
		for _, p := range m.Points {
			if m.Label == label {
				days = append(days, fmt.Sprint(p.Day.Day()))
			}
		}
	}
	return strings.Join(days, " ")
}

// latest returns the day of the figures that a request for today gets.
func (o *outage) latest(channel publishing.ChannelID) string {
	o.Helper()
	f, err := o.analytics.Figures(o.Context(), o.who, publishing.GetSamples{
		Channel: channel.String(), Day: publishing.DayOf(o.Deps.Clock.Now()),
	})
	o.OK(err)
	return f.Day.Format(time.DateOnly)
}

func TestOutage_ShowsLastFiguresAndRecovers(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	if n := o.snapshots(); n != 2 {
		t.Fatalf("got %d channels read, want both", n)
	}
	o.want(o.days(o.page, "impressions"), "7 8 9 10")
	o.want(o.days(o.account, "Followers"), "10") // the platform keeps no history
	o.setAway(true)
	for range 48 {
		o.pass(time.Hour)
		if n := o.snapshots(); n != 0 {
			t.Errorf("got %d channels read while the platforms are away, want none", n)
		}
	}
	o.want(o.days(o.page, "impressions"), "9 10")
	o.want(o.days(o.account, "Followers"), "10")
	o.want(o.latest(o.page), "2027-03-10")
	o.want(o.latest(o.account), "2027-03-10")
	o.setAway(false)
	o.pass(24 * time.Hour)
	if n := o.snapshots(); n != 2 {
		t.Errorf("got %d channels read after the outage, want both", n)
	}
	o.want(o.days(o.page, "impressions"), "10 11 12 13")
	o.want(o.days(o.account, "Followers"), "10 13")
	o.want(o.latest(o.account), "2027-03-13")
}
