package contract

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"crier/publishing"
	"crier/tenancy"
	"crier/tests/sandboxtest"
)

// connectedNames returns the names of the connected channels.
func (o org) connectedNames(t *testing.T) (out []string) {
	t.Helper()
	for _, c := range read[[]channelRecord](t, o.get(t, "/integrations")) {
		out = append(out, c.Name)
	}
	return out
}

// audit returns the entries with an action.
func (o org) audit(t *testing.T, action tenancy.Action) []tenancy.AuditEvent {
	t.Helper()
	out, _, err := o.app.Accounts.Audit(t.Context(), o.who, tenancy.AuditQuery{Action: string(action), Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// callbackOf starts a connect with the API key and returns the callback address for the browser of
// a user.
func (o org) callbackOf(t *testing.T, user string) string {
	t.Helper()
	begun := read[next](t, o.get(t, "/social/sandbox-oauth?force=true").want(t, http.StatusOK))
	return o.consent(t, begun.URL, sandboxtest.Consent{User: user})
}

// testConsent checks that a person who opens an organization's link sees its name, and grants
// nothing before pressing the button.
func testConsent(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	back := o.callbackOf(t, "hanna")
	var page answer
	for range 2 { // the page can be reloaded
		page = o.visit(t, http.MethodGet, back).want(t, http.StatusOK)
		for _, want := range []string{"“Organization”", "API key “tests”", "created by " + o.email} {
			if !strings.Contains(page.Body, want) {
				t.Errorf("the page does not name %s: %s", want, page.Body)
			}
		}
		if form(page, "confirm") == "" || len(forms(page)) != 1 {
			t.Fatalf("the page has the forms %v, want one button", forms(page))
		}
	}
	for name, want := range map[string]string{
		"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex, nofollow",
	} {
		if got := page.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got := page.Header.Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'none'; form-action 'self' ") || !strings.HasSuffix(got, "frame-ancestors 'none'") {
		t.Errorf("the policy is %s", got)
	}
	sent := query(t, back)
	known := url.Values{"state": sent["state"]}
	for _, guess := range []string{"?" + known.Encode(), "?" + known.Encode() + "&page=hanna.news", "?confirm=x", "?confirm=" + sent.Get("code"), "?" + sent.Encode()} {
		o.visit(t, http.MethodPost, callback+guess).want(t, http.StatusBadRequest)
	}
	if got := o.connectedNames(t); len(got) != 0 {
		t.Fatalf("the channels %v are connected before the button", got)
	}
	choice := o.visit(t, http.MethodPost, form(page, "confirm")).want(t, http.StatusOK)
	if !strings.Contains(choice.Body, "“Organization”") || len(forms(choice)) != 2 {
		t.Fatalf("the page offers %v, want two accounts for the organization: %s", forms(choice), choice.Body)
	}
	o.visit(t, http.MethodPost, form(page, "confirm")).want(t, http.StatusBadRequest)
	// The person who started the connect knows its state, but cannot choose for the person who
	// consents.
	o.visit(t, http.MethodPost, callback+"?"+known.Encode()+"&page=hanna.news").want(t, http.StatusBadRequest)
	done := o.visit(t, http.MethodPost, forms(choice)["hanna.shop"]).want(t, http.StatusOK)
	for _, want := range []string{"“Organization”", "hanna.shop", "This was not me", "API key “tests”"} {
		if !strings.Contains(done.Body, want) {
			t.Errorf("the last page does not name %s: %s", want, done.Body)
		}
	}
	if got := o.connectedNames(t); !slices.Equal(got, []string{"hanna.shop"}) {
		t.Errorf("the channels are %v, want hanna.shop", got)
	}
	entries := o.audit(t, tenancy.ActionChannelConnected)
	if len(entries) != 1 || !strings.HasPrefix(entries[0].Actor, "API key crier_") || entries[0].Person != o.who.Person || entries[0].Via != tenancy.ViaKey {
		t.Errorf("the audit log has %+v, want the key and who made it", entries)
	}
}

// query returns the query parameters of an address.
func query(t *testing.T, address string) url.Values {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query()
}

// cookie returns the Cookie header for a session of the owner, with more appended.
func (o org) cookie(t *testing.T, more string) []string {
	t.Helper()
	signIn, err := o.app.Accounts.Login(t.Context(), o.email, password, tenancy.Source{Client: "203.0.113.9", Site: "203.0.113.9"})
	if err != nil {
		t.Fatal(err)
	}
	return []string{"Cookie", "auth=" + signIn.Session + more}
}

// open is like visit, with request headers.
func (o org) open(t *testing.T, method, address string, headers ...string) answer {
	t.Helper()
	o.prefix, o.key = "", ""
	return o.do(t, method, strings.TrimPrefix(address, base), nil, headers...)
}

func testConsentOfMember(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	ask, cookie := o.dashboard(t), o.cookie(t, "")
	begin := func() string {
		begun := read[next](t, ask(http.MethodGet, "/integrations/social/sandbox-oauth?redirectUrl=/done", nil).want(t, 200))
		return o.consent(t, begun.URL, sandboxtest.Consent{User: "ida"})
	}
	choice := o.open(t, http.MethodGet, begin(), cookie...).want(t, http.StatusOK)
	chosen := forms(choice)["ida.news"]
	if chosen == "" || form(choice, "confirm") != "" {
		t.Fatalf("a member gets the forms %v, want the accounts", forms(choice))
	}
	if a := o.open(t, http.MethodPost, chosen, cookie...).want(t, http.StatusSeeOther); a.Header.Get("Location") != "/done" {
		t.Errorf("a member is led to %s, want /done", a.Header.Get("Location"))
	}
	entries := o.audit(t, tenancy.ActionChannelConnected)
	if len(entries) != 1 || entries[0].Actor != o.email || entries[0].Impersonator != "" {
		t.Errorf("the audit log has %+v, want the person by the address", entries)
	}
	for name, headers := range map[string][]string{
		"without a session": nil, "a session that has ended": {"Cookie", "auth=none"},
		"somebody who acts as another": {cookie[0], cookie[1] + "; impersonate=x"},
	} {
		page := o.open(t, http.MethodGet, begin(), headers...).want(t, http.StatusOK)
		if form(page, "confirm") == "" || !strings.Contains(page.Body, o.email+" requested this") {
			t.Errorf("%s: got the page %s, want a question", name, page.Body)
		}
	}
	if a := o.open(t, http.MethodHead, begin(), cookie...); a.Status != http.StatusOK || len(o.connectedNames(t)) != 1 {
		t.Errorf("HEAD is answered with %v, and the channels are %v", a, o.connectedNames(t))
	}
	// A stranger sees what was connected but is not redirected.
	page := o.arrive(t, begin())
	done := o.visit(t, http.MethodPost, forms(page)["ida.shop"]).want(t, http.StatusOK)
	if form(done, "disown") == "" || !strings.Contains(done.Body, `href="/done"`) {
		t.Errorf("a stranger gets %s, want the last page with a link", done.Body)
	}
}

func testDisown(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	page := o.arrive(t, o.callbackOf(t, "jane"))
	done := o.visit(t, http.MethodPost, forms(page)["jane.news"]).want(t, http.StatusOK)
	disown := form(done, "disown")
	o.visit(t, http.MethodPost, callback+"?disown=x").want(t, http.StatusBadRequest)
	// Merely opening the link does nothing.
	o.visit(t, http.MethodGet, disown).want(t, http.StatusBadRequest)
	if got := o.connectedNames(t); len(got) != 1 {
		t.Fatalf("the channels are %v, want one", got)
	}
	for i, want := range []string{"is disconnected", "Nothing was changed", "Nothing was changed"} {
		a := o.visit(t, http.MethodPost, disown).want(t, http.StatusOK)
		if !strings.Contains(a.Body, want) {
			t.Errorf("the form, time %d, is answered with %s, want %q", i+1, a.Body, want)
		}
	}
	if got := o.connectedNames(t); len(got) != 0 {
		t.Errorf("the channels are %v, want none", got)
	}
	entries := o.audit(t, tenancy.ActionChannelDisowned)
	if len(entries) != 1 || entries[0].Via != tenancy.ViaGuest || entries[0].Subject != "sandbox-oauth jane.news" {
		t.Errorf("the audit log has %+v, want one entry of a guest", entries)
	}
	if a := o.get(t, "/notifications"); !strings.Contains(a.Body, "was a mistake") || !strings.Contains(a.Body, "jane.news") {
		t.Errorf("the bell has %s, want the channel that was disconnected", a.Body)
	}
}

func testDisownOld(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	connect := func() string {
		page := o.arrive(t, o.callbackOf(t, "kim"))
		return form(o.visit(t, http.MethodPost, forms(page)["kim.news"]).want(t, http.StatusOK), "disown")
	}
	first, second := connect(), connect()
	if a := o.visit(t, http.MethodPost, first).want(t, http.StatusOK); !strings.Contains(a.Body, "Nothing was changed") || len(o.connectedNames(t)) != 1 {
		t.Errorf("the page of the first connect is answered with %s, the channels are %v", a.Body, o.connectedNames(t))
	}
	if o.visit(t, http.MethodPost, second).want(t, http.StatusOK); len(o.connectedNames(t)) != 0 {
		t.Errorf("after the page of the second connect the channels are %v, want none", o.connectedNames(t))
	}
}

// testConnectActing covers a connect that an instance administrator starts as a member, and a
// stranger finishes.
func testConnectActing(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	p := o.who
	p.Impersonator, p.ImpersonatorName = r.owner.Person, "operator@crier.test"
	begin := func() string {
		t.Helper()
		begun, err := o.app.Channels.Begin(t.Context(), p, publishing.BeginConnect{Connector: "sandbox-oauth"})
		if err != nil {
			t.Fatal(err)
		}
		return o.consent(t, begun, sandboxtest.Consent{User: "lena"})
	}
	// The operator is not an administrator.
	o.visit(t, http.MethodGet, begin()).want(t, http.StatusBadRequest)
	if err := o.app.Accounts.SetInstanceAdmin(t.Context(), r.email, true); err != nil {
		t.Fatal(err)
	}
	back := begin()
	if page := o.visit(t, http.MethodGet, back); !strings.Contains(page.Body, "operator@crier.test, an administrator of this service impersonating "+o.email) {
		t.Errorf("the page says %s, want who acted as whom", page.Body)
	}
	page := o.arrive(t, back)
	o.visit(t, http.MethodPost, forms(page)["lena.news"]).want(t, http.StatusOK)
	state, err := o.app.Channels.Begin(t.Context(), p, publishing.BeginConnect{Connector: "sandbox"})
	if err != nil {
		t.Fatal(err)
	}
	body := m{"state": state, "code": code(t, o.sandbox, "acting-"+o.who.Org.String()[:13], "A")}
	visitor := o
	visitor.prefix, visitor.key = "", ""
	visitor.do(t, http.MethodPost, "/integrations/social-connect/sandbox", body).want(t, http.StatusCreated)
	entries := o.audit(t, tenancy.ActionChannelConnected)
	if len(entries) != 2 {
		t.Fatalf("the audit log has %+v, want two entries", entries)
	}
	for _, e := range entries {
		if e.Actor != o.email || e.Impersonator != "operator@crier.test" || e.Person != o.who.Person {
			t.Errorf("the entry of %s is of %s with %q behind, want the member and the operator", e.Subject, e.Actor, e.Impersonator)
		}
	}
}
