package post_test

import (
	"strings"
	"testing"
	"time"

	"crier/publishing"
	"crier/tests/edgetest"
)

func TestCreate_AcceptsFormsOfClients(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	a := s.CallAPI(t, "POST", "/public/v1/posts", edgetest.PostBody, "Idempotency-Key", "k1")
	edgetest.Want(t, a, 201, `[{"postId":"`+s.Thread.Root.ID.String()+`","integration":"`+s.Thread.Channel.ID.String()+`"}]`)
	if a.Header.Get("Idempotent-Replayed") != "" || a.Header.Get("X-RateLimit-Limit") != "60" || a.Header.Get("X-RateLimit-Remaining") != "59" || a.Header.Get("X-RateLimit-Reset") != "1767323045" {
		t.Errorf("headers: %v", a.Header)
	}
	c := s.Creates[0]
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
	s := edgetest.New(t, nil)
	s.Result.Replayed, s.Result.Mismatch = true, true
	one := `{"type":"draft","date":"2026-05-01","posts":[{"integration":{"id":"c"},"value":[{"content":"x"}]}]}`
	two := `{"posts":[{"value":[{"content":"x"}],"integration":{"id":"c"}}], "date":"2026-05-01","type":"draft"}`
	a := s.CallAPI(t, "POST", "/public/v1/posts", one)
	s.CallAPI(t, "POST", "/api/public/v1/posts", two)
	s.CallAPI(t, "POST", "/public/v1/posts", strings.Replace(two, `"x"`, `"y"`, 1))
	if a.Header.Get("Idempotent-Replayed") != "true" || a.Header.Get("Idempotent-Mismatch") != "true" {
		t.Errorf("headers: %v", a.Header)
	}
	h := func(i int) string { return string(s.Creates[i].RequestHash) }
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
		"nulls everywhere":    {body: `{"type":null,"date":null,"posts":null,"tags":null}`, part: "posts must contain"},
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
			s := edgetest.New(t, nil)
			a := s.CallAPI(t, "POST", "/public/v1/posts", c.body)
			edgetest.Want(t, a, 400, c.part, `"error":"Bad Request"`, `"statusCode":400`, `"msg":"`)
			body := edgetest.Decode[struct{ Message []string }](t, a)
			if len(body.Message) == 0 {
				t.Error("message is no list")
			}
			if a.Header.Get("X-RateLimit-Remaining") != "59" {
				t.Error("an error of an organization has no rate headers")
			}
		})
	}
}

func TestIdempotencyKey_MustBeVisibleASCII(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	for _, key := range []string{"a b", "ä", strings.Repeat("x", 256)} {
		edgetest.Want(t, s.CallAPI(t, "POST", "/public/v1/posts", edgetest.PostBody, "Idempotency-Key", key), 400, "Idempotency-Key must be")
	}
	edgetest.Want(t, s.CallAPI(t, "POST", "/public/v1/posts", edgetest.PostBody, "Idempotency-Key", strings.Repeat("x", 255)), 201)
}

func TestCreate_UnstorableTextIsFieldFault(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	login := s.CallAPI(t, "POST", "/auth/login", `{"email":"a\u0000@example.org","password":"x"}`)
	edgetest.Want(t, login, 400, `"email must be an email address"`)
	a := s.CallAPI(t, "POST", "/public/v1/posts", `{"type":"now\u0000","date":"2026-01-01",
		"posts":[{"integration":{"id":"\u0000"},"group":"\u0000","value":[{"id":"\u0000","content":"\u0000",
		"image":[{"id":"\u0000","path":"/\u0000","alt":"\u0000"}]}]}]}`)
	for _, at := range []string{
		"type", "posts.0.integration.id", "posts.0.group", "posts.0.value.0.id", "posts.0.value.0.content",
		"posts.0.value.0.image.0.id", "posts.0.value.0.image.0.path", "posts.0.value.0.image.0.alt",
	} {
		edgetest.Want(t, a, 400, `"`+at+` must not hold the character NUL"`)
	}
	for _, image := range []string{"\\u0000", "/\\u0000"} {
		body := `{"type":"now","date":"2026-01-01","posts":[{"integration":{"id":"c"},"value":[{"image":["` + image + `"]}]}]}`
		edgetest.Want(t, s.CallAPI(t, "POST", "/public/v1/posts", body), 400, "posts.0.value.0.image.0 must not hold the character NUL")
	}
	if len(s.Creates) != 0 {
		t.Errorf("%d commands reached the port, want none", len(s.Creates))
	}
}
