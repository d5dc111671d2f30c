package edge_test

import (
	"net/http"
	"strings"
	"testing"

	"crier/tests/edgetest"
)

func TestPanic_Is500WithoutCause(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	s.Panics.Store(true)
	a := s.CallAPI(t, "POST", "/public/v1/posts", edgetest.PostBody)
	edgetest.Want(t, a, 500, "Internal server error")
	if strings.Contains(a.Body, "secret") || !strings.Contains(s.Log.String(), "secret cause") {
		t.Errorf("got %s and the log %s, want the cause in the log only", a.Body, s.Log)
	}
}

func TestSmallRoutes(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	edgetest.Want(t, s.CallAPI(t, "DELETE", "/public/v1/posts/p1", ""), 200, `{"id":"p1"}`)
	edgetest.Want(t, s.CallAPI(t, "DELETE", "/public/v1/posts/group/g1", ""), 200, `{"id":"g1"}`)
	edgetest.Want(t, s.CallAPI(t, "PUT", "/public/v1/posts/p1/status", `{"status":"schedule","more":1}`), 200, `{"id":"p1","state":"QUEUE"}`)
	edgetest.Want(t, s.CallAPI(t, "PUT", "/public/v1/posts/p1/status", `{"status":"published"}`), 400, `"status must be one of: draft, schedule"`, `"message":["`)
	edgetest.Want(t, s.CallAPI(t, "PUT", "/public/v1/posts/p1/status", `{"status":null}`), 400, "status must be a string")
	edgetest.Want(t, s.CallAPI(t, "PUT", "/public/v1/posts/p1/status", `{}`), 400, "status is required")
	edgetest.Want(t, s.CallAPI(t, "PUT", "/public/v1/posts/p1/status", `{`), 400)
	edgetest.Want(t, s.CallAPI(t, "PUT", "/public/v1/posts/p1/status", ``), 400)
	edgetest.Want(t, s.CallAPI(t, "GET", "/public/v1/integrations?group=g", ""), 200, `"identifier":"sandbox","providerIdentifier":"sandbox"`, `"profile":"news","disabled":false`)
	if s.Customer != "g" {
		t.Errorf("group %q", s.Customer)
	}
	edgetest.Want(t, s.CallAPI(t, "GET", "/public/v1/is-connected", ""), 200, `{"connected":true}`)
	edgetest.Want(t, s.Call(t, "GET", "/", ""), 200, "App is running!")
	edgetest.Want(t, s.Call(t, "GET", "/nowhere", ""), 404, `"msg":"There is no such route."`)
	a := s.Call(t, "PUT", "/health", "")
	edgetest.Want(t, a, 405, `"statusCode":405`)
	if !strings.Contains(strings.Join(a.Header.Values("Allow"), ","), "GET") {
		t.Errorf("Allow: %v", a.Header.Values("Allow"))
	}
	if head := s.Call(t, "HEAD", "/health", ""); head.Status != 200 || head.Body != "" {
		t.Errorf("HEAD: %+v", head)
	}
}

func TestAdmit_RefusalHasRetryAfter(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	s.RateLimited.Store(true)
	a := s.CallAPI(t, "POST", "/public/v1/posts", edgetest.PostBody)
	edgetest.Want(t, a, 429, `"retryAfter":2`, `"msg":"Too many`)
	if a.Header.Get("Retry-After") != "2" || a.Header.Get("X-RateLimit-Remaining") != "0" || len(s.Creates) != 0 {
		t.Errorf("%v, %d creates", a.Header, len(s.Creates))
	}
}

func TestAnswer_HasRequestIDAndSecurityHeaders(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	a := s.Call(t, "GET", "/health", "", "X-Request-Id", "client-id-1")
	if a.Header.Get("X-Request-Id") != "client-id-1" || a.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("got the headers %v, want the id of the client and nosniff", a.Header)
	}
	b := s.Call(t, "GET", "/health", "", "X-Request-Id", "bad id\"<x>")
	if id := b.Header.Get("X-Request-Id"); len(id) != 36 {
		t.Errorf("request id %q", id)
	}
}

func TestStrings_StayValidAfterRequest(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	transport := &http.Transport{MaxConnsPerHost: 1}
	t.Cleanup(transport.CloseIdleConnections)
	send := func(method, path, key string) {
		req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(edgetest.PostBody))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", edgetest.APIKey)
		req.Header.Set("Idempotency-Key", key)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	send("DELETE", "/public/v1/posts/first-path", "x")
	send("POST", "/public/v1/posts", "first-header")
	send("GET", "/public/v1/posts?page=0&customer=first-query", "x")
	for range 50 {
		send("DELETE", "/public/v1/posts/XXXXXXXXXX", "x")
		send("POST", "/public/v1/posts", "XXXXXXXXXXXX")
		send("GET", "/public/v1/posts?page=0&customer=XXXXXXXXXXX", "x")
	}
	if s.IDs[0] != "first-path" || s.Creates[0].IdempotencyKey != "first-header" || s.Lists[0].Customer != "first-query" {
		t.Errorf("overwritten: %q %q %q", s.IDs[0], s.Creates[0].IdempotencyKey, s.Lists[0].Customer)
	}
}

func TestShutdown_BeforeListen(t *testing.T) {
	t.Parallel()
	edgetest.New(t, nil) // its cleanup may run before the server listens
}
