package edge_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"crier/apps/edge/record"
)

func TestBody_MustBeJSON(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for kind, status := range map[string]int{
		"": 201, "application/json": 201, "Application/JSON; charset=utf-8": 201, "text/plain": 400,
		"application/cbor": 400, "application/x-www-form-urlencoded": 400, ";": 400,
	} {
		want(t, s.call(t, "POST", "/public/v1/posts", goodPost, "Authorization", goodKey, "Content-Type", kind), status)
	}
	want(t, s.api(t, "POST", "/public/v1/posts", "\xef\xbb\xbf"+goodPost), 201)
}

func TestBody_FaultsAreReadable(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for body, words := range map[string]string{
		`{"status":"published"}`: "status must be one of: draft, schedule", `{"status":5}`: "status must be a string", `{"status":"draft","republish":1}`: "republish must be true or false",
		`{`: "body must be valid JSON: unexpected end of JSON input", `[]`: "body must be an object", "\xef\xbb\xbf": "body is required", "\xef\xbb\xbf{}": "status is required",
	} {
		want(t, s.api(t, "PUT", "/public/v1/posts/p/status", body), 400, `"msg":"`+words+`"`)
	}
	want(t, s.api(t, "POST", "/integrations/social-connect/sandbox", `{"state":"","code":""}`), 400, "state must be a string with a length of at least 1")
}

// A decoder error names the member and what it accepts, on routes for sessions and for keys.
func TestBody_FaultsOfTheDecoderNameTheMember(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const plan, whole = "/integrations/c/queue-plan", "must be a whole number from -9223372036854775808 to 9223372036854775807"
	for _, v := range []struct{ method, path, body, words string }{
		{method: "PUT", path: plan, body: `{"time":[{"time":9223372036854775808}]}`, words: "time.0.time " + whole},
		{method: "PUT", path: plan, body: `{"time":[{"time":1e400}]}`, words: "time.0.time must be a number of at most 64 bits"},
		{method: "PUT", path: plan, body: `{"time":[{"time":1},{"time":"1"}]}`, words: "time.1.time must be a whole number"},
		{method: "PUT", path: plan, body: `{"time":[{"time":1.5}]}`, words: "time.0.time must be a whole number"},
		{method: "PUT", path: plan, body: `{"time":[{"time":null}]}`, words: "time.0.time must be a whole number"},
		{method: "PUT", path: plan, body: `{"time":[]} {}`, words: "body must be valid JSON: invalid character '{' after top-level value"},
		{method: "PUT", path: plan, body: "{\"time\":\"\xff\"}", words: "body must be UTF-8"},
		{method: "POST", path: "/user/api-key/rotate", body: `{"overlapHours":1e30}`, words: "overlapHours must be a number <= 72"},
	} {
		want(t, s.call(t, v.method, v.path, v.body, "auth", adminSession, "Content-Type", "application/json"), 400, v.words)
		if strings.HasPrefix(v.path, plan) {
			want(t, s.api(t, v.method, "/public/v1"+v.path, v.body), 400, v.words)
		}
	}
	for query, words := range map[string]string{
		"99999999999999999999": "limit must be a whole number of at most 64 bits", "1.5": "limit must be a whole number",
		"1000": "limit must be a number <= 50",
	} {
		want(t, s.api(t, "GET", "/public/v1/webhooks/w/deliveries?limit="+query, ""), 400, words)
	}
	for field, body := range map[string]string{
		"posts.0.value.0.content": strings.Replace(goodPost, `"content":"`, `"content":"\ud83d`, 1),
		"posts.0.settings":        strings.Replace(goodPost, `"group":""`, `"group":"","settings":{"a":"\ud83d"}`, 1),
		"posts.0.settings ":       strings.Replace(goodPost, `"group":""`, `"group":"","settings":"{\"a\":\"\ud83d\"}"`, 1),
	} {
		want(t, s.api(t, "POST", "/public/v1/posts", body), 400, strings.TrimSpace(field)+" must not contain half a character")
	}
	want(t, s.call(t, "POST", "/settings/api-keys", `{"name":"\ude00"}`, "auth", adminSession, "Content-Type", "application/json"), 400,
		"name must not contain half a character")
	post := strings.Replace(goodPost, `"type"`, `"inter":1e30,"type"`, 1)
	want(t, s.api(t, "POST", "/public/v1/posts", post), 400, "inter must be a whole number of at most 64 bits")
}

func TestBody_WholeNumbersHaveSeveralForms(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, number := range []string{"1000", "1000.0", "1e3", "1.0E+3", "10000e-1"} {
		body := `{"time":[{"time":` + number + `}]}`
		want(t, s.call(t, "PUT", "/integrations/c/queue-plan", body, "auth", goodSession, "Content-Type", "application/json"), 200)
		want(t, s.api(t, "PUT", "/public/v1/integrations/c/queue-plan", body), 200)
	}
	for _, number := range []string{"30", "30.0", "3e1"} {
		want(t, s.api(t, "POST", "/public/v1/posts", strings.Replace(goodPost, `"type"`, `"inter":`+number+`,"type"`, 1)), 201)
	}
}

func TestCreate_UnstorableTextIsFieldFault(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	login := s.api(t, "POST", "/auth/login", `{"email":"a\u0000@example.org","password":"x"}`)
	want(t, login, 400, `"email must be an e-mail address"`)
	a := s.api(t, "POST", "/public/v1/posts", `{"type":"now\u0000","date":"2026-01-01",
		"posts":[{"integration":{"id":"\u0000"},"group":"\u0000","value":[{"id":"\u0000","content":"\u0000",
		"image":[{"id":"\u0000","path":"/\u0000","alt":"\u0000"}]}]}]}`)
	for _, at := range []string{
		"type", "posts.0.integration.id", "posts.0.group", "posts.0.value.0.id", "posts.0.value.0.content",
		"posts.0.value.0.image.0.id", "posts.0.value.0.image.0.path", "posts.0.value.0.image.0.alt",
	} {
		want(t, a, 400, `"`+at+` must not hold the character NUL"`)
	}
	for _, image := range []string{"\\u0000", "/\\u0000"} {
		body := `{"type":"now","date":"2026-01-01","posts":[{"integration":{"id":"c"},"value":[{"image":["` + image + `"]}]}]}`
		want(t, s.api(t, "POST", "/public/v1/posts", body), 400, "posts.0.value.0.image.0 must not hold the character NUL")
	}
	if len(s.creates) != 0 {
		t.Errorf("%d commands reached the port, want none", len(s.creates))
	}
}

func TestParseDate_AcceptsSpaceForPlus(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 22, 30, 0, 0, time.UTC)
	for _, s := range []string{"2026-01-02T00:30:00+02:00", "2026-01-02T00:30:00 02:00", "2026-01-02 00:30:00 02:00", "2026-01-02T00:30:00 0200"} {
		if got, ok := record.ParseDate(s); !ok || !got.Equal(at) {
			t.Errorf("%s: got %v, %v, want %v", s, got, ok, at)
		}
	}
	s := start(t, nil)
	want(t, s.api(t, "GET", "/public/v1/posts?startDate=2026-01-02T00:30:00+02:00&endDate="+url.QueryEscape("2026-01-03T00:30:00+02:00"), ""), 200)
	if len(s.lists) != 1 || !s.lists[0].Start.Equal(at) {
		t.Errorf("got the queries %+v, want one from %v", s.lists, at)
	}
}
