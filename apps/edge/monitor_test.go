package edge_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

const operator = "the operator's secret"

func TestMonitor_PublicListenerRequiresToken(t *testing.T) {
	t.Parallel()
	const path = "/monitor/queue/publish"
	s := start(t, map[string]string{"MONITOR_TOKEN": operator, "TRUSTED_PROXIES": "127.0.0.1"})
	want(t, s.call(t, "GET", path, "", "X-Monitor-Token", operator), 200, `"status":"success"`, `"due":2`, `"publishing":1`, `"next":"2026-01-02T03:04:05.000Z"`)
	want(t, s.call(t, "GET", "/monitor/queue/nothing", "", "X-Monitor-Token", operator), 404)
	for name, headers := range map[string][]string{
		"nothing":                          nil,
		"an empty token":                   {"X-Monitor-Token", ""},
		"a part of the token":              {"X-Monitor-Token", operator[:len(operator)-1]},
		"more than the token":              {"X-Monitor-Token", operator + "x"},
		"a private address":                {"X-Forwarded-For", "10.1.2.3"},
		"loopback":                         {"X-Forwarded-For", "127.0.0.1"},
		"an unreadable hop":                {"X-Forwarded-For", "203.0.113.9:x"},
		"a private line before a public":   {"X-Forwarded-For", "10.0.0.1", "X-Forwarded-For", "203.0.113.9"},
		"the token in another header":      {"Authorization", operator},
		"a key of the public API":          {"Authorization", goodKey},
		"a session of a member":            {"auth", goodSession},
		"another token before the private": {"X-Monitor-Token", "10.0.0.1"},
	} {
		if a := s.call(t, "GET", path, "", headers...); a.status != 403 {
			t.Errorf("%s: answered %d %s, want 403", name, a.status, a.body)
		}
	}
	closed := start(t, nil)
	for _, headers := range [][]string{nil, {"X-Monitor-Token", ""}, {"X-Monitor-Token", operator}} {
		want(t, closed.call(t, "GET", path, "", headers...), 403)
	}
	s.sick.Store(true)
	want(t, s.call(t, "GET", path, "", "X-Monitor-Token", operator), 503, `"status":"error"`, `"overdue":1`, `"oldestSeconds":90`)
}

func TestMonitor_PrivateListenerRequiresNoToken(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"MONITOR_TOKEN": operator})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /monitor/queue/{name}", s.ServeQueue)
	for _, sick := range []bool{false, true} {
		s.sick.Store(sick)
		for _, name := range []string{"publish", "nothing"} {
			path := "/monitor/queue/" + name
			public := s.call(t, "GET", path, "", "X-Monitor-Token", operator)
			private := httptest.NewRecorder()
			mux.ServeHTTP(private, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
			if body := private.Body.String(); private.Code != public.status || body != public.body+"\n" || private.Header().Get("Content-Type") != "application/json" {
				t.Errorf("sick %t, %s: %d %s, the public listener answers %d %s", sick, name, private.Code, body, public.status, public.body)
			}
		}
	}
}
