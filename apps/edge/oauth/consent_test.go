package oauth_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"crier/apps/edge"
	"crier/oidc"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/tenancy"
	"crier/tests/edgetest"
)

// ask opens the consent page and returns the address and the fields of its form.
func (r rig) ask(t *testing.T, query string) (action string, fields url.Values) {
	t.Helper()
	a := r.browse(t, "/oauth/authorize?"+query, edgetest.UserSession)
	edgetest.Want(t, a, 200, "Let Planner use your account?")
	return form(t, a)
}

func TestConsent_SaysWhoAndWhere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, c := range map[string]struct {
		query string
		parts []string
		not   string
	}{
		"registered": {query: request(), parts: []string{"not verified", "<strong>planner.test</strong>", "ada@example.org", "Acme"}},
		"document": {
			query: request("client_id", "https://writer.test/client.json", "redirect_uri", "https://writer.test/callback"),
			parts: []string{"Writer", "verified: described by writer.test", "www.writer.test"}, not: "not verified",
		},
		"loopback": {query: request("redirect_uri", "http://127.0.0.1:8123/callback"), parts: []string{"a program on this computer"}, not: "127.0.0.1</strong>"},
		"an app":   {query: request("redirect_uri", "cursor://planner/callback"), parts: []string{"opens cursor: addresses"}},
		"reading":  {query: request("scope", "mcp:read"), parts: []string{"but not change anything"}, not: `name="write"`},
		"writing":  {query: request(), parts: []string{`name="write" value="1" checked`, `name="mustAsk"`, "News", "A customer"}},
	} {
		a := r.browse(t, "/oauth/authorize?"+c.query, edgetest.UserSession)
		edgetest.Want(t, a, 200, append(c.parts, "Approve", "Deny")...)
		if c.not != "" && strings.Contains(a.Body, c.not) {
			t.Errorf("%s: the page has %q: %s", name, c.not, a.Body)
		}
		if a.Header.Get("Referrer-Policy") != "same-origin" {
			t.Errorf("%s: Referrer-Policy is %q: with no-referrer, browsers send Origin: null", name, a.Header.Get("Referrer-Policy"))
		}
	}
	if len(r.server.Consents) != 0 {
		t.Error("looking at the page has stored a consent")
	}
}

// TestConsent_ShowsNamesHarmlessly: a client chooses its name, and anyone can register.
func TestConsent_ShowsNamesHarmlessly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, shown := range map[string]string{
		`<script>alert(1)</script>`:                  "&lt;script&gt;alert(1)&lt;/script&gt;",
		"Crier\u202egro.live//:sptth\u2066":          "Criergro.live//:sptth",
		"two\nlines\x00\x1b[31m and\u200b\u2028more": "two lines[31m and more",
		strings.Repeat("long ", 100):                 "long long",
		" \u200b ":                                   "An app without a name",
	} {
		c := edgetest.Clients()["ccl_public"]
		c.Name = name
		r.server.SetClient(c)
		a := r.browse(t, "/oauth/authorize?"+request(), edgetest.UserSession)
		edgetest.Want(t, a, 200, shown)
		if strings.ContainsAny(a.Body, "\u202e\u2066\u200b\u2028\x00\x1b") || len(a.Body) > 12_000 {
			t.Errorf("%q is shown with its hidden characters, or whole: %d bytes", name, len(a.Body))
		}
	}
	c := edgetest.Clients()["ccl_public"]
	c.URI, c.RedirectURIs = "javascript:alert(1)", []string{"https://pläner.test/callback"}
	r.server.SetClient(c)
	edgetest.Want(t, r.browse(t, "/oauth/authorize?"+request("redirect_uri", "https://pläner.test/callback"), edgetest.UserSession), 400)
}

func TestConsent_ApprovedByForm(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	action, fields := r.ask(t, request())
	fields.Set("action", "approve")
	a := r.submit(t, action, edgetest.UserSession, fields)
	v := leadsTo(t, a, planner)
	if v.Get("code") != "crc_code" || v.Get("state") != "the state" || v.Get("iss") != edgetest.BaseURL || v.Get("from") != "crier" {
		t.Errorf("the client gets %v, want the code, state and iss", v)
	}
	if a.Header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("the page with the code has the Referrer-Policy %q", a.Header.Get("Referrer-Policy"))
	}
	c := r.server.Consents[0]
	if c.Request.Challenge != challenge || c.Request.RedirectURI != planner+"?from=crier" || !c.Request.RedirectSent ||
		c.Request.Resource != edgetest.BaseURL+"/mcp" || c.Scopes.String() != "mcp:read mcp:write" || c.Token == "" {
		t.Errorf("the consent is %+v", c)
	}
	if c.Limits.MustAsk || c.Limits.EndsAt != nil || len(c.Limits.Channels)+len(c.Limits.Customers)+c.Limits.PostsPerDay != 0 {
		t.Errorf("the limits are %+v, want none", c.Limits)
	}
	if p := r.server.By[0]; p.Org != edgetest.OrgID || p.Person != edgetest.PersonID {
		t.Errorf("the consent is by %+v", p)
	}
	again := r.submit(t, action, edgetest.UserSession, fields)
	edgetest.Want(t, again, 409, "already answered")
	if len(r.server.Consents) != 1 {
		t.Error("a page was answered twice")
	}
}

func TestConsent_PrivateSchemeIsFollowed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	action, fields := r.ask(t, request("redirect_uri", "cursor://planner/callback", "state", `"><x>&'`))
	fields.Set("action", "approve")
	v := leadsTo(t, r.submit(t, action, edgetest.UserSession, fields), "cursor://planner/callback")
	if v.Get("code") != "crc_code" || v.Get("state") != `"><x>&'` {
		t.Errorf("the app gets %v", v)
	}
}

func TestConsent_Narrowed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	action, fields := r.ask(t, request("scope", "mcp:read mcp:write offline_access"))
	fields.Set("action", "approve")
	fields.Set("mustAsk", "1")
	fields.Set("postsPerDay", "5")
	fields.Set("endsAt", "2999-12-31")
	fields.Add("channel", r.Thread.Channel.ID.String())
	fields.Add("customer", "018f0000-0000-7000-8000-0000000000aa")
	leadsTo(t, r.submit(t, action, edgetest.UserSession, fields), planner)
	l := r.server.Consents[0].Limits
	end := time.Date(2999, 12, 31, 23, 0, 0, 0, time.UTC) // midnight in Vienna
	if !l.MustAsk || l.PostsPerDay != 5 || l.EndsAt == nil || !l.EndsAt.Equal(end) ||
		!slices.Equal(l.Channels, []string{r.Thread.Channel.ID.String()}) || len(l.Customers) != 1 {
		t.Errorf("the limits are %+v, ending %v", l, l.EndsAt)
	}
	action, fields = r.ask(t, request("scope", "mcp:read mcp:write offline_access"))
	fields.Set("action", "approve")
	fields.Del("write")
	leadsTo(t, r.submit(t, action, edgetest.UserSession, fields), planner)
	if got := r.server.Consents[1].Scopes.String(); got != "mcp:read offline_access" {
		t.Errorf("without the permission to write, the scopes are %q", got)
	}
}

func TestConsent_WrongLimitIsShownAtItsField(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, change := range map[string][2]string{
		"no number": {"postsPerDay", "many"}, "no posts": {"postsPerDay", "0"}, "a negative number": {"postsPerDay", "-1"}, "a fraction": {"postsPerDay", "1.5"},
		"no date": {"endsAt", "soon"}, "the past": {"endsAt", "2001-01-01"}, "no such day": {"endsAt", "2999-02-30"},
	} {
		action, fields := r.ask(t, request())
		fields.Set("action", "approve")
		fields.Set("mustAsk", "1")
		fields.Set("channel", r.Thread.Channel.ID.String())
		fields.Set(change[0], change[1])
		a := r.submit(t, action, edgetest.UserSession, fields)
		edgetest.Want(t, a, 400, "Please correct the limits", `value="`+change[1]+`"`, `name="mustAsk" value="1" checked`,
			`value="`+r.Thread.Channel.ID.String()+`" checked`, "aria-invalid")
		if len(r.server.Consents) != 0 {
			t.Fatalf("%s: was approved", name)
		}
	}
	r.server.Refusal = &fault.Error{Kind: fault.Invalid, Op: "fake", Fields: []fault.Field{{Name: "channels", Message: "must be channels of the organization"}}}
	action, fields := r.ask(t, request())
	fields.Set("action", "approve")
	edgetest.Want(t, r.submit(t, action, edgetest.UserSession, fields), 400, "must be channels of the organization")
}

func TestConsent_Denied(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	action, fields := r.ask(t, request())
	fields.Set("action", "deny")
	v := leadsTo(t, r.submit(t, action, edgetest.UserSession, fields), planner)
	if v.Get("error") != "access_denied" || v.Get("state") != "the state" || v.Get("iss") != edgetest.BaseURL || v.Has("code") {
		t.Errorf("the client gets %v", v)
	}
	if len(r.server.Consents) != 0 {
		t.Error("a denial was stored")
	}
}

// TestConsent_RefusesForgedAnswers: only the page that the person saw, in the session in which they
// saw it, can approve.
func TestConsent_RefusesForgedAnswers(t *testing.T) {
	t.Parallel()
	clock := edgetest.NewClock()
	r := newRig(t, func(d *edge.Deps) { d.Clock = clock })
	action, good := r.ask(t, request())
	good.Set("action", "approve")
	with := func(name, value string) url.Values {
		v := url.Values{}
		for n, values := range good {
			v[n] = values
		}
		v.Set(name, value)
		return v
	}
	ticket := good.Get("ticket")
	for name, c := range map[string]struct {
		action, session string
		fields          url.Values
		headers         []string
		status          int
	}{
		"another site":           {action: action, session: edgetest.UserSession, fields: good, headers: []string{"Origin", "https://evil.test"}, status: 403},
		"another site's frame":   {action: action, session: edgetest.UserSession, fields: good, headers: []string{"Origin", "null"}, status: 403},
		"same site, other host":  {action: action, session: edgetest.UserSession, fields: good, headers: []string{"Origin", "http://a.crier.test"}, status: 403},
		"no ticket":              {action: action, session: edgetest.UserSession, fields: with("ticket", ""), status: 400},
		"a made-up ticket":       {action: action, session: edgetest.UserSession, fields: with("ticket", "x.y.z"), status: 400},
		"a changed ticket":       {action: action, session: edgetest.UserSession, fields: with("ticket", "A"+ticket[1:]), status: 400},
		"a later end":            {action: action, session: edgetest.UserSession, fields: with("ticket", strings.Replace(ticket, ".", ".z", 1)), status: 400},
		"another request":        {action: strings.Replace(action, "state=the+state", "state=mine", 1), session: edgetest.UserSession, fields: good, status: 400},
		"more scopes":            {action: action + "&scope=mcp%3Aread", session: edgetest.UserSession, fields: good, status: 400},
		"another challenge":      {action: strings.Replace(action, challenge, strings.Repeat("A", 43), 1), session: edgetest.UserSession, fields: good, status: 400},
		"another client":         {action: strings.Replace(action, "ccl_public", "ccl_other", 1), session: edgetest.UserSession, fields: good, status: 400},
		"another redirect":       {action: strings.Replace(action, "planner.test", "evil.test", 1), session: edgetest.UserSession, fields: good, status: 400},
		"while impersonating":    {action: action, session: edgetest.ImpersonatorSession, fields: good, status: 403},
		"another organization":   {action: action, session: edgetest.UserSession, fields: with("organization", "018f0000-0000-7000-8000-0000000000aa"), status: 403},
		"no session":             {action: action, session: "", fields: good, status: 303},
		"a session that is over": {action: action, session: "old", fields: good, status: 303},
		"no action":              {action: action, session: edgetest.UserSession, fields: with("action", ""), status: 400},
	} {
		a := r.submit(t, c.action, c.session, c.fields, c.headers...)
		if a.Status != c.status || len(r.server.Consents) != 0 || strings.Contains(a.Body, "evil.test") || refresh.MatchString(a.Body) {
			t.Errorf("%s: answered %d %s, want %d and no consent", name, a.Status, a.Body, c.status)
		}
		if c.status == 303 && !strings.HasPrefix(a.Header.Get("Location"), "/oauth/authorize?") {
			t.Errorf("%s: leads to %q, want the sign-in page", name, a.Header.Get("Location"))
		}
	}
	clock.Forward(2 * time.Hour)
	edgetest.Want(t, r.submit(t, action, edgetest.UserSession, good), 400, "out of date")
}

// TestConsent_OtherSessionCannotUseTicket: the same person in another session counts as another
// visitor.
func TestConsent_OtherSessionCannotUseTicket(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	action, fields := r.ask(t, request())
	fields.Set("action", "approve")
	edgetest.Want(t, r.submit(t, action, edgetest.OtherSession, fields), 400, "out of date")
	if len(r.server.Consents) != 0 {
		t.Error("another session has used the page")
	}
}

// TestConsent_ChangedClientIsShownAgain: the document may change while the person reads the page.
func TestConsent_ChangedClientIsShownAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	query := request("client_id", "https://writer.test/client.json", "redirect_uri", "https://writer.test/callback")
	action, fields := form(t, r.browse(t, "/oauth/authorize?"+query, edgetest.UserSession))
	fields.Set("action", "approve")
	c := edgetest.Clients()["https://writer.test/client.json"]
	c.ID = r.server.Known[c.ClientID].ID
	c.Name = "Crier itself"
	r.server.SetClient(c)
	edgetest.Want(t, r.submit(t, action, edgetest.UserSession, fields), 400, "Let Crier itself use", "out of date")
	c.RedirectURIs = []string{"https://writer.test/elsewhere"}
	r.server.SetClient(c)
	a := r.submit(t, action, edgetest.UserSession, fields)
	edgetest.Want(t, a, 400, "cannot connect")
	if len(r.server.Consents) != 0 || refresh.MatchString(a.Body) {
		t.Error("a changed client was approved")
	}
}

// TestConsent_KeepsExistingLimits: approving replaces the limits of the existing grant, so that the
// form must not open without them.
func TestConsent_KeepsExistingLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	end := time.Date(2999, 12, 31, 23, 0, 0, 0, time.UTC) // midnight in Vienna
	g := edgetest.AGrant()
	g.Client, g.Scopes, g.WriteDeclined = r.server.Known["ccl_public"], oidc.Scopes{oidc.ScopeRead}, true
	const gone = "018f0000-0000-7000-8000-0000000000aa"
	channel := r.Thread.Channel.ID.String()
	g.Limits = oidc.Limits{Channels: []string{channel, gone}, MustAsk: true, PostsPerDay: 3, EndsAt: &end}
	other := edgetest.AGrant()
	other.Client, other.Org = g.Client, id.New[tenancy.OrgTag]()
	r.server.Granted = []oidc.Grant{other, edgetest.AGrant()}
	const notice = "in all its installations"
	a := r.browse(t, "/oauth/authorize?"+request(), edgetest.UserSession)
	if _, fields := form(t, a); strings.Contains(a.Body, notice) || fields.Has("mustAsk") || !fields.Has("write") {
		t.Errorf("a grant of another organization or client is prefilled: %s", a.Body)
	}
	r.server.Granted = append(r.server.Granted, g)
	a = r.browse(t, "/oauth/authorize?"+request(), edgetest.UserSession)
	edgetest.Want(t, a, 200, notice, "A channel that no longer exists")
	action, fields := form(t, a)
	fields.Set("action", "approve")
	leadsTo(t, r.submit(t, action, edgetest.UserSession, fields), planner)
	c := r.server.Consents[0]
	if l := c.Limits; !l.MustAsk || l.PostsPerDay != 3 || l.EndsAt == nil || !l.EndsAt.Equal(end) ||
		!slices.Equal(l.Channels, g.Limits.Channels) || c.Scopes.String() != "mcp:read" {
		t.Errorf("the consent is %+v, want the limits %+v", c, g.Limits)
	}
	r.server.Consents = nil
	fields.Set("postsPerDay", "many")
	fields.Del("mustAsk")
	a = r.submit(t, action, edgetest.UserSession, fields)
	edgetest.Want(t, a, 400, notice, `value="many"`)
	if _, fields := form(t, a); fields.Has("mustAsk") {
		t.Error("the form forgets what the person has changed")
	}
}

// TestConsent_ClientAsksToWriteLater: a client that was approved to read asks to write, which its
// person has not declined.
func TestConsent_ClientAsksToWriteLater(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g := edgetest.AGrant()
	g.Client, g.Scopes, g.Limits = r.server.Known["ccl_public"], oidc.Scopes{oidc.ScopeRead}, oidc.Limits{}
	r.server.Granted = []oidc.Grant{g}
	action, fields := form(t, r.browse(t, "/oauth/authorize?"+request(), edgetest.UserSession))
	fields.Set("action", "approve")
	leadsTo(t, r.submit(t, action, edgetest.UserSession, fields), planner)
	if c := r.server.Consents[0]; !c.Scopes.Writes() {
		t.Errorf("the consent is %+v, want it to write", c)
	}
}

// TestConsent_RefetchesDocument: a client that was taken over may have removed a redirect URI since
// its document was fetched for the page.
func TestConsent_RefetchesDocument(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const client, callback = "https://writer.test/client.json", "https://writer.test/callback"
	action, fields := form(t, r.browse(t, "/oauth/authorize?"+request("client_id", client, "redirect_uri", callback), edgetest.UserSession))
	fields.Set("action", "approve")
	fresh := r.server.Known[client]
	fresh.RedirectURIs = []string{"https://writer.test/elsewhere"}
	r.server.Documents = map[string]oidc.Client{client: fresh}
	a := r.submit(t, action, edgetest.UserSession, fields)
	edgetest.Want(t, a, 400, "cannot connect", "not one that the client has registered")
	body := `{"client_id":"` + client + `","action":"approve","redirect_uri":"` + callback + `","code_challenge":"` + challenge +
		`","code_challenge_method":"S256"}`
	edgetest.Want(t, r.Call(t, "POST", "/oauth/authorize", body, "Content-Type", "application/json", "auth", edgetest.UserSession),
		400, "not one that the client has registered")
	if len(r.server.Consents) != 0 || refresh.MatchString(a.Body) {
		t.Error("a redirect URI that the document no longer has was approved")
	}
	fresh.RedirectURIs, fresh.Name = []string{callback}, "Crier itself"
	r.server.Documents[client] = fresh
	edgetest.Want(t, r.submit(t, action, edgetest.UserSession, fields), 400, "Let Crier itself use", "out of date")
	delete(r.server.Documents, client)
	leadsTo(t, r.submit(t, action, edgetest.UserSession, fields), callback)
}

func TestConsent_ChoosesOrganization(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for session, words := range map[string]string{
		edgetest.SuspendedSession: "suspended", edgetest.EnrollSession: "second factor", edgetest.HomelessSession: "not a member",
	} {
		a := r.browse(t, "/oauth/authorize?"+request(), session)
		edgetest.Want(t, a, 200, words, "Deny")
		if strings.Contains(a.Body, `value="approve"`) {
			t.Errorf("%s: the page lets the person approve", session)
		}
	}
	a := r.browse(t, "/oauth/authorize?"+request("organization", "018f0000-0000-7000-8000-0000000000aa"), edgetest.UserSession)
	edgetest.Want(t, a, 200, "You are not a member of this organization.", "organization="+edgetest.OrgID.String())
	a = r.browse(t, "/oauth/authorize?"+request(), edgetest.ImpersonatorSession)
	edgetest.Want(t, a, 403, "Stop impersonating")
}

func TestAnswer_JSON(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	body := func(change map[string]any) string {
		all := map[string]any{
			"client_id": "ccl_public", "action": "approve", "state": "s", "redirect_uri": planner + "?from=crier",
			"code_challenge": challenge, "code_challenge_method": "S256",
		}
		for name, value := range change {
			all[name] = value
		}
		b, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	post := func(body string, headers ...string) edgetest.Answer {
		t.Helper()
		return r.Call(t, "POST", "/oauth/authorize", body, append([]string{"Content-Type", "application/json"}, headers...)...)
	}
	a := post(body(map[string]any{"scope": "mcp:read", "mustAsk": true, "postsPerDay": 2}), "auth", edgetest.UserSession)
	edgetest.Want(t, a, http.StatusCreated)
	v := parameters(t, edgetest.Decode[struct{ Redirect string }](t, a).Redirect, planner)
	if v.Get("code") != "crc_code" || v.Get("state") != "s" || v.Get("iss") != edgetest.BaseURL {
		t.Errorf("the redirect has %v", v)
	}
	c := r.server.Consents[0]
	if c.Scopes.String() != "mcp:read" || !c.Limits.MustAsk || c.Limits.PostsPerDay != 2 || c.Token == "" {
		t.Errorf("the consent is %+v", c)
	}
	a = post(body(map[string]any{"action": "deny"}), "auth", edgetest.UserSession)
	edgetest.Want(t, a, http.StatusCreated, "error=access_denied")
	static := map[string]any{"client_id": "ccl_static", "redirect_uri": "", "code_challenge": "", "code_challenge_method": ""}
	edgetest.Want(t, post(body(static), "auth", edgetest.UserSession), http.StatusCreated, "https://newsroom.test/callback?code=")
	if r.server.Consents[1].Request.RedirectSent {
		t.Error("the redirect URI counts as sent")
	}
	for name, c := range map[string]struct {
		body    string
		headers []string
		status  int
		part    string
	}{
		"no session":         {body: body(nil), status: 401, part: "Sign in first"},
		"a cookie alone":     {body: body(nil), headers: []string{"Cookie", "auth=" + edgetest.UserSession}, status: 403},
		"another site":       {body: body(nil), headers: []string{"Cookie", "auth=" + edgetest.UserSession, "Origin", "https://evil.test"}, status: 403},
		"as text":            {body: body(nil), headers: []string{"auth", edgetest.UserSession, "Content-Type", "text/plain"}, status: 400},
		"impersonating":      {body: body(nil), headers: []string{"auth", edgetest.ImpersonatorSession}, status: 403},
		"another action":     {body: body(map[string]any{"action": "maybe"}), headers: []string{"auth", edgetest.UserSession}, status: 400, part: "action must be"},
		"an unknown client":  {body: body(map[string]any{"client_id": "x"}), headers: []string{"auth", edgetest.UserSession}, status: 400, part: "invalid_client"},
		"another redirect":   {body: body(map[string]any{"redirect_uri": "https://evil.test/"}), headers: []string{"auth", edgetest.UserSession}, status: 400, part: "invalid_request"},
		"no challenge":       {body: body(map[string]any{"code_challenge": ""}), headers: []string{"auth", edgetest.UserSession}, status: 400, part: "PKCE"},
		"plain":              {body: body(map[string]any{"code_challenge_method": "plain"}), headers: []string{"auth", edgetest.UserSession}, status: 400, part: "S256"},
		"a foreign resource": {body: body(map[string]any{"resource": "https://evil.test"}), headers: []string{"auth", edgetest.UserSession}, status: 400, part: "invalid_target"},
		"a suspended one":    {body: body(nil), headers: []string{"auth", edgetest.SuspendedSession}, status: 403, part: "suspended"},
		"a wrong ticket":     {body: body(map[string]any{"ticket": "x"}), headers: []string{"auth", edgetest.UserSession}, status: 400, part: "out of date"},
		"a wrong limit":      {body: body(map[string]any{"postsPerDay": -1}), headers: []string{"auth", edgetest.UserSession}, status: 400, part: "postsPerDay"},
		"no JSON":            {body: "{", headers: []string{"auth", edgetest.UserSession}, status: 400},
		"a large body":       {body: body(map[string]any{"state": strings.Repeat("x", 70_000)}), headers: []string{"auth", edgetest.UserSession}, status: 413},
	} {
		if name == "as text" {
			a = r.Call(t, "POST", "/oauth/authorize", c.body, c.headers...)
		} else {
			a = post(c.body, c.headers...)
		}
		if a.Status != c.status || !strings.Contains(a.Body, c.part) || len(r.server.Consents) != 2 {
			t.Errorf("%s: answered %d %s, want %d %s", name, a.Status, a.Body, c.status, c.part)
		}
	}
}
