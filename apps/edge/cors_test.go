package edge_test

import (
	"strings"
	"testing"

	"crier/tests/edgetest"
)

func TestMainURL_IsSecondOrigin(t *testing.T) {
	t.Parallel()
	for origin, allowed := range map[string]bool{"https://app.test": true, "https://main.test": true, "http://main.test": false, "https://main.test.evil.test": false} {
		s := edgetest.New(t, map[string]string{"FRONTEND_URL": "https://app.test/ui", "MAIN_URL": "https://Main.test:443/"})
		preflight := s.Call(t, "OPTIONS", "/user/logout", "", "Origin", origin, "Access-Control-Request-Method", "POST")
		if got := preflight.Header.Get("Access-Control-Allow-Origin"); (got == origin) != allowed || !allowed && got != "" {
			t.Errorf("%s: Access-Control-Allow-Origin is %q", origin, got)
		}
		connect := s.Call(t, "GET", "/integrations/social/sandbox?redirectUrl="+origin+"/x", "", "auth", edgetest.UserSession)
		if logout := s.Call(t, "POST", "/user/logout", "", "Cookie", "auth="+edgetest.UserSession, "Origin", origin); (logout.Status == 201) != allowed || (connect.Status == 200) != allowed {
			t.Errorf("%s: a log-out answers %d, a connect that leads there %d", origin, logout.Status, connect.Status)
		}
	}
	s := edgetest.New(t, map[string]string{"FRONTEND_URL": "https://app.test/ui"})
	if got := s.Call(t, "GET", "/health", "", "Origin", "https://main.test").Header.Get("Access-Control-Allow-Origin"); got != "" {
		t.Errorf("without MAIN_URL: %q", got)
	}
}

func TestCORS_AllowsDashboardOnly(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, map[string]string{"FRONTEND_URL": "https://app.test/ui"})
	a := s.Call(t, "OPTIONS", "/user/logout", "", "Origin", "https://app.test",
		"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "auth")
	edgetest.Want(t, a, 204)
	if got := a.Header.Get("Access-Control-Allow-Origin"); got != "https://app.test" {
		t.Errorf("Access-Control-Allow-Origin is %q, want https://app.test", got)
	}
	if got := a.Header.Get("Access-Control-Allow-Credentials"); got != "true" {
		t.Errorf("Access-Control-Allow-Credentials is %q, want true", got)
	}
	if got := a.Header.Get("Access-Control-Allow-Headers"); !strings.Contains(got, "showorg") {
		t.Errorf("Access-Control-Allow-Headers is %q, want showorg in it", got)
	}
	a = s.Call(t, "GET", "/health", "", "Origin", "https://app.test")
	if got := a.Header.Get("Access-Control-Expose-Headers"); !strings.Contains(got, "reload") {
		t.Errorf("Access-Control-Expose-Headers is %q, want reload in it", got)
	}
	for _, path := range []string{"/openapi.json", "/openapi.json/", "/public/v1/openapi.json"} {
		a = s.Call(t, "GET", path, "", "Origin", "https://app.test")
		if a.Status != 200 || a.Header.Get("Access-Control-Allow-Origin") != "*" || a.Header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: answered %d %v, want 200 for all origins, without credentials", path, a.Status, a.Header)
		}
	}
	a = s.Call(t, "GET", "/health", "", "Origin", "https://evil.test")
	if got := a.Header.Get("Access-Control-Allow-Origin"); got != "" {
		t.Errorf("another site gets Access-Control-Allow-Origin %q, want none", got)
	}
}

func TestCORS_ExposesEveryResponseHeader(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, map[string]string{"FRONTEND_URL": "https://app.test/ui"})
	exposed := s.Call(t, "GET", "/health", "", "Origin", "https://app.test").Header.Get("Access-Control-Expose-Headers")
	all := "," + strings.ReplaceAll(strings.ToLower(exposed), " ", "") + ","
	for _, name := range []string{
		"reload", "onboarding", "activate", "logout", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "retry-after",
		"x-request-id", "x-total-count", "x-has-more", "idempotent-replayed", "idempotent-mismatch",
	} {
		if !strings.Contains(all, ","+name+",") {
			t.Errorf("%s is not in %q", name, exposed)
		}
	}
}
