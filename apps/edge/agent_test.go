package edge_test

import (
	"slices"
	"strings"
	"testing"

	"crier/apps/edge"
	"crier/tests/edgetest"
)

// notForAgents lists the routes of the public API that do not accept access tokens: webhooks, and
// connecting and disconnecting channels.
func notForAgents(r edge.Route) bool {
	path := strings.TrimPrefix(r.Path, "/api")
	return strings.HasPrefix(path, "/public/v1/webhooks") || slices.Contains([]string{
		"POST /public/v1/connectors/{id}/authorize", "GET /public/v1/social/{integration}",
		"DELETE /public/v1/integrations/{id}",
	}, r.Method+" "+path)
}

// TestAgent_EveryPublicRouteByToken calls every route of the public API with a token that may
// write, and with one that may only read. The bodies are invalid JSON, so any error other than 403
// shows that the guards let the request through.
func TestAgent_EveryPublicRouteByToken(t *testing.T) {
	t.Parallel()
	s, _ := edgetest.NewOAuth(t, nil)
	checked := 0
	for _, r := range edge.Routes() {
		if r.Credential != "api key" {
			continue
		}
		for token, writes := range map[string]bool{edgetest.WriterToken: true, edgetest.ReaderToken: false} {
			a := s.Call(t, r.Method, concrete(r), "{", "Authorization", token, "Content-Type", "application/json")
			allowed := !notForAgents(r) && (writes || r.Method == "GET")
			if (a.Status == 403) == allowed || a.Status == 401 {
				t.Errorf("%s with %s: answered %d %s, want it allowed: %v", r, token, a.Status, a.Body, allowed)
			}
			scope := !notForAgents(r) && !allowed
			if strings.Contains(a.Body, `"error":"insufficient_scope"`) != scope {
				t.Errorf("%s with %s: answered %s, want insufficient_scope: %v", r, token, a.Body, scope)
			}
			checked++
		}
		edgetest.Want(t, s.Call(t, r.Method, concrete(r), "{", "Authorization", edgetest.SuspendedToken), 403)
	}
	if checked < 100 {
		t.Errorf("%d requests, want 100 or more", checked)
	}
}

func TestAgent_TokensAreNotForSessions(t *testing.T) {
	t.Parallel()
	s, _ := edgetest.NewOAuth(t, nil)
	for _, r := range sessionRoutes(t) {
		for _, header := range []string{"Authorization", "auth"} {
			a := s.Call(t, r.Method, concrete(r), "{", header, edgetest.WriterToken, "Content-Type", "application/json")
			if a.Status != 401 {
				t.Errorf("%s with a token in %s: answered %d %s, want 401", r, header, a.Status, a.Body)
			}
		}
	}
}

func TestAgent_TokenIsSentRaw(t *testing.T) {
	t.Parallel()
	s, _ := edgetest.NewOAuth(t, nil)
	get := func(path, value string) edgetest.Answer {
		t.Helper()
		return s.Call(t, "GET", path, "", "Authorization", value)
	}
	a := get("/public/v1/is-connected", edgetest.ReaderToken)
	edgetest.Want(t, a, 200, `{"connected":true}`)
	if a.Header.Get("X-RateLimit-Limit") != "60" || s.Admitted.Load() != 1 {
		t.Errorf("the request is not counted for the organization: %v", a.Header)
	}
	edgetest.Want(t, get("/public/v1/is-connected", " "+edgetest.ReaderToken+"\u200b"), 200)
	for _, scheme := range []string{"Bearer ", "bearer ", "Token "} {
		edgetest.Want(t, get("/public/v1/is-connected", scheme+edgetest.ReaderToken), 401, "Invalid access token: send the token alone, without ")
	}
	edgetest.Want(t, get("/public/v1/is-connected", "cra_unknown"), 401, "Invalid access token")
	edgetest.Want(t, get("/public/v1/is-connected?access_token="+edgetest.ReaderToken, ""), 401, "No API key found")
}
