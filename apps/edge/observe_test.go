package edge_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"crier/apps/edge"
	"crier/tests/edgetest"
)

func TestMetricsAndLogs_HavePatternsOnly(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	s := edgetest.New(t, nil, func(d *edge.Deps) { d.Metrics = reg })
	s.CallAPI(t, "GET", "/public/v1/posts/very-private", "")
	s.Call(t, "GET", "/public/v1/posts/very-private", "")
	s.Call(t, "GET", "/very-private", "")
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	text := families[0].String()
	for _, part := range []string{`"/public/v1/posts/{id}"`, `"unmatched"`, `"401"`, `"404"`} {
		if !strings.Contains(text, part) {
			t.Errorf("%s is not in %s", part, text)
		}
	}
	for _, where := range []string{text, s.Log.String()} {
		if strings.Contains(where, "very-private") || strings.Contains(where, edgetest.OrgID.String()) {
			t.Errorf("private: %s", where)
		}
	}
}

// TestSecrets_AreNotLogged searches the log for every secret in requests and responses.
func TestSecrets_AreNotLogged(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	for _, c := range edgetest.SignIns() {
		s.Submit(t, c.Path, c.Body, "Cookie", "org=cookie-invitation; device=cookie-device; auth=cookie-session")
	}
	s.Call(t, "POST", "/auth/unsubscribe?token=mail-token-x", "")
	s.Call(t, "GET", "/auth/oauth-mobile-callback?code=query-code&state=query-state", "")
	s.Submit(t, "/auth/login", `{"email":"ada@example.org","password":"hunter22-wrong"}`)
	s.Submit(t, "/auth/mfa/verify", `{"mfaToken":"body-mfa-token","recoveryCode":"recovery-code-1"}`)
	s.Submit(t, "/user/change-password", `{"oldPassword":"hunter22-old","newPassword":"hunter22-new"}`, "auth", edgetest.UserSession)
	s.Submit(t, "/settings/api-keys", `{"name":"n"}`, "auth", edgetest.AdminSession)
	log := s.Log.String()
	if !strings.Contains(log, "/auth/unsubscribe") || !strings.Contains(log, "proof of identity failed") {
		t.Fatalf("the log lacks the requests: %s", log)
	}
	for _, secret := range []string{
		"cookie-invitation", "cookie-device", "cookie-session", "mail-token-x", "query-code", "query-state", "hunter22", "body-mfa-token",
		"recovery-code-1", edgetest.UserSession, edgetest.AdminSession, edgetest.APIKey, "correct horse", edgetest.NewToken, edgetest.Ada,
	} {
		if strings.Contains(log, secret) {
			t.Errorf("the log has %q", secret)
		}
	}
}
