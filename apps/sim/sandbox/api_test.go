package sandbox

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"crier/platform/clock"
)

func TestSession_ExpiresAndRefreshesOnce(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(1_800_000_000)
	r := start(t, t.TempDir(), Options{Clock: clock.Func(func() time.Time { return time.Unix(now.Load(), 0) })})
	ada := `{"name":"ada","password":"pw","grade":"C","tokenSeconds":60}`
	first := r.want(201, "POST", "/api/accounts", "", ada)
	if again := r.want(200, "POST", "/api/accounts", "", ada); again.text("id") != first.text("id") {
		t.Errorf("the second creation returned the id %s, want %s", again.text("id"), first.text("id"))
	}
	r.want(409, "POST", "/api/accounts", "", `{"name":"ada","password":"other","grade":"C"}`)
	r.want(409, "POST", "/api/accounts", "", `{"name":"ada","password":"pw","grade":"A"}`)
	r.want(409, "POST", "/api/accounts", "", `{"name":"ada","password":"pw","grade":"C","tokenSeconds":61}`)
	r.want(401, "POST", "/api/session", "", `{"name":"ada","password":"wrong"}`)
	r.want(401, "POST", "/api/session", "", `{"name":"bob","password":"pw"}`)

	s := r.signIn("ada")
	if s.body["expiresIn"] != 60.0 {
		t.Errorf("expiresIn is %v, want 60", s.body["expiresIn"])
	}
	me := r.want(200, "GET", "/api/me", s.text("accessToken"), "")
	pic := r.want(200, "GET", strings.TrimPrefix(me.text("picture"), r.url), "", "")
	if me.text("id") != first.text("id") || pic.header.Get("Content-Type") != "image/png" {
		t.Errorf("got the account %v and a picture with %v, want the id %s and a PNG", me.body, pic.header, first.text("id"))
	}
	now.Add(60)
	if a := r.want(401, "GET", "/api/me", s.text("accessToken"), ""); a.code() != "token_expired" {
		t.Errorf("an expired token is refused with %s, want token_expired", a.code())
	}
	refresh := fmt.Sprintf(`{"refreshToken":%q}`, s.text("refreshToken"))
	next := r.want(200, "POST", "/api/session/refresh", "", refresh)
	r.want(200, "GET", "/api/me", next.text("accessToken"), "")
	if a := r.want(401, "POST", "/api/session/refresh", "", refresh); a.code() != "refresh_token_invalid" {
		t.Errorf("a used refresh token is refused with %s, want refresh_token_invalid", a.code())
	}
	now.Add(int64(refreshLife / time.Second))
	r.want(401, "POST", "/api/session/refresh", "", fmt.Sprintf(`{"refreshToken":%q}`, next.text("refreshToken")))
}

func TestGradeA_RecognizesRepeatByKey(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), Options{})
	tok := r.join("a", "A")
	if a := r.want(422, "POST", "/api/posts", tok, `{"text":"x"}`); a.code() != "key_missing" {
		t.Errorf("got %s, want key_missing", a.raw)
	}
	withMedia := func() string {
		return `{"text":"x","key":"k","media":[{"id":"` + r.upload(tok).text("id") + `"}]}`
	}
	first := r.want(201, "POST", "/api/posts", tok, withMedia())
	if again := r.want(200, "POST", "/api/posts", tok, withMedia()); again.raw != first.raw {
		t.Errorf("the same post with the same bytes: got %s, want %s", again.raw, first.raw)
	}
	if a := r.want(409, "POST", "/api/posts", tok, `{"text":"y","key":"k"}`); a.code() != "key_reused" {
		t.Errorf("got %s, want key_reused", a.raw)
	}
	// Each account has separate keys.
	r.want(201, "POST", "/api/posts", r.join("a2", "A"), `{"text":"y","key":"k"}`)
	if n := len(r.published("a")); n != 1 {
		t.Errorf("%d posts, want 1", n)
	}
	r.want(204, "DELETE", "/api/posts/"+first.text("id"), tok, "")
	r.want(410, "POST", "/api/posts", tok, withMedia())
	if n := len(r.published("a")); n != 0 {
		t.Errorf("%d posts after the delete, want none", n)
	}
}

func TestGradeC_PostsCanBeReadBack(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), Options{})
	tok, other := r.join("c", "C"), r.join("c2", "C")
	m := r.upload(tok).text("id")
	one := r.want(201, "POST", "/api/posts", tok, `{"text":"x","key":"k","marker":"m1","media":[{"id":"`+m+`"}]}`)
	two := r.want(201, "POST", "/api/posts", tok, `{"text":"x","key":"k","replyTo":"`+one.text("id")+`"}`)
	if one.text("id") == two.text("id") {
		t.Error("grade C recognized a repeat")
	}
	list := r.want(200, "GET", "/api/posts?account=me", tok, "").body["posts"].([]any)
	newest, oldest := list[0].(map[string]any), list[1].(map[string]any)
	media := oldest["media"].([]any)[0].(map[string]any)
	if len(list) != 2 || newest["id"] != two.text("id") || newest["replyTo"] != one.text("id") || oldest["marker"] != "m1" || media["alt"] != "a dot" {
		t.Errorf("read back %v, want the reply and the post with its marker and alternative text", list)
	}
	if list := r.want(200, "GET", "/api/posts?account=me&limit=1&since="+two.text("createdAt"), tok, "").body["posts"].([]any); len(list) != 1 {
		t.Errorf("since and limit gave %v, want 1 post", list)
	}
	if list := r.want(200, "GET", "/api/posts?account=me&before="+two.text("id"), tok, "").body["posts"].([]any); len(list) != 1 || list[0].(map[string]any)["id"] != one.text("id") {
		t.Errorf("before gave %v, want the first post", list)
	}
	r.want(422, "GET", "/api/posts?account=me&before="+two.text("id"), other, "")
	if list := r.want(200, "GET", "/api/posts?account=me", other, "").body["posts"].([]any); len(list) != 0 {
		t.Errorf("another account read %v, want nothing", list)
	}
	r.want(422, "POST", "/api/posts", other, `{"text":"x","replyTo":"`+one.text("id")+`"}`)
	r.want(422, "POST", "/api/posts", other, `{"media":[{"id":"`+m+`"}]}`)
	r.want(404, "DELETE", "/api/posts/"+one.text("id"), other, "")
	r.want(404, "GET", "/api/media/"+m, other, "")
	r.want(204, "DELETE", "/api/posts/"+one.text("id"), tok, "")
	r.want(404, "DELETE", "/api/posts/"+one.text("id"), tok, "")
	r.want(422, "POST", "/api/posts", tok, `{"text":"x","replyTo":"`+one.text("id")+`"}`)
}

func TestGradeE_PostsCannotBeReadBack(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), Options{})
	tok := r.join("e", "E")
	for range 2 {
		r.want(201, "POST", "/api/posts", tok, `{"text":"x","key":"k"}`)
	}
	if a := r.want(403, "GET", "/api/posts?account=me", tok, ""); a.code() != "cannot_be_asked" {
		t.Errorf("got %s, want cannot_be_asked", a.raw)
	}
	posts := r.published("e")
	if len(posts) != 2 || posts[0]["key"] != "k" {
		t.Errorf("published %v, want two posts with the key k", posts)
	}
}

// request is a request and the expected response.
type request struct {
	method, path, token, kind, body string
	status                          int
	code                            string
}

// check sends each request in a subtest and compares the status and the code of the response.
func (r *rig) check(t *testing.T, requests map[string]request) {
	t.Helper()
	for name, c := range requests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := r.try(c.method, c.path, c.token, c.kind, []byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if a.status != c.status || a.code() != c.code {
				t.Errorf("got %d %s, want %d %s", a.status, a.raw, c.status, c.code)
			}
		})
	}
}

func TestCreatePost_RefusesInvalidJSON(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), Options{})
	tok := r.join("c", "C")
	requests := map[string]request{}
	for name, body := range map[string]string{
		"unknown member":         `{"text":"x","extra":1}`,
		"unknown nested member":  `{"media":[{"text":"x"}]}`,
		"wrongly cased member":   `{"Text":"x"}`,
		"repeated member":        `{"text":"x","text":"y"}`,
		"bytes after the object": `{"text":"x"}{}`,
		"an array":               `[]`,
		"null":                   `null`,
		"no body":                "",
		"not UTF-8":              "{\"text\":\"\xff\"}",
		"a number as text":       `{"text":1}`,
	} {
		requests[name] = request{
			method: "POST", path: "/api/posts", token: tok, kind: "application/json", body: body,
			status: 400, code: "bad_json",
		}
	}
	r.check(t, requests)
}

func TestCreatePost_ChecksContent(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), Options{})
	tok := r.join("c", "C")
	family := "\U0001F468\u200d\U0001F469\u200d\U0001F467" // one grapheme of five code points
	long := func(n int) string { return `{"text":"` + strings.Repeat(family, n) + `"}` }
	requests := map[string]request{
		"too large":                {body: `{"text":"` + strings.Repeat("x", maxJSON) + `"}`, status: 413, code: "too_large"},
		"too long":                 {body: long(501), status: 422, code: "too_long"},
		"just long enough":         {body: long(500), status: 201},
		"empty":                    {body: `{"text":" \n"}`, status: 422, code: "empty"},
		"five media":               {body: `{"media":[{"id":"1"},{"id":"2"},{"id":"3"},{"id":"4"},{"id":"5"}]}`, status: 422, code: "too_many_media"},
		"unknown media":            {body: `{"media":[{"id":"1"}]}`, status: 422, code: "media_not_found"},
		"reply to an unknown post": {body: `{"text":"x","replyTo":"1"}`, status: 422, code: "reply_not_found"},
	}
	for name, c := range requests {
		c.method, c.path, c.token, c.kind = "POST", "/api/posts", tok, "application/json"
		requests[name] = c
	}
	r.check(t, requests)
}

func TestAPI_RefusesInvalidRequests(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), Options{})
	tok := r.join("c", "C")
	r.join("e", "E")
	e := r.signIn("e").text("accessToken")
	r.check(t, map[string]request{
		"wrong content type": {
			method: "POST", path: "/api/posts", token: tok, kind: "text/plain", body: `{"text":"x"}`,
			status: 415, code: "wrong_content_type",
		},
		"no token": {method: "POST", path: "/api/posts", kind: "application/json", body: `{"text":"x"}`, status: 401, code: "token_missing"},
		"unknown token": {
			method: "POST", path: "/api/posts", token: "sat_no", kind: "application/json", body: `{"text":"x"}`,
			status: 401, code: "token_invalid",
		},
		"marker on E": {
			method: "POST", path: "/api/posts", token: e, kind: "application/json",
			body: `{"text":"x","marker":"m"}`, status: 422, code: "marker_not_supported",
		},
		"query on a write": {
			method: "POST", path: "/api/posts?x=1", token: tok, kind: "application/json", body: `{"text":"x"}`,
			status: 400, code: "bad_query",
		},
		"wrong method": {method: "PUT", path: "/api/posts", token: tok, status: 405, code: "wrong_method"},
		"wrong path":   {method: "GET", path: "/api/nothing", token: tok, status: 404, code: "not_found"},
	})
}

func TestAPI_RefusesInvalidReads(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), Options{})
	tok := r.join("c", "C")
	r.check(t, map[string]request{
		"unknown parameter":          {method: "GET", path: "/api/posts?account=me&page=2", token: tok, status: 400, code: "bad_query"},
		"no account":                 {method: "GET", path: "/api/posts", token: tok, status: 422, code: "bad_account"},
		"bad since":                  {method: "GET", path: "/api/posts?account=me&since=yesterday", token: tok, status: 422, code: "bad_since"},
		"bad limit":                  {method: "GET", path: "/api/posts?account=me&limit=101", token: tok, status: 422, code: "bad_limit"},
		"body on a read":             {method: "GET", path: "/api/me", token: tok, body: "x", status: 400, code: "unexpected_body"},
		"page of an unknown account": {method: "GET", path: "/?account=nobody", status: 404, code: "account_not_found"},
		"page of an unknown post":    {method: "GET", path: "/?post=1", status: 404, code: "post_not_found"},
		"media outside the folder":   {method: "GET", path: "/media/..%2Fsandbox.log", status: 404, code: "media_not_found"},
	})
}

func TestUpload_RefusesOtherTypes(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), Options{})
	tok := r.join("c", "C")
	r.check(t, map[string]request{
		"media of another type": {
			method: "POST", path: "/api/media", token: tok, kind: "image/webp", body: "RIFFxxxxWEBPVP8 ",
			status: 415, code: "wrong_content_type",
		},
		"media of another type than declared": {
			method: "POST", path: "/api/media", token: tok, kind: "image/png", body: "<html>", status: 422,
			code: "media_mismatch",
		},
		"empty media": {method: "POST", path: "/api/media", token: tok, kind: "image/png", status: 422, code: "media_mismatch"},
	})
}

func TestCreateAccount_RefusesInvalidFields(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), Options{})
	requests := map[string]request{
		"bad grade":   {body: `{"name":"x","password":"p","grade":"B"}`, code: "bad_grade"},
		"bad name":    {body: `{"name":"<b>","password":"p","grade":"A"}`, code: "bad_name"},
		"no password": {body: `{"name":"x","grade":"A"}`, code: "bad_password"},
		"bad length":  {body: `{"name":"x","password":"p","grade":"A","maxLength":0}`, code: "bad_max_length"},
	}
	for name, c := range requests {
		c.method, c.path, c.kind, c.status = "POST", "/api/accounts", "application/json", 422
		requests[name] = c
	}
	r.check(t, requests)
}

func TestFaults_RefusesInvalidScripts(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), Options{})
	requests := map[string]request{
		"release of an unknown fault": {method: "POST", path: "/_sim/faults/1/release", status: 404, code: "fault_not_found"},
	}
	for name, body := range map[string]string{
		"unknown action":           `{"action":"explode"}`,
		"slow without ms":          `{"action":"slow"}`,
		"processing without polls": `{"action":"processing"}`,
		"processing of posts":      `{"action":"processing","polls":1,"match":{"path":"/api/posts"}}`,
		"ms of another action":     `{"action":"hold","ms":1}`,
		"path outside the API":     `{"action":"hold","match":{"path":"/_sim/posts"}}`,
	} {
		requests[name] = request{
			method: "POST", path: "/_sim/faults", kind: "application/json", body: body, status: 422, code: "bad_fault",
		}
	}
	r.check(t, requests)
}

func TestMedia_IsServedWithItsType(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), Options{})
	tok := r.join("c", "C")
	for kind, bytes := range map[string]string{
		"image/png":  string(dot(t)),
		"image/jpeg": "\xff\xd8\xff\xe0\x00\x10JFIF",
		"image/gif":  "GIF89a\x01\x00\x01\x00",
		"video/mp4":  "\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isommp41rest",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			a, err := r.try("POST", "/api/media", tok, kind, []byte(bytes))
			if err != nil || a.status != 201 || a.text("status") != "ready" || a.body["size"] != float64(len(bytes)) {
				t.Fatalf("got %d %s and error %v, want 201, ready and %d bytes", a.status, a.raw, err, len(bytes))
			}
			got := r.want(200, "GET", "/media/"+a.text("sha256"), "", "")
			if got.raw != bytes || got.header.Get("Content-Type") != kind {
				t.Errorf("served %q with %v, want %q as %s", got.raw, got.header, bytes, kind)
			}
			r.want(201, "POST", "/api/posts", tok, `{"media":[{"id":"`+a.text("id")+`"}]}`)
		})
	}
}

func TestMedia_TooLargeIsRefusedWithAndWithoutALength(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), Options{})
	tok := r.join("c", "C")
	for _, declared := range []int64{maxImage + 1, -1} {
		body := append(dot(t), make([]byte, maxImage)...)
		req := httptest.NewRequestWithContext(t.Context(), "POST", r.url+"/api/media", bytes.NewReader(body))
		req.ContentLength = declared
		req.Header.Set("Content-Type", "image/png")
		req.Header.Set("Authorization", "Bearer "+tok)
		w := httptest.NewRecorder()
		r.p.Handler().ServeHTTP(w, req)
		if w.Code != 413 || !strings.Contains(w.Body.String(), "too_large") {
			t.Errorf("with the length %d: got %d %s, want 413 too_large", declared, w.Code, w.Body)
		}
	}
	if left := mediaFiles(t, r.p.dir); len(left) != 0 {
		t.Errorf("the files %v are left, want none", left)
	}
}

func TestGuard_RefusesPagesOfOtherSites(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), Options{Hosts: []string{"sandbox.test"}})
	for name, c := range map[string]struct {
		host, site string
		status     int
	}{
		"loopback address": {host: "127.0.0.1:1", site: "", status: 200},
		"loopback name":    {host: "localhost:1", site: "", status: 200},
		"IPv6 loopback":    {host: "[::1]:1", site: "", status: 200},
		"allowed name":     {host: "sandbox.test:1", site: "", status: 200},
		"rebound name":     {host: "evil.test", site: "", status: 403},
		"other address":    {host: "192.0.2.1:1", site: "", status: 403},
		"no host":          {host: "", site: "", status: 403},
		"other site":       {host: "127.0.0.1:1", site: "cross-site", status: 403},
		"own page":         {host: "127.0.0.1:1", site: "same-origin", status: 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := r.want(201, "POST", "/_sim/faults", "", `{"action":"hold","match":{"contains":"never"}}`)
			req := httptest.NewRequestWithContext(t.Context(), "POST", "/_sim/faults/"+f.text("id")+"/release", http.NoBody)
			req.Host = c.host
			if c.site != "" {
				req.Header.Set("Sec-Fetch-Site", c.site)
			}
			w := httptest.NewRecorder()
			r.p.Handler().ServeHTTP(w, req)
			if w.Code != c.status {
				t.Errorf("got %d %s, want %d", w.Code, w.Body, c.status)
			}
		})
	}
}
