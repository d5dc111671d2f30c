package monitor_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"crier/tests/edgetest"
)

const operator = "the operator's secret"

func TestMonitor_PublicListenerRequiresToken(t *testing.T) {
	t.Parallel()
	const path = "/monitor/queue/publish"
	s := edgetest.New(t, map[string]string{"MONITOR_TOKEN": operator, "TRUSTED_PROXIES": "127.0.0.1"})
	edgetest.Want(t, s.Call(t, "GET", path, "", "X-Monitor-Token", operator), 200, `"status":"success"`, `"due":2`, `"publishing":1`, `"next":"2026-01-02T03:04:05.000Z"`)
	edgetest.Want(t, s.Call(t, "GET", "/monitor/queue/nothing", "", "X-Monitor-Token", operator), 404)
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
		"a key of the public API":          {"Authorization", edgetest.APIKey},
		"a session of a member":            {"auth", edgetest.UserSession},
		"another token before the private": {"X-Monitor-Token", "10.0.0.1"},
	} {
		if a := s.Call(t, "GET", path, "", headers...); a.Status != 403 {
			t.Errorf("%s: answered %d %s, want 403", name, a.Status, a.Body)
		}
	}
	closed := edgetest.New(t, nil)
	for _, headers := range [][]string{nil, {"X-Monitor-Token", ""}, {"X-Monitor-Token", operator}} {
		edgetest.Want(t, closed.Call(t, "GET", path, "", headers...), 403)
	}
	s.Unhealthy.Store(true)
	edgetest.Want(t, s.Call(t, "GET", path, "", "X-Monitor-Token", operator), 503, `"status":"error"`, `"overdue":1`, `"oldestSeconds":90`)
}

func TestMonitor_PrivateListenerRequiresNoToken(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, map[string]string{"MONITOR_TOKEN": operator})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /monitor/queue/{name}", s.ServeQueue)
	for _, sick := range []bool{false, true} {
		s.Unhealthy.Store(sick)
		for _, name := range []string{"publish", "nothing"} {
			path := "/monitor/queue/" + name
			public := s.Call(t, "GET", path, "", "X-Monitor-Token", operator)
			private := httptest.NewRecorder()
			mux.ServeHTTP(private, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
			if body := private.Body.String(); private.Code != public.Status || body != public.Body+"\n" || private.Header().Get("Content-Type") != "application/json" {
				t.Errorf("sick %t, %s: %d %s, the public listener answers %d %s", sick, name, private.Code, body, public.Status, public.Body)
			}
		}
	}
}
