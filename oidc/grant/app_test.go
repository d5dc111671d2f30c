package grant_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"crier/oidc"
	"crier/oidc/server"
	"crier/platform/fault"
	"crier/tests/tenant"
)

// An organization's own application may have tokens that do not expire, for programs that cannot
// refresh them. Members of other organizations may approve it too.
func TestApp_LongLivedTokens(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, other := r.second(r.db)
	app, secret, err := r.Clients.CreateApp(t.Context(), r.owner, oidc.App{
		Client: oidc.Client{Name: "CLI", RedirectURIs: []string{redirectURI}, LongLived: true},
	})
	must(t, err)
	r.client = app.Client
	stranger := tenant.New(t, r.db)
	code := r.approve(stranger, func(c *oidc.Consent) { c.Request.RedirectSent, c.Request.Challenge = false, "" })
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}}
	req := httptest.NewRequest(http.MethodPost, server.TokenPath, strings.NewReader(form.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth(app.ClientID, secret)
	w := httptest.NewRecorder()
	r.Server.ServeHTTP(w, req)
	body := w.Body.String()
	if w.Code != 200 || strings.Contains(body, "refresh_token") || strings.Contains(body, "expires_in") || !strings.Contains(body, stranger.Org.String()) {
		t.Fatalf("got %d %s, want a token without an end", w.Code, body)
	}
	_, rest, _ := strings.Cut(body, `"access_token":"`)
	access, _, _ := strings.Cut(rest, `"`)
	r.advance(365 * 24 * time.Hour)
	p := r.wantToken("the token after a year", access, "")
	if p.Org != stranger.Org || p.Person != stranger.Person {
		t.Errorf("got the principal %+v", p)
	}
	works := func() bool {
		_, err := other.Grants.Authenticate(t.Context(), access)
		return err == nil
	}
	r.await("the token works in the other process", works)
	must(t, r.Clients.DeleteApp(t.Context(), r.owner))
	r.wantToken("a token of a deleted application", access, fault.Unauthenticated)
	r.await("the other process refuses the token", func() bool { return !works() })
}
