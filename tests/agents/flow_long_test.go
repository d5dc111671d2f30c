//go:build long

package agents

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"crier/tests/npm"
	"crier/tests/suite"
)

//go:embed clients
var clientScripts embed.FS

const (
	// installTime is generous because the registry may be slow.
	installTime = 5 * time.Minute
	// flowTime covers a browser and some fifty calls on a busy machine.
	flowTime = 4 * time.Minute
	// shortAccess is OAUTH_ACCESS_TTL where tokens must end during a test.
	shortAccess = 3 * time.Second
)

// clientFolder has the clients and the browser's driver.
var clientFolder = suite.Once(func(t testing.TB) npm.Folder {
	files, err := fs.Sub(clientScripts, "clients")
	if err != nil {
		t.Fatal(err)
	}
	return npm.Install(t, files, installTime)
})

// chromium returns the path of Chromium, or fails the test.
func chromium(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("this machine has no Chromium: on Debian it is the package chromium")
	return ""
}

// inChromium lets the person open the address in Chromium, sign in, and approve or deny. It returns
// the address at which the browser arrived.
func (p *person) inChromium(t testing.TB, address, redirect string, javaScript, deny bool) string {
	t.Helper()
	var out struct {
		URL      string
		Problems []string
	}
	clientFolder(t).Run(t, "approve.mjs", flowTime, m{
		"executablePath": chromium(t), "url": address, "email": p.email, "password": password, "javaScript": javaScript,
		"redirect": redirect, "deny": deny,
	}, &out)
	for _, problem := range out.Problems {
		t.Error(problem)
	}
	return out.URL
}

// shortLived is a service whose access tokens end soon, with a second process.
type shortLived struct {
	*service
	other string
}

func startShortLived(t testing.TB, access time.Duration) shortLived {
	t.Helper()
	s := start(t, map[string]string{"OAUTH_ACCESS_TTL": access.String()})
	return shortLived{service: s, other: s.second(t)}
}

var (
	forFlows = suite.Once(func(t testing.TB) shortLived { return startShortLived(t, shortAccess) })
	// forEager is for mcp-remote, which refreshes a minute before the end of a token, and stops
	// after 20 refreshes in 30 seconds.
	forEager = suite.Once(func(t testing.TB) shortLived { return startShortLived(t, time.Minute+shortAccess) })
)

func TestFlow(t *testing.T) {
	t.Parallel()
	clientFolder(t) // before a service that a failure would leave running
	revisions := map[string]string{"sdk": oldRevision, "client": newRevision, "mcp-remote": ""}
	for client, revision := range revisions {
		s := forFlows(t)
		if client == "mcp-remote" {
			s = forEager(t)
		}
		for name, javaScript := range map[string]bool{"JavaScript on": true, "JavaScript off": false} {
			t.Run(client+", "+name, func(t *testing.T) {
				p := s.owner(t)
				var out struct {
					Protocol string
					Problems []string
				}
				clientFolder(t).Run(t, "flow.mjs", flowTime, m{
					"client": client, "name": unique("Client "), "base": s.base, "second": s.other, "executablePath": chromium(t),
					"email": p.email, "password": password, "javaScript": javaScript, "session": p.session,
					"tools": toolNames, "calls": toolCalls(t, p, p.connect(t)), "ttl": shortAccess.Seconds(),
				}, &out)
				for _, problem := range out.Problems {
					t.Error(problem)
				}
				if out.Protocol != revision {
					t.Errorf("got the revision %q, want %q", out.Protocol, revision)
				}
			})
		}
	}
}

// TestFlow_Deny checks that a refusal reaches the client.
func TestFlow_Deny(t *testing.T) {
	t.Parallel()
	clientFolder(t) // before a service that a failure would leave running
	s := forFlows(t)
	callback := newCallback(t)
	a := s.register(t, metadata(unique("Denied "), callback.url))
	r := a.request(nil)
	s.owner(t).inChromium(t, s.base+r.path(), callback.url, false, true)
	got := <-callback.visits
	if got.Get("error") != "access_denied" || got.Get("state") != r.query.Get("state") || got.Get("iss") != s.base || got.Has("code") {
		t.Errorf("got %v, want access_denied with the state and iss", got)
	}
}

// TestFlow_GoSDK runs the flow with the Go SDK, in both of its ways to become a client.
func TestFlow_GoSDK(t *testing.T) {
	t.Parallel()
	clientFolder(t) // before a service that a failure would leave running
	s := forFlows(t)
	p := s.owner(t)
	callback := newCallback(t)
	name := unique("Go client ")
	asked := 0
	fetch := func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
		asked++
		if asked > 1 {
			return nil, errors.New("the person is not there")
		}
		p.inChromium(t, args.URL, callback.url, true, false)
		q := <-callback.visits
		return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
	}
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: name, RedirectURIs: []string{callback.url}, GrantTypes: refreshing,
		}},
		AuthorizationCodeFetcher: fetch, RequestRefreshToken: true, Client: &http.Client{Timeout: patience},
	})
	if err != nil {
		t.Fatal(err)
	}
	transport := &mcp.StreamableClientTransport{
		Endpoint: s.base + "/mcp", OAuthHandler: handler, DisableStandaloneSSE: true, MaxRetries: -1,
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: name, Version: "1"}, nil).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	listed, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var tools []tool
	for _, x := range listed.Tools {
		tools = append(tools, tool{Name: x.Name})
	}
	checkNames(t, tools)
	for _, c := range toolCalls(t, p, p.connect(t)) {
		got, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: c.Tool, Arguments: c.Arguments})
		if err != nil {
			t.Errorf("%s %v: %v", c.Tool, c.Arguments, err)
		} else if got.IsError != c.Fails {
			text, _ := json.Marshal(got)
			t.Errorf("%s %v: got %s, want an error: %v", c.Tool, c.Arguments, text, c.Fails)
		}
	}
	time.Sleep(shortAccess + time.Second) // until the token has ended
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "service_list_channels"}); err != nil {
		t.Errorf("after the token's end: %v", err)
	}
	if asked != 1 {
		t.Errorf("the person was asked %d times, want once", asked)
	}
	apps := p.approvedApps(t)
	if len(apps) != 1 || !strings.Contains(apps[0].all, name) {
		t.Fatalf("got the approved apps %+v, want %s", apps, name)
	}
	source, err := handler.TokenSource(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	token, err := source.Token()
	if err != nil {
		t.Fatal(err)
	}
	p.want(t, nil, http.MethodDelete, "/user/approved-apps/"+apps[0].id, nil)
	checkRefusedSoon(t, s.other, token.AccessToken)
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "service_list_channels"}); err == nil {
		t.Error("after the revocation: got a result, want an error")
	}
	if asked != 2 {
		t.Errorf("after the revocation: the person was asked %d times, want once more", asked-1)
	}
}

// callback is the loopback address at which a client waits for its codes.
type callback struct {
	url    string
	visits chan url.Values
}

func newCallback(t testing.TB) callback {
	t.Helper()
	c := callback{visits: make(chan url.Values, 8)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/callback" {
			c.visits <- r.URL.Query()
		}
		_, _ = w.Write([]byte("You can close this page.")) // the browser is closed next
	}))
	t.Cleanup(server.Close)
	c.url = server.URL + "/callback"
	return c
}
