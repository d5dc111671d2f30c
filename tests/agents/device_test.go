package agents

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"crier/tests/call"
)

// device is the answer to a device that begins to log in.
type device struct {
	Device string `json:"device_code"`
	User   string `json:"user_code"`
	URI    string `json:"verification_uri"`
}

// waiting is a device without a browser. The command line of other products sends neither a body
// nor a client id; an app is a client of RFC 8628.
type waiting struct {
	s   *service
	app *app // nil: the command line
}

func (w waiting) begin(t testing.TB) (d device) {
	t.Helper()
	var body any = ""
	if w.app != nil {
		body = url.Values{"client_id": {w.app.id}, "scope": {bothScopes}}
	}
	if a := w.s.post(t, "/device/code", address(), body); a.Into(&d) != nil || d.Device == "" || d.User == "" || !strings.HasPrefix(d.URI, w.s.base) {
		t.Fatalf("POST /device/code: got %v, want a device code, a user code and an address", a)
	}
	return d
}

func (w waiting) poll(t testing.TB, code string) call.Answer {
	t.Helper()
	if w.app == nil {
		return w.s.post(t, "/device/token", address(), m{"device_code": code})
	}
	return w.s.post(t, "/device/token", address(), url.Values{"client_id": {w.app.id}, "device_code": {code}, "grant_type": {deviceCode}})
}

var nextButton = regexp.MustCompile(`(?i)continue|next|confirm|check|submit`)

// enter types a code on the page to which the device leads.
func (p *person) enter(t testing.TB, d device, code string) (call.Answer, string) {
	t.Helper()
	page, at := p.visit(t, http.MethodGet, strings.TrimPrefix(d.URI, p.s.base), nil)
	f := readForm(t, page.Body, nextButton)
	f.fill(t, codeLabel, code)
	return p.visit(t, http.MethodPost, f.path(t, at), f.values(f.button(nextButton)))
}

// TestClients_Device checks the log-in of a device that has no browser.
func TestClients_Device(t *testing.T) {
	t.Parallel()
	s := common(t)
	for name, w := range map[string]waiting{"RFC 8628": {s: s, app: s.native(t)}, "the command line": {s: s}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := s.owner(t)
			d := w.begin(t)
			wantOAuthError(t, "before the person approves", w.poll(t, d.Device), "authorization_pending", "slow_down")
			page, at := p.enter(t, d, strings.ToLower(d.User))
			f := readForm(t, page.Body, approveButton)
			p.visit(t, http.MethodPost, f.path(t, at), f.values(f.button(approveButton)))
			var got struct {
				Access string `json:"access_token"`
				URL    string `json:"api_url"`
				Org    string `json:"organization_id"`
			}
			last := ""
			await(t, "the device's token", func() bool {
				a := w.poll(t, d.Device)
				last = a.String()
				return a.Into(&got) == nil
			}, func() string { return last })
			if got.Org != p.principal.Org.String() || !strings.HasPrefix(got.URL, s.base) {
				t.Errorf("got %+v, want the organization %s and an address of %s", got, p.principal.Org, s.base)
			}
			rest{base: s.base, credential: got.Access}.want(t, nil, http.MethodGet, "/integrations", nil)
			wantRefusal(t, "the second token of one approval", w.poll(t, d.Device))
		})
	}
}

// TestAttack_DeviceCodes checks that a person's code cannot be guessed, and that a device gets
// nothing before a person approves.
func TestAttack_DeviceCodes(t *testing.T) {
	t.Parallel()
	s := common(t)
	p := s.owner(t)
	w := waiting{s: s, app: s.native(t)}
	d := w.begin(t)
	wantOAuthError(t, "before the person approves", w.poll(t, d.Device), "authorization_pending", "slow_down")
	wantOAuthError(t, "a device code that was guessed", w.poll(t, "crd_"+strings.Repeat("a", 43)), "expired_token", "invalid_grant")
	for i := range 200 {
		a, _ := p.enter(t, d, fmt.Sprintf("BCDF-%04d", i))
		if a.Status == http.StatusTooManyRequests {
			return
		}
		if a.Status >= 500 || readsApprove(a.Body) {
			t.Fatalf("guess %d: got %v, want a refusal", i, a)
		}
	}
	t.Error("200 codes were guessed without a limit")
}

func readsApprove(page string) bool {
	return regexp.MustCompile(`(?i)<button[^>]*>\s*(approve|allow)`).MatchString(page)
}
