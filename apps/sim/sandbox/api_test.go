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

func TestGradeA_RecognizesARepeatByItsKey(t *testing.T) {
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
	r.want(201, "POST", "/api/posts", r.join("a2", "A"), `{"text":"y","key":"k"}`) // keys of accounts are independent
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

func TestAPI_RefusesInvalidRequests(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), Options{})
	tok := r.join("c", "C")
	r.join("e", "E")
	e := r.signIn("e").text("accessToken")
	family := "\U0001F468\u200d\U0001F469\u200d\U0001F467" // one grapheme of five code points
	long := func(n int) string { return `{"text":"` + strings.Repeat(family, n) + `"}` }
	for name, c := range map[string]struct {
		method, path, token, kind, body string
		status                          int
		code                            string
	}{
		"unknown member":                      {"POST", "/api/posts", tok, "application/json", `{"text":"x","extra":1}`, 400, "bad_json"},
		"unknown nested member":               {"POST", "/api/posts", tok, "application/json", `{"media":[{"text":"x"}]}`, 400, "bad_json"},
		"wrongly cased member":                {"POST", "/api/posts", tok, "application/json", `{"Text":"x"}`, 400, "bad_json"},
		"repeated member":                     {"POST", "/api/posts", tok, "application/json", `{"text":"x","text":"y"}`, 400, "bad_json"},
		"bytes after the object":              {"POST", "/api/posts", tok, "application/json", `{"text":"x"}{}`, 400, "bad_json"},
		"an array":                            {"POST", "/api/posts", tok, "application/json", `[]`, 400, "bad_json"},
		"null":                                {"POST", "/api/posts", tok, "application/json", `null`, 400, "bad_json"},
		"no body":                             {"POST", "/api/posts", tok, "application/json", ``, 400, "bad_json"},
		"not UTF-8":                           {"POST", "/api/posts", tok, "application/json", "{\"text\":\"\xff\"}", 400, "bad_json"},
		"a number as text":                    {"POST", "/api/posts", tok, "application/json", `{"text":1}`, 400, "bad_json"},
		"wrong content type":                  {"POST", "/api/posts", tok, "text/plain", `{"text":"x"}`, 415, "wrong_content_type"},
		"no token":                            {"POST", "/api/posts", "", "application/json", `{"text":"x"}`, 401, "token_missing"},
		"unknown token":                       {"POST", "/api/posts", "sat_no", "application/json", `{"text":"x"}`, 401, "token_invalid"},
		"too large":                           {"POST", "/api/posts", tok, "application/json", `{"text":"` + strings.Repeat("x", maxJSON) + `"}`, 413, "too_large"},
		"too long":                            {"POST", "/api/posts", tok, "application/json", long(501), 422, "too_long"},
		"just long enough":                    {"POST", "/api/posts", tok, "application/json", long(500), 201, ""},
		"empty":                               {"POST", "/api/posts", tok, "application/json", `{"text":" \n"}`, 422, "empty"},
		"five media":                          {"POST", "/api/posts", tok, "application/json", `{"media":[{"id":"1"},{"id":"2"},{"id":"3"},{"id":"4"},{"id":"5"}]}`, 422, "too_many_media"},
		"unknown media":                       {"POST", "/api/posts", tok, "application/json", `{"media":[{"id":"1"}]}`, 422, "media_not_found"},
		"reply to an unknown post":            {"POST", "/api/posts", tok, "application/json", `{"text":"x","replyTo":"1"}`, 422, "reply_not_found"},
		"marker on E":                         {"POST", "/api/posts", e, "application/json", `{"text":"x","marker":"m"}`, 422, "marker_not_supported"},
		"query on a write":                    {"POST", "/api/posts?x=1", tok, "application/json", `{"text":"x"}`, 400, "bad_query"},
		"unknown parameter":                   {"GET", "/api/posts?account=me&page=2", tok, "", "", 400, "bad_query"},
		"no account":                          {"GET", "/api/posts", tok, "", "", 422, "bad_account"},
		"bad since":                           {"GET", "/api/posts?account=me&since=yesterday", tok, "", "", 422, "bad_since"},
		"bad limit":                           {"GET", "/api/posts?account=me&limit=101", tok, "", "", 422, "bad_limit"},
		"body on a read":                      {"GET", "/api/me", tok, "", "x", 400, "unexpected_body"},
		"wrong method":                        {"PUT", "/api/posts", tok, "", "", 405, "wrong_method"},
		"wrong path":                          {"GET", "/api/nothing", tok, "", "", 404, "not_found"},
		"media of another type":               {"POST", "/api/media", tok, "image/webp", "RIFFxxxxWEBPVP8 ", 415, "wrong_content_type"},
		"media of another type than declared": {"POST", "/api/media", tok, "image/png", "<html>", 422, "media_mismatch"},
		"empty media":                         {"POST", "/api/media", tok, "image/png", "", 422, "media_mismatch"},
		"bad grade":                           {"POST", "/api/accounts", "", "application/json", `{"name":"x","password":"p","grade":"B"}`, 422, "bad_grade"},
		"bad name":                            {"POST", "/api/accounts", "", "application/json", `{"name":"<b>","password":"p","grade":"A"}`, 422, "bad_name"},
		"no password":                         {"POST", "/api/accounts", "", "application/json", `{"name":"x","grade":"A"}`, 422, "bad_password"},
		"bad length":                          {"POST", "/api/accounts", "", "application/json", `{"name":"x","password":"p","grade":"A","maxLength":0}`, 422, "bad_max_length"},
		"unknown action":                      {"POST", "/_sim/faults", "", "application/json", `{"action":"explode"}`, 422, "bad_fault"},
		"slow without ms":                     {"POST", "/_sim/faults", "", "application/json", `{"action":"slow"}`, 422, "bad_fault"},
		"processing without polls":            {"POST", "/_sim/faults", "", "application/json", `{"action":"processing"}`, 422, "bad_fault"},
		"processing of posts":                 {"POST", "/_sim/faults", "", "application/json", `{"action":"processing","polls":1,"match":{"path":"/api/posts"}}`, 422, "bad_fault"},
		"ms of another action":                {"POST", "/_sim/faults", "", "application/json", `{"action":"hold","ms":1}`, 422, "bad_fault"},
		"path outside the API":                {"POST", "/_sim/faults", "", "application/json", `{"action":"hold","match":{"path":"/_sim/posts"}}`, 422, "bad_fault"},
		"release of an unknown fault":         {"POST", "/_sim/faults/1/release", "", "", "", 404, "fault_not_found"},
		"page of an unknown account":          {"GET", "/?account=nobody", "", "", "", 404, "account_not_found"},
		"page of an unknown post":             {"GET", "/?post=1", "", "", "", 404, "post_not_found"},
		"media outside the folder":            {"GET", "/media/..%2Fsandbox.log", "", "", "", 404, "media_not_found"},
	} {
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
		"loopback address": {"127.0.0.1:1", "", 200},
		"loopback name":    {"localhost:1", "", 200},
		"IPv6 loopback":    {"[::1]:1", "", 200},
		"allowed name":     {"sandbox.test:1", "", 200},
		"rebound name":     {"evil.test", "", 403},
		"other address":    {"192.0.2.1:1", "", 403},
		"no host":          {"", "", 403},
		"other site":       {"127.0.0.1:1", "cross-site", 403},
		"own page":         {"127.0.0.1:1", "same-origin", 200},
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
