package edge_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"crier/apps/edge"
	"crier/apps/edge/record"
)

func never5xx(t *testing.T, a answer) {
	t.Helper()
	if a.status >= 500 {
		t.Fatalf("answered %d: %s", a.status, a.body)
	}
}

func FuzzCreate(f *testing.F) {
	s := start(f, nil)
	for _, seed := range []string{
		goodPost, "", "{", "null", "[]", `""`, "{} {}", `{"posts":[[]]}`, `{"posts":{"0":1}}`, `{"type":null,"date":1e999,"posts":[{"value":[{"delay":1e300}]}]}`,
		`{"posts":[{"settings":"{\"a\":1}","value":[{"image":"x"}]}]}`, `{"posts":[{"settings":"[","value":[{"image":[null,1,"",{"id":null,"path":5}]}]}]}`,
		`{"tags":[null,1,"a",{"label":2}],"inter":"3","republish":"perhaps"}`, "{\"type\":\"\x00\"}", `{"date":"2026-13-45T99:99:99Z"}`, strings.Repeat("[", 20000), "\xff\xfe",
		`{"posts":[{"integration":"c","value":[{"content":"\ud800"}]}]}`, "\xef\xbb\xbf" + goodPost, `{"type":"now\u0000","date":"\u0000","creationMethod":"\u0000","tags":["\u0000"]}`,
		`{"type":"draft","date":"2026-01-01","posts":[{"integration":{"id":"\u0000"},"group":"\u0000","settings":{"\u0000":"\u0000"},` +
			`"value":[{"id":"\u0000","content":"\u0000","image":["\u0000","/\u0000",{"id":"\u0000","path":"\u0000","alt":"\u0000"}]}]}]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		never5xx(t, s.api(t, "POST", "/public/v1/posts", body))
	})
}

func FuzzDate(f *testing.F) {
	for _, seed := range []string{
		"2026-01-02T03:04:05.000Z", "2026-01-02T03:04:05", "2026-01-02", "2026-01-02T03:04+05:30", "2026-01-02 03:04",
		"9999-12-31T23:59:59-23:59", "2026-01-02T03:04:05 02:00", "2026-01-02 03:04:05 0200", "0000-01-01", "",
		"tomorrow", "2026-02-30",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		at, ok := record.ParseDate(s)
		if !ok && !at.IsZero() {
			t.Errorf("%q: a refused date has a value", s)
		}
		if ok {
			again, ok := record.ParseDate(at.Format("2006-01-02T15:04:05.999999999Z"))
			if y := at.Year(); y >= 0 && y <= 9999 && (!ok || !again.Equal(at)) {
				t.Errorf("%q is %v, and that is %v", s, at, again)
			}
		}
	})
}

func FuzzList(f *testing.F) {
	s := start(f, nil)
	for _, seed := range []string{
		"page=0&limit=20", "page=&limit=", "startDate=2026-01-01&endDate=2026-01-02", "startDate=a",
		"page=-9223372036854775808", "page=1e3", "limit[]=1", "page=1&page=2", "%zz=1",
		"startDate=9999-12-31T23:59:59-23:59&endDate=9999-12-31", "customer=%00", "%00=1", "customer=%ff",
		"group=\u0000",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		u := url.URL{RawQuery: query}
		if _, err := url.Parse(s.url + "/?" + u.RawQuery); err != nil || strings.ContainsAny(query, " \r\n#") {
			t.Skip() // no HTTP client sends this
		}
		never5xx(t, s.api(t, "GET", "/public/v1/posts?"+u.RawQuery, ""))
	})
}

func FuzzBegin(f *testing.F) {
	s := start(f, map[string]string{"APP_LIMIT": "1000000000"})
	for _, seed := range []string{"refresh=%00", "refresh=%ff", "redirectUrl=/%00", "redirectUrl=%00", "onboarding=%00&externalUrl=%c3%28", "%00", "refresh=%u0000", "refresh=%2500"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		if _, err := url.Parse(s.url + "/?" + query); err != nil || strings.ContainsAny(query, " \r\n#") {
			t.Skip() // no HTTP client sends this
		}
		never5xx(t, s.call(t, "GET", "/integrations/social/bluesky?"+query, "", "auth", goodSession))
	})
}

func FuzzLogin(f *testing.F) {
	for _, seed := range []string{
		`{"email":"ada@example.org","password":"right"}`, `{"email":"a\u0000@example.org","password":"x"}`, `{"email":"a@\u0000","password":"\u0000","provider":"\u0000"}`,
		"{\"email\":\"a\xff@b\",\"password\":\"x\"}", `{"email":"\ud800@b","password":"\udc00"}`, "\xef\xbb\xbf{}", "\xef\xbb\xbf", `{"email":null}`, `{"email":{}}`, "[]", "",
	} {
		f.Add(seed)
	}
	h := &hand{now: day}
	s := start(f, nil, func(d *edge.Deps) { d.Clock = h })
	f.Fuzz(func(t *testing.T, body string) {
		h.forward(time.Hour) // past the limit of tries
		never5xx(t, s.call(t, "POST", "/auth/login", body, "Content-Type", "application/json"))
	})
}

func FuzzUpload(f *testing.F) {
	s := start(f, nil)
	good, kind := upload(f, "file", "a.png", strings.NewReader("content"))
	f.Add(kind, good.String())
	form := "multipart/form-data; boundary=b"
	for _, seed := range [][2]string{
		{form, ""}, {form, "--b"}, {form, "--b--\r\n"}, {form, "--b\r\n\r\n\r\n--b--"}, {"multipart/form-data", "x"}, {"multipart/mixed; boundary=b", "--b\r\n"},
		{form, "--b\r\nContent-Disposition: form-data; name=file\r\n\r\nx"}, {"", ""}, {";;;", "x"}, {form + "; boundary=c", "--b"},
		{form, "--b\r\n" + strings.Repeat("A: b\r\n", 20000) + "\r\n"},
		{form, "--b\r\nContent-Disposition: form-data; name=file; filename=\"../../x\"\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=zz\r\n--b--\r\n"},
		{form, "--b\r\nContent-Disposition: form-data; name=file; filename=x\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=z\a\r\n--b--\r\n"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, kind, body string) {
		for _, c := range []byte(kind) {
			if c < ' ' || c > '~' {
				t.Skip() // no HTTP client sends this
			}
		}
		never5xx(t, s.call(t, "POST", "/public/v1/upload", body, "Authorization", goodKey, "Content-Type", kind))
	})
}
