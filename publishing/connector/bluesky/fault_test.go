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

// broken is a server that gives wrong responses to some methods and behaves like a PDS otherwise.
type broken struct {
	URL string

	mu    sync.Mutex
	calls []string
	wrong map[string]response // by method
}

// response is a wrong response.
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

// breaks makes this method, and no other, give a wrong response.
func (b *broken) breaks(method string, status int, body string, header http.Header) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrong = map[string]response{method: {status: status, header: header, body: body}}
}

// alsoBreaks makes one more method give a wrong response.
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
	_ = json.NewDecoder(r.Body).Decode(&record) // record stays empty for other bodies
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

const (
	reauth     = connector.KindReauth
	disconnect = connector.KindDisconnect
	content    = connector.KindContent
	transient  = connector.KindTransient
	unknown    = connector.KindUnknown
)

// refusal is an unsuccessful response with the errors that must follow from it.
type refusal struct {
	status int
	body   string
	header http.Header
	// before is the kind of error if an upload gets the response, commit if the record does.
	before, commit connector.Kind
	after          time.Duration
}

// refusedAt is the time on the connector's clock when it gets a refusal.
var refusedAt = time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)

// checkRefusals gives each refusal as the response to an upload and to a record, and compares the
// errors.
func checkRefusals(t *testing.T, refusals map[string]refusal) {
	t.Helper()
	for name, tc := range refusals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBroken(t)
			s := b.session(t, clock.Func(func() time.Time { return refusedAt }))
			c := bluesky.New()
			it := item(refusedAt, "text")
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

func TestRefusal_ByCode(t *testing.T) {
	t.Parallel()
	checkRefusals(t, map[string]refusal{
		"an expired token as 400": {status: 400, body: `{"error":"ExpiredToken","message":"Token has expired"}`, before: reauth, commit: reauth},
		"an expired token as 401": {status: 401, body: `{"error":"ExpiredToken"}`, before: reauth, commit: reauth},
		"a bad token":             {status: 400, body: `{"error":"InvalidToken"}`, before: reauth, commit: reauth},
		"a bare 401":              {status: 401, before: reauth, commit: reauth},
		"a takedown":              {status: 401, body: `{"error":"AccountTakedown"}`, before: disconnect, commit: disconnect},
		"a deactivated account":   {status: 401, body: `{"error":"AccountDeactivated"}`, before: disconnect, commit: disconnect},
		"a missing account":       {status: 403, body: `{"error":"AccountNotFound"}`, before: disconnect, commit: disconnect},
		"an invalid record": {
			status: 400, body: `{"error":"InvalidRequest","message":"Invalid record ` + password + `"}`,
			before: content, commit: content,
		},
		"a lost blob":          {status: 400, body: `{"error":"BlobNotFound"}`, before: transient, commit: transient},
		"the server's own 404": {status: 404, body: `{"error":"InvalidRequest","message":"no"}`, before: content, commit: content},
	})
}

func TestRefusal_ByRateLimit(t *testing.T) {
	t.Parallel()
	reset := func(d time.Duration) http.Header {
		return http.Header{"Ratelimit-Reset": {strconv.FormatInt(refusedAt.Add(d).Unix(), 10)}}
	}
	checkRefusals(t, map[string]refusal{
		"a limit with a reset": {
			status: 429, body: `{"error":"RateLimitExceeded"}`, header: reset(90 * time.Second),
			before: transient, commit: transient, after: 90 * time.Second,
		},
		"a limit with a past reset": {status: 429, header: reset(-time.Hour), before: transient, commit: transient},
		"a limit with a far reset":  {status: 429, header: reset(1e6 * time.Hour), before: transient, commit: transient, after: 24 * time.Hour},
		"a limit with Retry-After": {
			status: 429,
			header: http.Header{"Retry-After": {"5"}, "Ratelimit-Reset": reset(time.Hour)["Ratelimit-Reset"]},
			before: transient, commit: transient, after: 5 * time.Second,
		},
	})
}

func TestRefusal_ByStatus(t *testing.T) {
	t.Parallel()
	checkRefusals(t, map[string]refusal{
		"a failing server":             {status: 500, body: `{"error":"InternalServerError"}`, before: transient, commit: unknown},
		"a failing server with a code": {status: 502, body: `{"error":"ExpiredToken"}`, before: transient, commit: unknown},
		"a server that times out":      {status: 408, before: transient, commit: unknown},
		"a page of a proxy as 404":     {status: 404, body: `<html>404 Not Found</html>`, before: transient, commit: transient},
		"another program's 404":        {status: 404, body: `{"error":"Not Found"}`, before: transient, commit: transient},
		"an empty 405":                 {status: 405, before: transient, commit: transient},
		"a proxy authentication":       {status: 407, before: transient, commit: transient},
		"a misdirected request":        {status: 421, before: transient, commit: transient},
		"a request that is too early":  {status: 425, before: transient, commit: transient},
		"a page of a filter as 403":    {status: 403, body: `<html>Forbidden</html>`, before: transient, commit: unknown},
		"a permanent redirect":         {status: 308, before: transient, commit: transient},
		"a redirect after the work":    {status: 303, body: `{"error":"ExpiredToken"}`, before: transient, commit: unknown},
		"a success without a CID":      {status: 200, body: `{}`, before: transient, commit: unknown},
		"a success that is no JSON":    {status: 200, body: `<html>`, before: transient, commit: unknown},
	})
}

func TestConnect_NamesProblem(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status int
		body   string
		kind   connector.Kind
		words  string
	}{
		"two-factor sign-in": {status: 401, body: `{"error":"AuthFactorTokenRequired"}`, kind: connector.KindReauth, words: "app password"},
		"a wrong password": {
			status: 401, body: `{"error":"AuthenticationRequired","message":"Invalid identifier or password"}`,
			kind: connector.KindReauth, words: "does not accept",
		},
		"a takedown": {status: 401, body: `{"error":"AccountTakedown"}`, kind: connector.KindDisconnect, words: "taken this account down"},
		"an inactive account": {
			status: 200, body: `{"did":"` + did + `","handle":"a.test","accessJwt":"a","refreshJwt":"r","active":false,"status":"deactivated"}`,
			kind: connector.KindDisconnect, words: "not active",
		},
		"a server of another kind": {status: 404, body: `not found`, kind: connector.KindContent, words: "does not respond like a Bluesky service"},
		"a server that moved":      {status: 301, kind: connector.KindContent, words: "does not respond like a Bluesky service"},
		"a session without an owner": {
			status: 200, body: `{"accessJwt":"a","refreshJwt":"r"}`,
			kind: connector.KindTransient, words: "cannot be read",
		},
		"a server that is overloaded": {status: 503, kind: connector.KindTransient, words: "internal error"},
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
		"https is used":                  {id: "#atproto_pds", kind: "AtprotoPersonalDataServer", endpoint: "https://pds.example", used: true},
		"a full name is used":            {id: did + "#atproto_pds", kind: "AtprotoPersonalDataServer", endpoint: "https://pds.example/", used: true},
		"http is not":                    {id: "#atproto_pds", kind: "AtprotoPersonalDataServer", endpoint: "http://localhost:1"},
		"a path is not":                  {id: "#atproto_pds", kind: "AtprotoPersonalDataServer", endpoint: "https://pds.example/x"},
		"another service is not":         {id: "#labeler", kind: "AtprotoPersonalDataServer", endpoint: "https://pds.example"},
		"another kind of service is not": {id: "#atproto_pds", kind: "Other", endpoint: "https://pds.example"},
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
		kind    connector.Kind // "" means success
		signIns int            // not counting the one by Connect
	}{
		"a good token is exchanged":          {status: 200, body: `{"did":"` + did + `","handle":"a.test","accessJwt":"a","refreshJwt":"r"}`},
		"a revoked token leads to a sign-in": {status: 400, body: `{"error":"ExpiredToken","message":"Token has been revoked"}`, signIns: 1},
		"a refused token leads to a sign-in": {status: 401, signIns: 1},
		"a failing server is retried later":  {status: 500, kind: connector.KindTransient},
		"a rate limit leads to no sign-in":   {status: 429, kind: connector.KindTransient},
		"a takedown disconnects":             {status: 401, body: `{"error":"AccountTakedown"}`, kind: connector.KindDisconnect},
		"an empty answer is transient":       {status: 200, body: `{}`, kind: connector.KindTransient},
		"another account leads to a sign-in": {
			status: 200, body: `{"did":"did:plc:other","handle":"a.test","accessJwt":"a","refreshJwt":"r"}`,
			signIns: 1,
		},
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
		"500":        {status: 500, body: ``, kind: connector.KindTransient},
		"429":        {status: 429, body: ``, kind: connector.KindTransient},
		"expired":    {status: 400, body: `{"error":"ExpiredToken"}`, kind: connector.KindReauth},
		"no DID":     {status: 200, body: `{"did":"unknown"}`, kind: connector.KindTransient},
		"no account": {status: 400, body: `{"error":"InvalidRequest","message":"Unable to resolve handle"}`, kind: ""},
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

// A connect has no post that could be too large, so the error must not mention one.
func TestConnect_TooLargeRequestDoesNotMentionAPost(t *testing.T) {
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
