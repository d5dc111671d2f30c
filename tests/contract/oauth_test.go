package contract

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"crier/tests/sandboxtest"
)

// The application that the tests use at the sandbox.
const (
	clientID     = "client-of-the-tests"
	clientSecret = "secret-of-the-tests"
	callback     = base + "/connect/sandbox-oauth"
)

// startOAuth runs a service with an application at its sandbox.
func startOAuth(t testing.TB) *rig {
	t.Helper()
	return startOAuthWith(t, map[string]string{})
}

// startOAuthWith is like startOAuth with more settings. It adds the application's credentials to
// them.
func startOAuthWith(t testing.TB, settings map[string]string) *rig {
	t.Helper()
	settings["SANDBOX_OAUTH_CLIENT_ID"], settings["SANDBOX_OAUTH_CLIENT_SECRET"] = clientID, clientSecret
	r := start(t, settings)
	for _, app := range []sandboxtest.App{
		{ClientID: clientID, Secret: clientSecret, Redirects: []string{callback}},
		{ClientID: "client-of-the-organization", Secret: "its secret", Redirects: []string{callback}},
	} {
		if err := r.judge().AddApp(t.Context(), app); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// visit opens an address of the service like a browser that was redirected to it, without a
// credential.
func (o org) visit(t *testing.T, method, address string) answer {
	t.Helper()
	o.prefix, o.key = "", ""
	return o.do(t, method, strings.TrimPrefix(address, base), nil)
}

// consent goes through the consent page of the sandbox and returns the service's callback address.
func (o org) consent(t *testing.T, address string, c sandboxtest.Consent) string {
	t.Helper()
	back, err := o.judge().Browse(t.Context(), address, c)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(back, callback+"?") {
		t.Fatalf("the sandbox redirects to %s, want the callback page", back)
	}
	return back
}

var pageForm = regexp.MustCompile(`action="(\?[^"]*)"><button>([^<]*)</button>`)

// forms returns the addresses of the forms on the callback page, keyed by the name of the account.
func forms(a answer) map[string]string {
	out := map[string]string{}
	for _, m := range pageForm.FindAllStringSubmatch(a.Body, -1) {
		out[m[2]] = callback + html.UnescapeString(m[1])
	}
	return out
}

// form returns the address of the form on the callback page whose query starts with the parameter,
// or "" if there is none.
func form(a answer, parameter string) string {
	for _, address := range forms(a) {
		if strings.HasPrefix(address, callback+"?"+parameter+"=") {
			return address
		}
	}
	return ""
}

// arrive opens the callback address in a browser without a session, and consents if the page asks.
func (o org) arrive(t *testing.T, address string) answer {
	t.Helper()
	page := o.visit(t, http.MethodGet, address)
	if confirm := form(page, "confirm"); confirm != "" {
		return o.visit(t, http.MethodPost, confirm)
	}
	return page
}

// connectPage connects a page of a sandbox user through the public API and the callback page.
func (o org) connectPage(t *testing.T, user, name string) channel {
	t.Helper()
	begun := read[next](t, o.get(t, "/social/sandbox-oauth").want(t, http.StatusOK))
	page := o.arrive(t, o.consent(t, begun.URL, sandboxtest.Consent{User: user})).want(t, http.StatusOK)
	chosen := forms(page)[name]
	if chosen == "" {
		t.Fatalf("the page offers %v, want %s among them: %s", forms(page), name, page.Body)
	}
	o.visit(t, http.MethodPost, chosen).want(t, http.StatusOK)
	for _, c := range read[[]channelRecord](t, o.get(t, "/integrations")) {
		if c.Name == name {
			return channel{id: c.ID, account: name}
		}
	}
	t.Fatalf("the channel %s is not listed", name)
	return channel{}
}

func TestOAuth(t *testing.T) {
	t.Parallel()
	subjects(t, startOAuth(t), map[string]subject{
		"a browser connects a page, and a post is published":             testOAuthConnect,
		"a state works once, and refusals connect nothing":               testOAuthRefusals,
		"a reconnect keeps the channel":                                  testOAuthReconnect,
		"the routes to authorize refuse wrong input":                     testOAuthInput,
		"the session chooses a page":                                     testOAuthSession,
		"a stranger is asked before anything is given":                   testConsent,
		"a member of the organization is not asked":                      testConsentOfMember,
		"this was not me disconnects once":                               testDisown,
		"an old page leaves a later connect alone":                       testDisownOld,
		"who acts as a member is named to the end":                       testConnectActing,
		"tools, settings and a dead access":                              testTools,
		"a lost id is found again":                                       testMissing,
		"an organization has its own application":                        testProviderCredentials,
		"groups are listed":                                              testGroups,
		"a channel of a revoked access needs a refresh and has a reason": testRevokedAccess,
	})
}

func testOAuthConnect(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.connectPage(t, "anna", "anna.shop")
	o.reaches(t, o.create(t, now(c.id, part("Hello from a page"))), "PUBLISHED")
	r.wantTexts(t, c, "Hello from a page")
}

func testOAuthRefusals(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	begin := func() string { return read[next](t, o.get(t, "/social/sandbox-oauth")).URL }
	refused := func(address string, status int, words string) {
		t.Helper()
		a := o.arrive(t, address).want(t, status)
		kind := a.Header.Get("Content-Type")
		if !strings.HasPrefix(kind, "text/html") || !strings.Contains(a.Body, words) {
			t.Errorf("got the page %s (%s), want %q in it", a.Body, kind, words)
		}
	}
	good := o.consent(t, begin(), sandboxtest.Consent{User: "bob"})
	wrong := strings.Replace(good, "state=", "state=x", 1)
	refused(wrong, http.StatusBadRequest, "start over")
	refused(callback, http.StatusBadRequest, "code")
	refused(strings.Replace(good, "sandbox-oauth", "sandbox", 1), http.StatusBadRequest, "cannot be connected this way")
	o.arrive(t, good).want(t, http.StatusOK)
	refused(good, http.StatusBadRequest, "start over")
	refused(o.consent(t, begin(), sandboxtest.Consent{User: "bob", Deny: true}), http.StatusBadRequest, "did not allow")
	refused(o.consent(t, begin(), sandboxtest.Consent{User: "bob", Withhold: "publish"}), http.StatusConflict, "permission")

	page := o.arrive(t, o.consent(t, begin(), sandboxtest.Consent{User: "bob"}))
	chosen := forms(page)["bob.news"]
	bad, err := url.Parse(chosen)
	if err != nil {
		t.Fatal(err)
	}
	q := bad.Query()
	q.Set("page", "nobody")
	again := o.visit(t, http.MethodPost, callback+"?"+q.Encode()).want(t, http.StatusBadRequest)
	if len(forms(again)) != 2 {
		t.Errorf("after a wrong choice the page offers %v, want both pages again", forms(again))
	}
	if n := len(read[[]channelRecord](t, o.get(t, "/integrations"))); n != 0 {
		t.Fatalf("%d channels are connected, want none", n)
	}
	o.visit(t, http.MethodPost, chosen).want(t, http.StatusOK)
	o.visit(t, http.MethodPost, chosen).want(t, http.StatusBadRequest)
}

func testOAuthReconnect(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.connectPage(t, "carl", "carl.news")
	address := read[next](t, o.get(t, "/social/sandbox-oauth?refresh="+c.id)).URL
	a := o.arrive(t, o.consent(t, address, sandboxtest.Consent{User: "carl"})).want(t, http.StatusOK)
	if form(a, "disown") == "" || len(forms(a)) != 1 || !strings.Contains(a.Body, "carl.news") {
		t.Errorf("a reconnect is answered with %s, want the channel without a choice", a.Body)
	}
	list := read[[]channelRecord](t, o.get(t, "/integrations"))
	if len(list) != 1 || list[0].ID != c.id {
		t.Errorf("the channels are %+v, want the one with the id %s", list, c.id)
	}
	address = read[next](t, o.get(t, "/social/sandbox-oauth?refresh="+c.id)).URL
	o.arrive(t, o.consent(t, address, sandboxtest.Consent{User: "somebody"})).want(t, http.StatusBadRequest)
}

func testOAuthInput(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	for path, status := range map[string]int{
		"/social/sandbox": 400, "/social/nothing": 400, "/social/mastodon": 400, "/social/%00": 400,
		"/social/sandbox-oauth?refresh=nothing": 400, "/social/sandbox-oauth?refresh=": 200,
	} {
		if a := o.get(t, path); a.Status != status {
			t.Errorf("GET %s is answered with %v, want %d", path, a, status)
		}
	}
	type authorized struct {
		URL        string
		Authorized bool
	}
	for _, tc := range []struct {
		id     string
		body   any
		status int
	}{
		{id: "sandbox-oauth", status: 201}, {id: "sandbox-oauth", body: m{}, status: 201},
		{id: "sandbox-oauth", body: m{"force": true, "refresh": ""}, status: 201},
		{id: "sandbox-oauth", body: m{"refresh": "nothing"}, status: 400},
		{id: "sandbox-oauth", body: m{"refresh": 7}, status: 400}, {id: "sandbox-oauth", body: m{"force": "x"}, status: 400},
		{id: "sandbox-oauth", body: "[]", status: 400}, {id: "sandbox-oauth", body: "{", status: 400},
		{id: "sandbox", body: m{}, status: 400}, {id: "nothing", body: m{}, status: 404}, {id: "mastodon", body: m{}, status: 404},
	} {
		a := o.do(t, http.MethodPost, "/connectors/"+tc.id+"/authorize", tc.body)
		if a.Status != tc.status {
			t.Errorf("authorize %s with %v is answered with %v, want %d", tc.id, tc.body, a, tc.status)
		}
		if got := (authorized{}); a.Status == 201 {
			got = read[authorized](t, a)
			if got.URL == "" || got.Authorized {
				t.Errorf("authorize %s with %v is answered with %v, want an address", tc.id, tc.body, a)
			}
		}
	}
	o.connectPage(t, "dora", "dora.news")
	path := "/connectors/sandbox-oauth/authorize"
	if got := read[authorized](t, o.do(t, http.MethodPost, path, m{}).want(t, 201)); !got.Authorized || got.URL != "" {
		t.Errorf("with a channel that works authorize answers %+v, want authorized", got)
	}
	if got := read[authorized](t, o.do(t, http.MethodPost, path, m{"force": true}).want(t, 201)); got.URL == "" {
		t.Errorf("with force authorize answers %+v, want an address", got)
	}
	type connectorRecord struct {
		ID           string
		Authorized   bool
		Planned      bool
		Capabilities []string
		Features     []string
	}
	byID := map[string]connectorRecord{}
	for _, c := range read[[]connectorRecord](t, o.get(t, "/connectors?planned=true")) {
		byID[c.ID] = c
	}
	if c := byID["sandbox-oauth"]; !c.Authorized || len(c.Features) != 5 || len(c.Capabilities) != 3 {
		t.Errorf("sandbox-oauth is listed as %+v, want all features", c)
	}
	if c := byID["x"]; !c.Planned || c.Authorized {
		t.Errorf("x is listed as %+v, want planned", c)
	}
	if all := read[[]connectorRecord](t, o.get(t, "/connectors")); len(all) != 4 {
		t.Errorf("there are %d connectors without the planned ones, want 4", len(all))
	}
}

func testOAuthSession(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	ask := o.dashboard(t)
	type chosen struct {
		ID             string
		InBetweenSteps bool
		Pages          []struct{ ID, Name string }
		ReturnURL      string
	}
	connect := func() (chosen, string) {
		t.Helper()
		begun := read[next](t, ask(http.MethodGet, "/integrations/social/sandbox-oauth?refresh=&externalUrl=&redirectUrl=/done&onboarding=", nil).want(t, 200))
		back, err := url.Parse(o.consent(t, begun.URL, sandboxtest.Consent{User: "emil"}))
		if err != nil {
			t.Fatal(err)
		}
		state := back.Query().Get("state")
		body := m{"state": state, "code": back.Query().Get("code"), "timezone": "60"}
		out := read[chosen](t, ask(http.MethodPost, "/integrations/social-connect/sandbox-oauth", body).want(t, 201))
		if !out.InBetweenSteps || len(out.Pages) != 2 || out.ReturnURL != "/done" {
			t.Fatalf("the connect is answered with %+v, want two pages to choose from", out)
		}
		return out, state
	}
	half, _ := connect()
	path := "/integrations/provider/" + half.ID + "/connect"
	ask(http.MethodPost, path, m{}).want(t, 400)
	ask(http.MethodPost, path, m{"page": "nothing"}).want(t, 400)
	ask(http.MethodPost, path, m{"page": 7}).want(t, 400)
	ask(http.MethodPost, "/integrations/provider/nothing/connect", m{"page": half.Pages[0].ID}).want(t, 404)
	other := r.organization(t)
	other.dashboard(t)(http.MethodPost, path, m{"page": half.Pages[0].ID}).want(t, 404)
	ask(http.MethodPost, path, m{"page": half.Pages[0].ID}).want(t, 201)
	ask(http.MethodPost, path, m{"page": half.Pages[0].ID}).want(t, 400)
	list := read[[]channelRecord](t, o.get(t, "/integrations"))
	if len(list) != 1 || list[0].ID != half.ID {
		t.Errorf("the channels are %+v, want one with the id %s", list, half.ID)
	}
	second, state := connect()
	visitor := o
	visitor.prefix, visitor.key = "", ""
	public := "/integrations/public/provider/" + second.ID + "/connect"
	body := m{"state": state, "id": second.Pages[1].ID}
	visitor.do(t, http.MethodPost, public, m{"id": second.Pages[1].ID}).want(t, 400)
	visitor.do(t, http.MethodPost, public, m{"state": "wrong", "id": second.Pages[1].ID}).want(t, 400)
	visitor.do(t, http.MethodPost, "/integrations/public/provider/"+half.ID+"/connect", body).want(t, 404)
	visitor.do(t, http.MethodPost, public, body).want(t, 201)
	visitor.do(t, http.MethodPost, public, body).want(t, 400)
}

func testTools(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.connectPage(t, "fred", "fred.news")
	plain := o.channel(t, "A")
	type settings struct {
		Output struct {
			Rules, LengthUnit string
			MaxLength         int
			Settings          any
			Tools             []struct {
				MethodName string
				DataSchema []struct{ Key, Type, Description string }
			}
		}
	}
	got := read[settings](t, o.get(t, "/integration-settings/"+c.id).want(t, 200)).Output
	if _, isObject := got.Settings.(m); !isObject || got.Rules == "" || got.MaxLength != 500 || len(got.Tools) != 1 {
		t.Errorf("the settings are %+v, want a schema and one tool", got)
	}
	if text, ok := read[settings](t, o.get(t, "/integration-settings/"+plain.id)).Output.Settings.(string); !ok || text == "" {
		t.Errorf("the settings of a platform without any are %q, want a sentence", text)
	}
	o.get(t, "/integration-settings/nothing").want(t, 404)

	path := "/integration-trigger/" + c.id
	a := o.do(t, http.MethodPost, path, m{"methodName": "topics", "data": m{"query": "cat", "other": []any{}}}).want(t, 201)
	if !strings.Contains(a.Body, `{"output":[{"id":"cats","name":"Cats"}]}`) {
		t.Errorf("the tool is answered with %v, want the topic Cats", a)
	}
	for _, tc := range []struct {
		path   string
		body   any
		status int
	}{
		{path: path, body: m{"methodName": "topics"}, status: 201}, {path: path, body: m{"methodName": "Refresh"}, status: 404},
		{path: path, body: m{"methodName": "topics", "data": m{"query": 7}}, status: 400},
		{path: path, body: m{"methodName": "topics", "data": []any{}}, status: 400}, {path: path, body: m{}, status: 400},
		{path: path, body: m{"methodName": ""}, status: 400}, {path: path, body: "null", status: 400},
		{path: "/integration-trigger/nothing", body: m{"methodName": "topics"}, status: 404},
		{path: "/integration-trigger/" + plain.id, body: m{"methodName": "topics"}, status: 404},
	} {
		if a := o.do(t, http.MethodPost, tc.path, tc.body); a.Status != tc.status {
			t.Errorf("%s with %v is answered with %v, want %d", tc.path, tc.body, a, tc.status)
		}
	}
	ask := o.dashboard(t)
	function := m{"name": "topics", "id": c.id, "data": m{"query": "wea"}}
	if a := ask(http.MethodPost, "/integrations/function", function).want(t, 201); !strings.Contains(a.Body, "weather") {
		t.Errorf("the function is answered with %v, want the topic Weather", a)
	}
	r.fault(t, c, "error_before", m{"path": "/api/topics"}, m{"times": 2})
	o.do(t, http.MethodPost, path, m{"methodName": "topics"}).refusal(t, 502)
	if a := ask(http.MethodPost, "/integrations/function", function).want(t, 201); strings.TrimSpace(a.Body) != "false" {
		t.Errorf("a failure of the platform is answered with %v, want false", a)
	}
	// An expired access token is refreshed once, and the tool is run again.
	r.fault(t, c, "expire_token", m{"path": "/api/topics"}, nil)
	o.do(t, http.MethodPost, path, m{"methodName": "topics"}).want(t, 201)
	if err := r.judge().Revoke(t.Context(), "fred"); err != nil {
		t.Fatal(err)
	}
	o.do(t, http.MethodPost, path, m{"methodName": "topics"}).refusal(t, 401)
	flagged := false
	for _, listed := range read[[]channelRecord](t, o.get(t, "/integrations")) {
		flagged = flagged || listed.ID == c.id && listed.RefreshNeeded
	}
	if !flagged {
		t.Error("the channel of a revoked access is not flagged")
	}
	o.do(t, http.MethodPost, path, m{"methodName": "topics"}).refusal(t, 401)
}

func testMissing(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.connectPage(t, "gina", "gina.news")
	r.fault(t, c, "lose_id", m{}, nil)
	lost := o.reaches(t, o.create(t, now(c.id, part("Lost"))), "PUBLISHED")
	found := o.reaches(t, o.create(t, now(c.id, part("Found"))), "PUBLISHED")
	if lost.ReleaseID != "missing" {
		t.Fatalf("the release id is %q, want missing", lost.ReleaseID)
	}
	type item struct{ ID, URL string }
	listed := read[[]item](t, o.get(t, "/posts/"+lost.ID+"/missing").want(t, 200))
	if len(listed) != 2 || listed[0].ID != found.ReleaseID || listed[1].URL == "" {
		t.Fatalf("missing lists %+v, want both posts of the page", listed)
	}
	if none := o.get(t, "/posts/"+found.ID+"/missing").want(t, 200); strings.TrimSpace(none.Body) != "[]" {
		t.Errorf("a post with a release lists %v, want nothing", none)
	}
	o.get(t, "/posts/nothing/missing").want(t, 404)
	ask := o.dashboard(t)
	ask(http.MethodGet, "/posts/"+lost.ID+"/missing", nil).want(t, 200)

	path := "/posts/" + lost.ID + "/release-id"
	for _, body := range []any{m{}, m{"releaseId": ""}, m{"releaseId": "missing"}, m{"releaseId": 7}, m{"releaseId": strings.Repeat("x", 2000)}, "[]", "{"} {
		o.do(t, http.MethodPut, path, body).refusal(t, 400)
	}
	o.do(t, http.MethodPut, "/posts/nothing/release-id", m{"releaseId": "x"}).refusal(t, 404)
	o.do(t, http.MethodPut, path, m{"releaseId": listed[1].ID}).want(t, 200)
	if got := o.post(t, lost.ID); got.ReleaseID != listed[1].ID || got.events()[len(got.events())-1] != "released" {
		t.Errorf("the post is %+v, want the release %s", got, listed[1].ID)
	}
	o.do(t, http.MethodPut, path, m{"releaseId": "another"}).refusal(t, 409)
	ask(http.MethodPut, path, m{"releaseId": "another"}).refusal(t, 409)
	draft := o.create(t, request("draft", tomorrow(), entry(c.id, part("Draft"))))
	ask(http.MethodPut, "/posts/"+draft+"/release-id", m{"releaseId": "by hand"}).want(t, 200)
	// A person who found the post on the platform does not get it a second time.
	o.do(t, http.MethodPut, "/posts/"+draft+"/status", m{"status": "schedule"}).refusal(t, 409)
	if got := o.post(t, draft); got.State != "DRAFT" || got.ReleaseID != "by hand" {
		t.Errorf("the refused post is %+v, want a draft with its release", got)
	}
	o.do(t, http.MethodPut, "/posts/"+draft+"/status", m{"status": "schedule", "republish": true}).want(t, 200)
	o.do(t, http.MethodPut, "/posts/"+draft+"/release-id", m{"releaseId": "while scheduled"}).refusal(t, 409)
}

func testProviderCredentials(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	ask := o.dashboard(t)
	type credentials struct {
		Provider         string
		Configured       bool
		Source           string
		AffectedChannels int
		Fields           []struct {
			Key, Value  string
			Secret, Set bool
		}
	}
	const path = "/settings/provider-credentials"
	list := read[[]credentials](t, ask(http.MethodGet, path, nil).want(t, 200))
	if len(list) != 1 || list[0].Source != "env" || !list[0].Configured {
		t.Fatalf("the credentials are %+v, want those of the instance", list)
	}
	o.connectPage(t, "hans", "hans.news") // uses the application of the instance
	own := path + "/sandbox-oauth"
	ask(http.MethodGet, path+"/nothing", nil).want(t, 404)
	ask(http.MethodPost, path+"/nothing", m{"credentials": m{}}).want(t, 404)
	ask(http.MethodDelete, path+"/nothing", nil).want(t, 404)
	for _, body := range []any{
		m{}, m{"credentials": m{}}, m{"credentials": m{"clientId": "x"}}, m{"credentials": m{"clientId": "x", "clientSecret": ""}},
		m{"credentials": m{"clientId": "x", "clientSecret": "y", "other": "z"}}, m{"credentials": []any{}}, "null",
	} {
		ask(http.MethodPost, own, body).refusal(t, 400)
	}
	body := m{"credentials": m{"clientId": "client-of-the-organization", "clientSecret": "its secret"}}
	a := ask(http.MethodPost, own, body).want(t, 201)
	set := read[credentials](t, a)
	if set.Source != "organization" || set.AffectedChannels != 0 || strings.Contains(a.Body, "its secret") {
		t.Fatalf("the new credentials are answered with %v, want masked ones of the organization", a)
	}
	begun := read[next](t, o.get(t, "/social/sandbox-oauth")).URL
	if !strings.Contains(begun, "client-of-the-organization") {
		t.Errorf("the address is %s, want the application of the organization", begun)
	}
	c := o.connectPage(t, "ida", "ida.news")
	gone := read[credentials](t, ask(http.MethodDelete, own, nil).want(t, 200))
	if gone.Source != "env" || gone.AffectedChannels != 1 {
		t.Fatalf("the deletion is answered with %+v, want one channel that is affected", gone)
	}
	r.fault(t, c, "expire_token", m{"path": "/api/topics"}, nil)
	refused := o.do(t, http.MethodPost, "/integration-trigger/"+c.id, m{"methodName": "topics"}).want(t, 401)
	if !strings.Contains(refused.Body, "removed or changed") {
		t.Errorf("the next refresh is answered with %v, want the reason", refused)
	}
}

func testGroups(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	if a := o.get(t, "/groups").want(t, 200); strings.TrimSpace(a.Body) != "[]" {
		t.Errorf("a new organization has the groups %v, want none", a)
	}
}

func testRevokedAccess(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.connectPage(t, "jana", "jana.news")
	if err := r.judge().Revoke(t.Context(), "jana"); err != nil {
		t.Fatal(err)
	}
	o.create(t, now(c.id, part("Never out")))
	type flagged struct {
		RefreshNeeded bool
		RefreshReason string
	}
	var got []flagged
	eventually(t, "the flag", func() bool {
		got = read[[]flagged](t, o.get(t, "/integrations"))
		return got[0].RefreshNeeded
	}, func() any { return got })
	if !strings.Contains(got[0].RefreshReason, "reconnect") {
		t.Errorf("the reason is %q, want one that says what to do", got[0].RefreshReason)
	}
	// Reconnecting publishes the posts that waited.
	address := read[next](t, o.get(t, "/social/sandbox-oauth?refresh="+c.id)).URL
	o.arrive(t, o.consent(t, address, sandboxtest.Consent{User: "jana"})).want(t, http.StatusOK)
	r.publishes(t, c, 1)
}
