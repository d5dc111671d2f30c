package bluesky_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"crier/platform/clock"
	"crier/publishing/connector"
	"crier/publishing/connector/bluesky"
	"crier/publishing/connector/conformance"
)

const (
	password = "abcd-efgh-ijkl-mnop"
	did      = "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa"
)

// broken is a server that answers some methods wrongly and the others as a PDS does.
type broken struct {
	URL string

	mu    sync.Mutex
	calls []string
	wrong map[string]response // by method
}

// response is a wrong answer.
type response struct {
	status int
	header http.Header
	body   string
}

func newBroken(t *testing.T) *broken {
	t.Helper()
	b := &broken{}
	srv := httptest.NewServer(b)
	t.Cleanup(srv.Close)
	b.URL = srv.URL
	return b
}

// breaks makes one method answer wrongly, and no other.
func (b *broken) breaks(method string, status int, body string, header http.Header) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrong = map[string]response{method: {status, header, body}}
}

// alsoBreaks makes one more method answer wrongly.
func (b *broken) alsoBreaks(method string, status int, body string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrong[method] = response{status: status, body: body}
}

func (b *broken) count(method string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, call := range b.calls {
		if call == method {
			n++
		}
	}
	return n
}

func (b *broken) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var record struct{ Collection, Rkey string }
	_ = json.NewDecoder(r.Body).Decode(&record) // other bodies leave it empty
	_, _ = io.Copy(io.Discard, r.Body)
	method := strings.TrimPrefix(r.URL.Path, "/xrpc/")
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, method)
	status, body := http.StatusOK, `{}`
	switch method {
	case "com.atproto.server.createSession", "com.atproto.server.refreshSession":
		n := strconv.Itoa(len(b.calls))
		body = `{"did":"` + did + `","handle":"alice.test","accessJwt":"access-` + n + `","refreshJwt":"refresh-` + n + `"}`
	case "com.atproto.repo.getRecord":
		status, body = http.StatusBadRequest, `{"error":"RecordNotFound","message":"Could not locate record"}`
	case "com.atproto.repo.uploadBlob":
		body = `{"blob":{"$type":"blob","ref":{"$link":"bafkreia"},"mimeType":"image/png","size":3}}`
	case "com.atproto.repo.putRecord":
		body = `{"uri":"at://x/` + record.Collection + "/" + record.Rkey + `","cid":"bafyreia"}`
	}
	if wrong, ok := b.wrong[method]; ok {
		status, body = wrong.status, wrong.body
		for k, v := range wrong.header {
			w.Header()[k] = v
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, strings.ReplaceAll(body, "RKEY", record.Rkey))
}

func (b *broken) env(t *testing.T, now clock.Clock) connector.Env {
	t.Helper()
	u, err := url.Parse(b.URL)
	if err != nil {
		t.Fatal(err)
	}
	return connector.Env{HTTP: conformance.NewLine(t, u.Host), Clock: now}
}

func (b *broken) form() map[string]string {
	return map[string]string{"service": b.URL, "identifier": "alice.test", "password": password}
}

func (b *broken) session(t *testing.T, now clock.Clock) *connector.Session {
	t.Helper()
	env := b.env(t, now)
	done, err := bluesky.New().Connect(t.Context(), env, b.form())
	if err != nil {
		t.Fatal(err)
	}
	return &connector.Session{Env: env, Account: done.Account, Credential: done.Credential}
}

func wantKind(t *testing.T, err error, kind connector.Kind, after time.Duration) {
	t.Helper()
	var e *connector.Error
	if !errors.As(err, &e) || e.Kind != kind || e.After != after || e.Public == "" {
		t.Fatalf("got %v, want %s after %v", err, kind, after)
	}
	if strings.Contains(err.Error()+e.Public+e.Raw, password) {
		t.Errorf("got %v, want no password", err)
	}
}

func TestRefusal_ByStatusAndCode(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)
	reset := func(d time.Duration) http.Header {
		return http.Header{"Ratelimit-Reset": {strconv.FormatInt(now.Add(d).Unix(), 10)}}
	}
	for name, tc := range map[string]struct {
		status         int
		body           string
		header         http.Header
		before, commit connector.Kind // of an upload and of the record
		after          time.Duration
	}{
		"an expired token as 400":   {400, `{"error":"ExpiredToken","message":"Token has expired"}`, nil, connector.KindReauth, connector.KindReauth, 0},
		"an expired token as 401":   {401, `{"error":"ExpiredToken"}`, nil, connector.KindReauth, connector.KindReauth, 0},
		"a bad token":               {400, `{"error":"InvalidToken"}`, nil, connector.KindReauth, connector.KindReauth, 0},
		"a bare 401":                {401, ``, nil, connector.KindReauth, connector.KindReauth, 0},
		"a takedown":                {401, `{"error":"AccountTakedown"}`, nil, connector.KindDisconnect, connector.KindDisconnect, 0},
		"a deactivated account":     {401, `{"error":"AccountDeactivated"}`, nil, connector.KindDisconnect, connector.KindDisconnect, 0},
		"a missing account":         {403, `{"error":"AccountNotFound"}`, nil, connector.KindDisconnect, connector.KindDisconnect, 0},
		"an invalid record":         {400, `{"error":"InvalidRequest","message":"Invalid record ` + password + `"}`, nil, connector.KindContent, connector.KindContent, 0},
		"a lost blob":               {400, `{"error":"BlobNotFound"}`, nil, connector.KindTransient, connector.KindTransient, 0},
		"a limit with a reset":      {429, `{"error":"RateLimitExceeded"}`, reset(90 * time.Second), connector.KindTransient, connector.KindTransient, 90 * time.Second},
		"a limit with a past reset": {429, ``, reset(-time.Hour), connector.KindTransient, connector.KindTransient, 0},
		"a limit with a far reset":  {429, ``, reset(1e6 * time.Hour), connector.KindTransient, connector.KindTransient, 24 * time.Hour},
		"a limit with Retry-After": {
			429, ``, http.Header{"Retry-After": {"5"}, "Ratelimit-Reset": reset(time.Hour)["Ratelimit-Reset"]},
			connector.KindTransient, connector.KindTransient, 5 * time.Second,
		},
		"a failing server":             {500, `{"error":"InternalServerError"}`, nil, connector.KindTransient, connector.KindUnknown, 0},
		"a failing server with a code": {502, `{"error":"ExpiredToken"}`, nil, connector.KindTransient, connector.KindUnknown, 0},
		"a server that times out":      {408, ``, nil, connector.KindTransient, connector.KindUnknown, 0},
		"a page of a proxy as 404":     {404, `<html>404 Not Found</html>`, nil, connector.KindTransient, connector.KindTransient, 0},
		"another program's 404":        {404, `{"error":"Not Found"}`, nil, connector.KindTransient, connector.KindTransient, 0},
		"an empty 405":                 {405, ``, nil, connector.KindTransient, connector.KindTransient, 0},
		"a proxy authentication":       {407, ``, nil, connector.KindTransient, connector.KindTransient, 0},
		"a misdirected request":        {421, ``, nil, connector.KindTransient, connector.KindTransient, 0},
		"a request that is too early":  {425, ``, nil, connector.KindTransient, connector.KindTransient, 0},
		"a page of a filter as 403":    {403, `<html>Forbidden</html>`, nil, connector.KindTransient, connector.KindUnknown, 0},
		"a permanent redirect":         {308, ``, nil, connector.KindTransient, connector.KindTransient, 0},
		"a redirect after the work":    {303, `{"error":"ExpiredToken"}`, nil, connector.KindTransient, connector.KindUnknown, 0},
		"the server's own 404":         {404, `{"error":"InvalidRequest","message":"no"}`, nil, connector.KindContent, connector.KindContent, 0},
		"a success without a CID":      {200, `{}`, nil, connector.KindTransient, connector.KindUnknown, 0},
		"a success that is no JSON":    {200, `<html>`, nil, connector.KindTransient, connector.KindUnknown, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBroken(t)
			s := b.session(t, clock.Func(func() time.Time { return now }))
			c := bluesky.New()
			it := item(now, "text")
			it.Media = []connector.Media{{ContentType: "image/png", Name: "a.png", Size: 3, Alt: "a", Open: opener([]byte("abc"))}}
			b.breaks("com.atproto.repo.uploadBlob", tc.status, tc.body, tc.header)
			_, err := conformance.Prepare(t.Context(), c, s, it)
			wantKind(t, err, tc.before, tc.after)
			b.breaks("com.atproto.repo.putRecord", tc.status, tc.body, tc.header)
			_, err = conformance.Publish(t.Context(), c, s, it)
			wantKind(t, err, tc.commit, tc.after)
			if n := b.count("com.atproto.repo.putRecord"); n != 1 {
				t.Errorf("the record was sent %d times, want once", n)
			}
		})
	}
}

func TestConnect_NamesProblem(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status int
		body   string
		kind   connector.Kind
		words  string
	}{
		"two-factor sign-in": {401, `{"error":"AuthFactorTokenRequired"}`, connector.KindReauth, "app password"},
		"a wrong password":   {401, `{"error":"AuthenticationRequired","message":"Invalid identifier or password"}`, connector.KindReauth, "does not know"},
		"a takedown":         {401, `{"error":"AccountTakedown"}`, connector.KindDisconnect, "taken this account down"},
		"an inactive account": {
			200, `{"did":"` + did + `","handle":"a.test","accessJwt":"a","refreshJwt":"r","active":false,"status":"deactivated"}`,
			connector.KindDisconnect, "not active",
		},
		"a server of another kind":    {404, `not found`, connector.KindContent, "does not answer like a Bluesky service"},
		"a server that moved":         {301, ``, connector.KindContent, "does not answer like a Bluesky service"},
		"a session without an owner":  {200, `{"accessJwt":"a","refreshJwt":"r"}`, connector.KindTransient, "cannot be read"},
		"a server that is overloaded": {503, ``, connector.KindTransient, "problem"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBroken(t)
			b.breaks("com.atproto.server.createSession", tc.status, tc.body, nil)
			_, err := bluesky.New().Connect(t.Context(), b.env(t, clock.System{}), b.form())
			wantKind(t, err, tc.kind, 0)
			if e := (*connector.Error)(nil); !errors.As(err, &e) || !strings.Contains(e.Public, tc.words) {
				t.Errorf("got %v, want a text with %q", err, tc.words)
			}
		})
	}
}

func TestConnect_RefusesServiceAddresses(t *testing.T) {
	t.Parallel()
	b := newBroken(t)
	for _, service := range []string{
		"http://bsky.social", "ftp://bsky.social", "bsky.social", "https://", "https://a:b@bsky.social",
		"https://bsky.social/path", "https://bsky.social?x", "https://bsky.social#x",
		"http://127.0.0.1.example.com", "http://10.0.0.1", "https://[", "file:///etc/passwd",
	} {
		form := b.form()
		form["service"] = service
		_, err := bluesky.New().Connect(t.Context(), b.env(t, clock.System{}), form)
		wantKind(t, err, connector.KindContent, 0)
	}
	if n := b.count("com.atproto.server.createSession"); n != 0 {
		t.Errorf("got %d sign-ins, want none", n)
	}
}

func TestRefresh_UsesServerOfDocument(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		id, kind, endpoint string
		used               bool
	}{
		"https is used":                  {"#atproto_pds", "AtprotoPersonalDataServer", "https://pds.example", true},
		"a full name is used":            {did + "#atproto_pds", "AtprotoPersonalDataServer", "https://pds.example/", true},
		"http is not":                    {"#atproto_pds", "AtprotoPersonalDataServer", "http://localhost:1", false},
		"a path is not":                  {"#atproto_pds", "AtprotoPersonalDataServer", "https://pds.example/x", false},
		"another service is not":         {"#labeler", "AtprotoPersonalDataServer", "https://pds.example", false},
		"another kind of service is not": {"#atproto_pds", "Other", "https://pds.example", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBroken(t)
			s := b.session(t, clock.System{})
			doc := `{"id":"` + did + `","service":[{"id":"` + tc.id + `","type":"` + tc.kind + `","serviceEndpoint":"` + tc.endpoint + `"}]}`
			b.breaks("com.atproto.server.refreshSession", 200, `{"did":"`+did+`","handle":"a.test","accessJwt":"a","refreshJwt":"r","didDoc":`+doc+`}`, nil)
			fresh, err := bluesky.New().Refresh(t.Context(), s)
			var cred struct{ Service, Server string }
			if err != nil || json.Unmarshal(fresh.Credential, &cred) != nil {
				t.Fatal(err)
			}
			want := map[bool]string{true: "https://pds.example", false: b.URL}[tc.used]
			if cred.Server != want || cred.Service != b.URL {
				t.Errorf("got %+v, want the server %s", cred, want)
			}
			if hosts := connector.Destination(want, b.URL); fresh.Destination != hosts {
				t.Errorf("got the destination %q, want %q", fresh.Destination, hosts)
			}
		})
	}
}

func TestRefresh_SignsInOnlyWhenTokenIsRefused(t *testing.T) {
	t.Parallel()
	const create, rotate = "com.atproto.server.createSession", "com.atproto.server.refreshSession"
	for name, tc := range map[string]struct {
		status  int
		body    string
		kind    connector.Kind // "" = success
		signIns int            // besides that of Connect
	}{
		"a good token is exchanged":          {200, `{"did":"` + did + `","handle":"a.test","accessJwt":"a","refreshJwt":"r"}`, "", 0},
		"a revoked token leads to a sign-in": {400, `{"error":"ExpiredToken","message":"Token has been revoked"}`, "", 1},
		"a refused token leads to a sign-in": {401, ``, "", 1},
		"a failing server is retried later":  {500, ``, connector.KindTransient, 0},
		"a rate limit leads to no sign-in":   {429, ``, connector.KindTransient, 0},
		"a takedown disconnects":             {401, `{"error":"AccountTakedown"}`, connector.KindDisconnect, 0},
		"an empty answer is transient":       {200, `{}`, connector.KindTransient, 0},
		"another account leads to a sign-in": {200, `{"did":"did:plc:other","handle":"a.test","accessJwt":"a","refreshJwt":"r"}`, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBroken(t)
			s := b.session(t, clock.System{})
			b.breaks(rotate, tc.status, tc.body, nil)
			fresh, err := bluesky.New().Refresh(t.Context(), s)
			if tc.kind != "" {
				wantKind(t, err, tc.kind, 0)
			} else if err != nil || string(fresh.Credential) == string(s.Credential) {
				t.Errorf("got %v and %s, want a new credential", err, fresh.Credential)
			}
			if n := b.count(create) - 1; n != tc.signIns || b.count(rotate) != 1 {
				t.Errorf("got %d sign-ins and %d exchanges, want %d and 1", n, b.count(rotate), tc.signIns)
			}
		})
	}
}

func TestPrepare_RetriesMentionsOfFailingServer(t *testing.T) {
	t.Parallel()
	const method = "com.atproto.identity.resolveHandle"
	for name, tc := range map[string]struct {
		status int
		body   string
		kind   connector.Kind
	}{
		"500":        {500, ``, connector.KindTransient},
		"429":        {429, ``, connector.KindTransient},
		"expired":    {400, `{"error":"ExpiredToken"}`, connector.KindReauth},
		"no DID":     {200, `{"did":"unknown"}`, connector.KindTransient},
		"no account": {400, `{"error":"InvalidRequest","message":"Unable to resolve handle"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBroken(t)
			s := b.session(t, clock.System{})
			b.breaks(method, tc.status, tc.body, nil)
			_, err := conformance.Prepare(t.Context(), bluesky.New(), s, item(clock.System{}.Now(), "@a.test @A.test @b.test"))
			if tc.kind != "" {
				wantKind(t, err, tc.kind, 0)
			} else if err != nil || b.count(method) != 2 {
				t.Errorf("got %v after %d queries, want one for each handle", err, b.count(method))
			}
		})
	}
}

func TestPrepare_RepeatsOldUploads(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)
	b := newBroken(t)
	s := b.session(t, clock.Func(func() time.Time { return now }))
	it := item(now, "text")
	for range 2 {
		it.Media = append(it.Media, connector.Media{ContentType: "image/png", Name: "a.png", Size: 3, Open: opener([]byte("abc"))})
	}
	uploads := func(want int) {
		t.Helper()
		prepared, err := conformance.Prepare(t.Context(), bluesky.New(), s, it)
		if err != nil {
			t.Fatal(err)
		}
		it = prepared
		if n := b.count("com.atproto.repo.uploadBlob"); n != want {
			t.Fatalf("%d uploads, want %d", n, want)
		}
	}
	uploads(2)
	now = now.Add(9 * time.Minute)
	uploads(2)
	now = now.Add(2 * time.Minute)
	uploads(4)
	uploads(4)
}

func TestPrepare_RefusesTooManyMentions(t *testing.T) {
	t.Parallel()
	b := newBroken(t)
	s := b.session(t, clock.System{})
	b.breaks("com.atproto.identity.resolveHandle", 200, `{"did":"did:web:`+strings.Repeat("a", 200)+`"}`, nil)
	_, err := conformance.Prepare(t.Context(), bluesky.New(), s, item(clock.System{}.Now(), strings.Repeat("@a.bc ", 49)))
	wantKind(t, err, connector.KindContent, 0)
	if _, err := conformance.Prepare(t.Context(), bluesky.New(), s, item(clock.System{}.Now(), strings.Repeat("@a.bc ", 9))); err != nil {
		t.Error(err)
	}
}

// A connect has no post that could be too large.
func TestConnect_TooLargeRequestNamesNoPost(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"com.atproto.server.createSession", "com.atproto.repo.getRecord"} {
		for _, status := range []int{413, 414, 431} {
			for _, body := range []string{"too large", `{"error":"PayloadTooLarge"}`} {
				b := newBroken(t)
				b.breaks(method, status, body, nil)
				_, err := registered(t).Connect(t.Context(), b.env(t, clock.System{}), b.form())
				var e *connector.Error
				if !errors.As(err, &e) || e.Kind != connector.KindContent || strings.Contains(e.Public, "post") {
					t.Errorf("%s answers %d %s: %v, want KindContent without a post", method, status, body, err)
				}
			}
		}
	}
}
