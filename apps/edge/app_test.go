package edge_test

import (
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"crier/apps/edge"
	"crier/platform/clock"
	"crier/platform/fault"
	"crier/publishing"
	"crier/tenancy"
)

const goodLogin = `{"provider":"LOCAL","email":" Ada@Example.org","password":"right"}`

func TestLogin_SetsCookie(t *testing.T) {
	t.Parallel()
	for base, secure := range map[string]bool{
		"http://localhost:4000": false, "http://127.0.0.1:4000": false, "https://crier.test": true, "http://crier.test": true,
	} {
		s := start(t, map[string]string{"BASE_URL": base})
		a := s.call(t, "POST", "/auth/login", goodLogin, "Content-Type", "application/json", "Origin", base)
		want(t, a, 201, `{"login":true}`)
		c := strings.ToLower(a.header.Get("Set-Cookie"))
		for _, part := range []string{"auth=session-token", "httponly", "samesite=lax", "path=/"} {
			if !strings.Contains(c, part) {
				t.Errorf("%s is not in %s", part, c)
			}
		}
		if strings.Contains(c, "secure") != secure || strings.Contains(c, "domain") || a.header.Get("Reload") != "true" {
			t.Errorf("%s: got the headers %v, want a cookie without domain, secure %v, and reload", base, a.header, secure)
		}
	}
}

func TestLogin_RefusesInvalidRequests(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	json := []string{"Content-Type", "application/json"}
	for name, c := range map[string]struct {
		body    string
		headers []string
		status  int
	}{
		"a form":                    {body: goodLogin, headers: []string{"Content-Type", "text/plain"}, status: 400},
		"no content type":           {body: goodLogin, headers: nil, status: 400},
		"another site":              {body: goodLogin, headers: append([]string{"Origin", "https://evil.test"}, json...), status: 403},
		"an opaque origin":          {body: goodLogin, headers: append([]string{"Origin", "null"}, json...), status: 403},
		"another site's fetch":      {body: goodLogin, headers: append([]string{"Sec-Fetch-Site", "cross-site"}, json...), status: 403},
		"a cookie from nowhere":     {body: goodLogin, headers: append([]string{"Cookie", "track=1"}, json...), status: 403},
		"no object":                 {body: "[]", headers: json, status: 400},
		"nothing":                   {body: "", headers: json, status: 400},
		"numbers":                   {body: `{"email":1,"password":2}`, headers: json, status: 400},
		"no address":                {body: `{"email":"ada","password":"right"}`, headers: json, status: 400},
		"another way of signing in": {body: `{"provider":"GITHUB","email":"ada@example.org","password":"right"}`, headers: json, status: 400},
		"a very long password":      {body: `{"email":"ada@example.org","password":"` + strings.Repeat("x", 129) + `"}`, headers: json, status: 400},
		"a wrong password":          {body: `{"email":"ada@example.org","password":"wrong"}`, headers: json, status: 400},
	} {
		a := s.call(t, "POST", "/auth/login", c.body, c.headers...)
		if a.status != c.status || a.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: answered %d %s, want %d", name, a.status, a.body, c.status)
		}
	}
	want(t, s.call(t, "POST", "/auth/login", goodLogin, append([]string{"Sec-Fetch-Site", "same-origin", "Cookie", "track=1"}, json...)...), 201)
	want(t, s.call(t, "POST", "/auth/login", goodLogin, json...), 201)
}

// hand is a clock that the test sets.
type hand struct {
	mu  sync.Mutex
	now time.Time
}

func (h *hand) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hand) forward(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

var _ clock.Clock = (*hand)(nil)

func TestSession_ByCookieOrHeader(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	path := "/integrations/social/sandbox?refresh=&externalUrl=&redirectUrl=/app&onboarding=true"
	a := s.call(t, "GET", path, "", "Cookie", "auth="+goodSession+"; showorg="+organization.String())
	want(t, a, 200, `{"url":"the-state"}`)
	if a.header.Get("X-RateLimit-Limit") != "600" || a.header.Get("X-RateLimit-Remaining") != "599" {
		t.Errorf("got the headers %v, want a limit of 600 of which 599 are left", a.header)
	}
	header := strings.ToUpper(organization.String())
	want(t, s.call(t, "GET", path, "", "auth", goodSession, "showorg", header), 200)
	if got, want := strings.Join(s.orgs, " "), organization.String()+" "+header; got != want {
		t.Errorf("the sessions are of the organizations %s, want %s", got, want)
	}
	if want := (publishing.BeginConnect{Connector: "sandbox", ReturnURL: "/app", Onboarding: true}); s.begun != want {
		t.Errorf("the command is %+v, want %+v", s.begun, want)
	}
	for _, h := range [][]string{nil, {"Cookie", "auth=old"}, {"auth", "old"}, {"Authorization", goodKey}} {
		a := s.call(t, "GET", path, "", h...)
		want(t, a, 401, `"statusCode":401`)
		if a.header.Get("Logout") != "true" || !strings.Contains(a.header.Get("Set-Cookie"), "auth=;") {
			t.Errorf("with %v got the headers %v, want logout and no cookie", h, a.header)
		}
	}
	for _, bad := range []string{"javascript:alert(1)", "//evil.test", "ftp://x/", "/%5Cevil", "relative", "https://evil.test/x", "http://crier.test.evil.test/", "http://user@crier.test/"} {
		want(t, s.call(t, "GET", "/integrations/social/sandbox?redirectUrl="+bad, "", "auth", goodSession), 400, "redirectUrl")
	}
	want(t, s.call(t, "GET", "/integrations/social/sandbox?redirectUrl="+baseURL+"/x", "", "auth", goodSession), 200)
}

func TestSession_OtherSitesCannotUseCookie(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"FRONTEND_URL": "https://app.test:443/ui"})
	cookie := []string{"Cookie", "auth=" + goodSession}
	for name, c := range map[string]struct {
		headers []string
		status  int
	}{
		"nothing said":      {headers: cookie, status: 403},
		"another origin":    {headers: append([]string{"Origin", "https://evil.test"}, cookie...), status: 403},
		"a longer name":     {headers: append([]string{"Origin", baseURL + ".evil.test"}, cookie...), status: 403},
		"same site":         {headers: append([]string{"Sec-Fetch-Site", "same-site"}, cookie...), status: 403},
		"origin and fetch":  {headers: append([]string{"Origin", "https://evil.test", "Sec-Fetch-Site", "same-origin"}, cookie...), status: 403},
		"own origin":        {headers: append([]string{"Origin", baseURL}, cookie...), status: 201},
		"frontend's origin": {headers: append([]string{"Origin", "https://app.test"}, cookie...), status: 201},
		"same origin fetch": {headers: append([]string{"Sec-Fetch-Site", "same-origin"}, cookie...), status: 201},
		"header instead":    {headers: []string{"auth", goodSession, "Origin", "https://evil.test"}, status: 201},
	} {
		if a := s.call(t, "POST", "/user/logout", "", c.headers...); a.status != c.status {
			t.Errorf("%s: answered %d %s, want %d", name, a.status, a.body, c.status)
		}
	}
}

func TestLogout_ClearsCookies(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	a := s.call(t, "POST", "/user/logout", "", "auth", goodSession)
	want(t, a, 201)
	cookies := strings.Join(a.header.Values("Set-Cookie"), "\n")
	for _, part := range []string{"auth=;", "showorg=;", "impersonate=;", "1970"} {
		if !strings.Contains(cookies, part) {
			t.Errorf("%s is not in %s", part, cookies)
		}
	}
	if a.header.Get("Logout") != "true" || a.body != "" || len(s.ids) != 1 {
		t.Errorf("got %+v and the sessions %v, want the header logout, no body, and one session", a, s.ids)
	}
}

func TestSession_IsThrottled(t *testing.T) {
	t.Parallel()
	h := &hand{now: day}
	s := start(t, map[string]string{"APP_LIMIT": "2"}, func(d *edge.Deps) { d.Clock = h })
	get := func() answer { return s.call(t, "GET", "/integrations/list", "", "auth", goodSession) }
	want(t, get(), 501)
	want(t, get(), 501)
	want(t, get(), 429, `"retryAfter":60`)
	h.forward(time.Minute)
	want(t, get(), 501)
}

func TestConnect_ReturnsChannel(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	want(t, s.call(t, "GET", "/integrations", ""), 200, `"article":[]`, `"identifier":"sandbox"`, `"isExternal":false`,
		`"customFields":[{"key":"name","label":"Name","validation":".+","type":"text"}]`)
	body := `{"state":"st","code":"eyJuYW1lIjoibiJ9","timezone":"60","extra":1}`
	a := s.call(t, "POST", "/integrations/social-connect/sandbox", body, "Content-Type", "application/json")
	want(t, a, 201, `"identifier":"sandbox"`, `"onboarding":true`, `"pages":[]`, `"inBetweenSteps":false`)
	finished := publishing.FinishConnect{
		Connector: "sandbox", State: "st", Fields: map[string]string{"name": "n"},
		Zone: tenancy.ZoneRequest{Minutes: 60, IsOffset: true},
	}
	if !reflect.DeepEqual(s.finished, finished) {
		t.Errorf("got the command %+v, want %+v", s.finished, finished)
	}
	want(t, s.call(t, "POST", "/integrations/social-connect/sandbox", `{"state":"st","code":"e30","timezone":-330}`, "Content-Type", "application/json"), 201, `"timezone":`)
	if s.finished.Zone != (tenancy.ZoneRequest{Minutes: -330, IsOffset: true}) {
		t.Errorf("got the zone %+v, want -330 minutes", s.finished.Zone)
	}
	for _, code := range []string{"*", "Y29kZQ==", "bnVsbA==", "W10="} {
		body := `{"state":"st","code":"` + code + `"}`
		got := s.call(t, "POST", "/integrations/social-connect/sandbox", body, "Content-Type", "application/json")
		want(t, got, 400, "must be the base64 form of a JSON object")
	}
	want(t, s.call(t, "POST", "/integrations/social-connect/sandbox", `{"code":null}`, "Content-Type", "application/json"), 400, "state is required", "code must be a string")
	s.err = fault.New(fault.Invalid, "fake", "The state is not known; begin again.")
	want(t, s.call(t, "POST", "/integrations/social-connect/sandbox", body, "Content-Type", "application/json"), 400, "begin again")
}

func TestMainURL_IsSecondOrigin(t *testing.T) {
	t.Parallel()
	for origin, allowed := range map[string]bool{"https://app.test": true, "https://main.test": true, "http://main.test": false, "https://main.test.evil.test": false} {
		s := start(t, map[string]string{"FRONTEND_URL": "https://app.test/ui", "MAIN_URL": "https://Main.test:443/"})
		preflight := s.call(t, "OPTIONS", "/user/logout", "", "Origin", origin, "Access-Control-Request-Method", "POST")
		if got := preflight.header.Get("Access-Control-Allow-Origin"); (got == origin) != allowed || !allowed && got != "" {
			t.Errorf("%s: Access-Control-Allow-Origin is %q", origin, got)
		}
		connect := s.call(t, "GET", "/integrations/social/sandbox?redirectUrl="+origin+"/x", "", "auth", goodSession)
		if logout := s.call(t, "POST", "/user/logout", "", "Cookie", "auth="+goodSession, "Origin", origin); (logout.status == 201) != allowed || (connect.status == 200) != allowed {
			t.Errorf("%s: a log-out answers %d, a connect that leads there %d", origin, logout.status, connect.status)
		}
	}
	s := start(t, map[string]string{"FRONTEND_URL": "https://app.test/ui"})
	if got := s.call(t, "GET", "/health", "", "Origin", "https://main.test").header.Get("Access-Control-Allow-Origin"); got != "" {
		t.Errorf("without MAIN_URL: %q", got)
	}
}

func TestCORS_AllowsDashboardOnly(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"FRONTEND_URL": "https://app.test/ui"})
	a := s.call(t, "OPTIONS", "/user/logout", "", "Origin", "https://app.test",
		"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "auth")
	want(t, a, 204)
	if got := a.header.Get("Access-Control-Allow-Origin"); got != "https://app.test" {
		t.Errorf("Access-Control-Allow-Origin is %q, want https://app.test", got)
	}
	if got := a.header.Get("Access-Control-Allow-Credentials"); got != "true" {
		t.Errorf("Access-Control-Allow-Credentials is %q, want true", got)
	}
	if got := a.header.Get("Access-Control-Allow-Headers"); !strings.Contains(got, "showorg") {
		t.Errorf("Access-Control-Allow-Headers is %q, want showorg in it", got)
	}
	a = s.call(t, "GET", "/health", "", "Origin", "https://app.test")
	if got := a.header.Get("Access-Control-Expose-Headers"); !strings.Contains(got, "reload") {
		t.Errorf("Access-Control-Expose-Headers is %q, want reload in it", got)
	}
	for _, path := range []string{"/openapi.json", "/openapi.json/", "/public/v1/openapi.json"} {
		a = s.call(t, "GET", path, "", "Origin", "https://app.test")
		if a.status != 200 || a.header.Get("Access-Control-Allow-Origin") != "*" || a.header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: answered %d %v, want 200 for all origins, without credentials", path, a.status, a.header)
		}
	}
	a = s.call(t, "GET", "/health", "", "Origin", "https://evil.test")
	if got := a.header.Get("Access-Control-Allow-Origin"); got != "" {
		t.Errorf("another site gets Access-Control-Allow-Origin %q, want none", got)
	}
}

func TestFile_ServesRanges(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	path := picture.Path()
	a := s.call(t, "GET", path, "")
	want(t, a, 200, "0123456789")
	for name, value := range map[string]string{
		"Content-Type": "image/png", "X-Content-Type-Options": "nosniff", "Content-Disposition": "inline; filename=cat.png",
		"Accept-Ranges": "bytes", "Content-Length": "10", "Cache-Control": "public, max-age=31536000, immutable",
		"Content-Security-Policy": "sandbox; default-src 'none'",
	} {
		if got := a.header.Get(name); got != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
	const whole, none = "0123456789", "bytes */10"
	for asked, c := range map[string]struct {
		status        int
		body, content string // content is the header Content-Range
	}{
		"bytes=0-3":                     {status: 206, body: "0123", content: "bytes 0-3/10"},
		"bytes=7-":                      {status: 206, body: "789", content: "bytes 7-9/10"},
		"bytes=-2":                      {status: 206, body: "89", content: "bytes 8-9/10"},
		"bytes=5-99":                    {status: 206, body: "56789", content: "bytes 5-9/10"},
		"bytes=0-99999999999999999999":  {status: 206, body: whole, content: "bytes 0-9/10"},
		"bytes=-99999999999999999999":   {status: 206, body: whole, content: "bytes 0-9/10"},
		"bytes=0-1,3-4":                 {status: 200, body: whole},
		"lines=1-2":                     {status: 200, body: whole},
		"bytes=99999999999999999999-":   {status: 416, content: none},
		"bytes=3-1":                     {status: 416, content: none},
		"bytes=-0":                      {status: 416, content: none},
		"bytes=-":                       {status: 416, content: none},
		"bytes=1-99999999999999999999x": {status: 416, content: none},
		"bytes=10-":                     {status: 416, content: none},
		"bytes=x":                       {status: 416, content: none},
		"bytes=99999999999999999998-99999999999999999999": {status: 416, content: none},
	} {
		a := s.call(t, "GET", path, "", "Range", asked)
		content := a.header.Get("Content-Range")
		if a.status != c.status || c.body != "" && a.body != c.body || content != c.content {
			t.Errorf("%s: answered %d %q of %s, want %d %q of %s",
				asked, a.status, a.body, content, c.status, c.body, c.content)
		}
	}
	head := s.call(t, "HEAD", path, "", "Range", "bytes=0-3")
	if head.status != 206 || head.body != "" || head.header.Get("Content-Length") != "4" {
		t.Errorf("HEAD is answered with %+v, want 206, the length 4, and no body", head)
	}
	want(t, s.call(t, "GET", path, "", "If-None-Match", a.header.Get("ETag")), 304)
	want(t, s.call(t, "GET", path, "", "Range", "bytes=0-3", "If-Range", `"other"`), 200)
	want(t, s.call(t, "GET", "/files/"+picture.Key+"/dog.png", ""), 404)
	want(t, s.call(t, "GET", "/files/other/cat.png", ""), 404)
}

func TestPause(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	signed := func(method, path, body string) answer {
		return s.call(t, method, path, body, "auth", goodSession, "Content-Type", "application/json")
	}
	for path, scope := range map[string]string{"/integrations/c1/pause": "channel", "/customers/g1/pause": "customer"} {
		want(t, signed("PUT", path, `{"paused":true}`), 200,
			`"paused":true,"held":3,"inFlight":1,"missed":0,"posts":[{"id":"`,
			`"date":"2026-01-02T03:04:05.000Z","content":"Hello","integration":{"id":"`, `"name":"News"}`)
		s.mu.Lock()
		if got := s.ids[len(s.ids)-2]; got != scope {
			t.Errorf("%s pauses the %s", path, got)
		}
		s.mu.Unlock()
		want(t, signed("PUT", path, `{"paused":false}`), 200, `"paused":false`)
		want(t, signed("PUT", path, `{}`), 400, "paused")
		want(t, s.call(t, "PUT", path, `{"paused":true}`, "Content-Type", "application/json"), 401)
	}
	want(t, signed("PUT", "/settings/pause", `{"paused":true}`), 403, "administrator") // the session is a plain member's
}
