package edge_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"crier/apps/edge"
	"crier/platform/fault"
	"crier/publishing"
)

const goodPost = `{"type":"schedule","date":"2026-05-01T10:00:00","shortLink":true,"order":"x","creationMethod":"CLI",
"tags":["a",{"value":"b","label":"b"}],
"posts":[{"integration":{"id":"c1"},"group":"","value":[{"id":"","content":"Hi","image":["m1",{"id":"m2"},
{"id":"r","path":"http://crier.test/files/k/a.png"},{"id":"","url":"/files/k/b.png","alt":"b"}]}]}]}`

func decode[T any](t *testing.T, a answer) (out T) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), &out); err != nil {
		t.Fatalf("answered %d %q, want a body of %T: %v", a.status, a.body, out, err)
	}
	return out
}

func want(t *testing.T, a answer, status int, parts ...string) {
	t.Helper()
	if a.status != status {
		t.Errorf("got %d, want %d: %s", a.status, status, a.body)
	}
	for _, p := range parts {
		if !strings.Contains(a.body, p) {
			t.Errorf("got %s, want it to contain %q", a.body, p)
		}
	}
}

func TestCreate_AcceptsFormsOfClients(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	a := s.api(t, "POST", "/public/v1/posts", goodPost, "Idempotency-Key", "k1")
	want(t, a, 201, `[{"postId":"`+s.thread.Root.ID.String()+`","integration":"`+s.thread.Channel.ID.String()+`"}]`)
	if a.header.Get("Idempotent-Replayed") != "" || a.header.Get("X-RateLimit-Limit") != "60" || a.header.Get("X-RateLimit-Remaining") != "59" || a.header.Get("X-RateLimit-Reset") != "1767323045" {
		t.Errorf("headers: %v", a.header)
	}
	c := s.creates[0]
	if !c.Date.Equal(time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)) || c.Method != publishing.MethodCLI || c.IdempotencyKey != "k1" || len(c.RequestHash) != 32 {
		t.Errorf("command: %+v", c)
	}
	e := c.Entries[0]
	if e.Channel != "c1" || e.Group != "" || e.Settings != nil || e.Parts[0].ID != "" || e.Parts[0].Content != "Hi" {
		t.Errorf("entry: %+v", e)
	}
	img := e.Parts[0].Media
	if img[0].ID != "m1" || img[1].ID != "m2" || img[2].URL != "http://crier.test/files/k/a.png" || img[3].URL != "/files/k/b.png" || img[3].Alt != "b" {
		t.Errorf("images: %+v", img)
	}
}

func TestRequestHash_IgnoresMountAndMemberOrder(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.result.Replayed, s.result.Mismatch = true, true
	one := `{"type":"draft","date":"2026-05-01","posts":[{"integration":{"id":"c"},"value":[{"content":"x"}]}]}`
	two := `{"posts":[{"value":[{"content":"x"}],"integration":{"id":"c"}}], "date":"2026-05-01","type":"draft"}`
	a := s.api(t, "POST", "/public/v1/posts", one)
	s.api(t, "POST", "/api/public/v1/posts", two)
	s.api(t, "POST", "/public/v1/posts", strings.Replace(two, `"x"`, `"y"`, 1))
	if a.header.Get("Idempotent-Replayed") != "true" || a.header.Get("Idempotent-Mismatch") != "true" {
		t.Errorf("headers: %v", a.header)
	}
	h := func(i int) string { return string(s.creates[i].RequestHash) }
	if h(0) != h(1) || h(0) == h(2) {
		t.Error("equal requests must have equal hashes and others must not")
	}
}

func TestCreate_RefusalNamesFields(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, part string }{
		"an empty body":       {body: "", part: "body is required"},
		"an array":            {body: "[]", part: "body must be a JSON object"},
		"null":                {body: "null", part: "body must be a JSON object"},
		"two documents":       {body: "{} {}", part: "body must be one value of valid JSON"},
		"invalid text":        {body: "{\"type\":\"\xff\"}", part: "body must be UTF-8"},
		"a number as content": {body: `{"type":"now","date":"2026-01-01","posts":[{"integration":{"id":"c"},"value":[{"content":5}]}]}`, part: "posts.0.value.0.content must be a string"},
		"an object as type":   {body: `{"type":{},"date":"2026-01-01","posts":[]}`, part: "type must be a string"},
		"a null date":         {body: `{"type":"now","date":null,"posts":[]}`, part: "date must be an ISO 8601 date"},
		"nulls everywhere":    {body: `{"type":null,"date":null,"posts":null,"tags":null}`, part: "posts must hold"},
		"null entries":        {body: `{"type":"now","date":"2026-01-01","posts":[null]}`, part: "posts.0 must be an object"},
		"null in a value":     {body: `{"type":"now","date":"2026-01-01","posts":[{"integration":null,"value":[null],"settings":null,"group":null}]}`, part: "posts.0.value.0 must be an object"},
		"a fraction of a minute": {
			body: `{"type":"now","date":"2026-01-01","posts":[{"integration":{"id":"c"},"value":[{"content":"a"},{"content":"b","delay":1.5}]}]}`,
			part: "posts.0.value.1.delay must be a whole number",
		},
		"a nameless image": {body: `{"type":"now","date":"2026-01-01","posts":[{"integration":{"id":"c"},"value":[{"image":[{}]}]}]}`, part: "posts.0.value.0.image.0 must have an id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, nil)
			a := s.api(t, "POST", "/public/v1/posts", c.body)
			want(t, a, 400, c.part, `"error":"Bad Request"`, `"statusCode":400`, `"msg":"`)
			body := decode[struct{ Message []string }](t, a)
			if len(body.Message) == 0 {
				t.Error("message is no list")
			}
			if a.header.Get("X-RateLimit-Remaining") != "59" {
				t.Error("an error of an organization has no rate headers")
			}
		})
	}
}

func TestIdempotencyKey_MustBeVisibleASCII(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, key := range []string{"a b", "ä", strings.Repeat("x", 256)} {
		want(t, s.api(t, "POST", "/public/v1/posts", goodPost, "Idempotency-Key", key), 400, "Idempotency-Key must be")
	}
	want(t, s.api(t, "POST", "/public/v1/posts", goodPost, "Idempotency-Key", strings.Repeat("x", 255)), 201)
}

func TestFault_IsErrorOfContract(t *testing.T) {
	t.Parallel()
	secret := "password=hunter2"
	for name, c := range map[string]struct {
		err    error
		status int
		parts  []string
		retry  string
	}{
		"channels": {err: &fault.Error{Kind: fault.Invalid, Items: []fault.Item{{ID: "c1", Kind: "x", Name: "News", Message: "Too long."}}}, status: 400,
			parts: []string{`"message":"Too long."`, `"provider":"x"`, `"name":"News"`, `"errors":[{"integration":"c1"`}, retry: ""},
		"quota":       {err: fault.New(fault.Quota, "op", "Your plan has no posts left."), status: 402, parts: []string{`"url":"http://crier.test/app/billing"`, "no posts left"}, retry: ""},
		"forbidden":   {err: fault.New(fault.Forbidden, "op", ""), status: 403, parts: []string{`"message":"Forbidden"`}, retry: ""},
		"not found":   {err: fault.New(fault.NotFound, "op", "There is no such post."), status: 404, parts: []string{`"msg":"There is no such post."`}, retry: ""},
		"conflict":    {err: &fault.Error{Kind: fault.Conflict, Message: "Busy.", RetryAfter: time.Second}, status: 409, parts: nil, retry: "1"},
		"gone":        {err: fault.New(fault.Gone, "op", ""), status: 410, parts: nil, retry: ""},
		"unavailable": {err: &fault.Error{Kind: fault.Unavailable, RetryAfter: 2100 * time.Millisecond, Err: errSecret(secret)}, status: 503, parts: nil, retry: "3"},
		"internal":    {err: fault.Wrap(fault.Internal, "op", secret, errSecret(secret)), status: 500, parts: []string{`"message":"Internal server error"`}, retry: ""},
		"foreign":     {err: errSecret(secret), status: 500, parts: []string{`"message":"Internal server error"`}, retry: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, nil)
			s.err = c.err
			a := s.api(t, "POST", "/public/v1/posts", goodPost)
			want(t, a, c.status, c.parts...)
			if a.header.Get("Retry-After") != c.retry || strings.Contains(a.body, secret) {
				t.Errorf("got %v %s, want Retry-After %q and no cause", a.header, a.body, c.retry)
			}
			if c.status == 500 && !strings.Contains(s.log.String(), secret) {
				t.Error("the log does not contain the cause")
			}
		})
	}
}

type errSecret string

func (e errSecret) Error() string { return string(e) }

func TestPanic_Is500WithoutCause(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.panics.Store(true)
	a := s.api(t, "POST", "/public/v1/posts", goodPost)
	want(t, a, 500, "Internal server error")
	if strings.Contains(a.body, "secret") || !strings.Contains(s.log.String(), "secret cause") {
		t.Errorf("got %s and the log %s, want the cause in the log only", a.body, s.log)
	}
}

func TestList_ByDatesOrPage(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	a := s.api(t, "GET", "/public/v1/posts?startDate=2026-01-01&endDate=2026-02-01T00:00:00%2B02:00&customer=cu", "")
	want(t, a, 200, `"state":"ERROR"`, `"status":"failed"`, `"date":"2026-01-02T03:04:05.000Z"`,
		`"path":"http://crier.test/files/`, `"providerIdentifier":"sandbox"`, `"releaseURL":null`,
		`"error":"It was refused."`, `"settings":{"__type":"sandbox"}`)
	if !strings.HasPrefix(a.body, "[") || a.header.Get("X-Total-Count") != "" {
		t.Errorf("range mode: %v %s", a.header, a.body)
	}
	q := s.lists[0]
	if q.Page != nil || q.Customer != "cu" || !q.End.Equal(time.Date(2026, 1, 31, 22, 0, 0, 0, time.UTC)) {
		t.Errorf("query: %+v", q)
	}
	a = s.api(t, "GET", "/api/public/v1/posts?page=1&group=g", "")
	if !strings.HasPrefix(a.body, `{"posts":[`) || a.header.Get("X-Total-Count") != "41" || a.header.Get("X-Has-More") != "true" {
		t.Errorf("page mode on the alias: %v %s", a.header, a.body)
	}
	if q := s.lists[1]; q.Page == nil || q.Page.Number != 1 || q.Page.Limit != 20 || q.Customer != "g" {
		t.Errorf("query: %+v", q)
	}
}

func TestList_RefusesBadQueries(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for query, part := range map[string]string{
		"":                          "startDate is required",
		"startDate=2026-01-01":      "endDate is required",
		"startDate=x&endDate=y":     "startDate must be an ISO 8601 date",
		"page=&limit=":              "startDate is required",
		"page=x":                    "page must be a whole number from 0 to 1000000",
		"page=-1":                   "page must be a whole number from 0 to 1000000",
		"page=1e3":                  "page must be a whole number",
		"limit=0":                   "limit must be a whole number from 1 to 100",
		"limit=101":                 "limit must be a whole number from 1 to 100",
		"page=99999999999999999999": "page must be a whole number",
		"startDate=2026-02-01&endDate=2026-01-01": "endDate must not be before",
		"startDate=2020-01-01&endDate=2026-01-01": "endDate must be at most 366 days",
	} {
		want(t, s.api(t, "GET", "/public/v1/posts?"+query, ""), 400, `"`+part)
	}
	if len(s.lists) != 0 {
		t.Error("a bad query was asked")
	}
}

func TestDetail_HasNoTopLevelError(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	a := s.api(t, "GET", "/public/v1/posts/p1", "")
	want(t, a, 200, `"timeline":[{"at":"2026-01-02T03:04:05.000Z","event":"written","reason":"by hand"}]`,
		`"approval":{"status":"NONE"}`, `"customer":{"id":`, `"outcomeUnknown":false`,
		`"createdAt":"2026-01-02T03:04:05.000Z"`)
	top := decode[struct {
		Error *json.RawMessage
		Posts []struct {
			Error, ErrorCode string
			Integration      struct{ Name string }
		}
	}](t, a)
	if top.Error != nil {
		t.Errorf("a success has the top-level member error %s, want none", *top.Error)
	}
	entry := top.Posts[0]
	if entry.Error != "It was refused." || entry.ErrorCode != "rejected" || entry.Integration.Name != "News" {
		t.Errorf("the entry is %+v, want the error, its code and the channel News", entry)
	}
}

func TestSmallRoutes(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	want(t, s.api(t, "DELETE", "/public/v1/posts/p1", ""), 200, `{"id":"p1"}`)
	want(t, s.api(t, "DELETE", "/public/v1/posts/group/g1", ""), 200, `{"id":"g1"}`)
	want(t, s.api(t, "PUT", "/public/v1/posts/p1/status", `{"status":"schedule","more":1}`), 200, `{"id":"p1","state":"QUEUE"}`)
	want(t, s.api(t, "PUT", "/public/v1/posts/p1/status", `{"status":"published"}`), 400, `"status must be one of: draft, schedule"`, `"message":["`)
	want(t, s.api(t, "PUT", "/public/v1/posts/p1/status", `{"status":null}`), 400, "status must be a string")
	want(t, s.api(t, "PUT", "/public/v1/posts/p1/status", `{}`), 400, "status is required")
	want(t, s.api(t, "PUT", "/public/v1/posts/p1/status", `{`), 400)
	want(t, s.api(t, "PUT", "/public/v1/posts/p1/status", ``), 400)
	want(t, s.api(t, "GET", "/public/v1/integrations?group=g", ""), 200, `"identifier":"sandbox","providerIdentifier":"sandbox"`, `"profile":"news","disabled":false`)
	if s.customer != "g" {
		t.Errorf("group %q", s.customer)
	}
	want(t, s.api(t, "GET", "/public/v1/is-connected", ""), 200, `{"connected":true}`)
	want(t, s.call(t, "GET", "/", ""), 200, "App is running!")
	want(t, s.call(t, "GET", "/nowhere", ""), 404, `"msg":"There is no such route."`)
	a := s.call(t, "PUT", "/health", "")
	want(t, a, 405, `"statusCode":405`)
	if !strings.Contains(strings.Join(a.header.Values("Allow"), ","), "GET") {
		t.Errorf("Allow: %v", a.header.Values("Allow"))
	}
	if head := s.call(t, "HEAD", "/health", ""); head.status != 200 || head.body != "" {
		t.Errorf("HEAD: %+v", head)
	}
}

func TestAdmit_RefusalHasRetryAfter(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.refused.Store(true)
	a := s.api(t, "POST", "/public/v1/posts", goodPost)
	want(t, a, 429, `"retryAfter":2`, `"msg":"Too many`)
	if a.header.Get("Retry-After") != "2" || a.header.Get("X-RateLimit-Remaining") != "0" || len(s.creates) != 0 {
		t.Errorf("%v, %d creates", a.header, len(s.creates))
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	want(t, s.call(t, "GET", "/health", ""), 200, `{"status":"ok","version":"test","checks":{"postgres":"ok"}}`)
	s.sick.Store(true)
	want(t, s.call(t, "GET", "/health", ""), 503, `"status":"unavailable"`, `"postgres":"failing"`)
	s.sick.Store(false)
	s.Drain()
	want(t, s.call(t, "GET", "/health", ""), 503, `"status":"draining"`)
	if log := s.log.String(); strings.Contains(log, "level=ERROR") || strings.Count(log, "level=WARN") != 2 {
		t.Errorf("got the log\n%swant two warnings and no error", log)
	}
}

func TestAnswer_HasRequestIDAndSecurityHeaders(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	a := s.call(t, "GET", "/health", "", "X-Request-Id", "client-id-1")
	if a.header.Get("X-Request-Id") != "client-id-1" || a.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("got the headers %v, want the id of the client and nosniff", a.header)
	}
	b := s.call(t, "GET", "/health", "", "X-Request-Id", "bad id\"<x>")
	if id := b.header.Get("X-Request-Id"); len(id) != 36 {
		t.Errorf("request id %q", id)
	}
}

func TestMetricsAndLogs_HavePatternsOnly(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	s := start(t, nil, func(d *edge.Deps) { d.Metrics = reg })
	s.api(t, "GET", "/public/v1/posts/very-private", "")
	s.call(t, "GET", "/public/v1/posts/very-private", "")
	s.call(t, "GET", "/very-private", "")
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
	for _, where := range []string{text, s.log.String()} {
		if strings.Contains(where, "very-private") || strings.Contains(where, organization.String()) {
			t.Errorf("private: %s", where)
		}
	}
}

func TestStrings_StayValidAfterRequest(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	transport := &http.Transport{MaxConnsPerHost: 1}
	t.Cleanup(transport.CloseIdleConnections)
	send := func(method, path, key string) {
		req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(goodPost))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", goodKey)
		req.Header.Set("Idempotency-Key", key)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	send("DELETE", "/public/v1/posts/first-path", "x")
	send("POST", "/public/v1/posts", "first-header")
	send("GET", "/public/v1/posts?page=0&customer=first-query", "x")
	for range 50 {
		send("DELETE", "/public/v1/posts/XXXXXXXXXX", "x")
		send("POST", "/public/v1/posts", "XXXXXXXXXXXX")
		send("GET", "/public/v1/posts?page=0&customer=XXXXXXXXXXX", "x")
	}
	if s.ids[0] != "first-path" || s.creates[0].IdempotencyKey != "first-header" || s.lists[0].Customer != "first-query" {
		t.Errorf("overwritten: %q %q %q", s.ids[0], s.creates[0].IdempotencyKey, s.lists[0].Customer)
	}
}

func TestShutdown_BeforeListen(t *testing.T) {
	t.Parallel()
	start(t, nil) // its clean-up may come first
}
