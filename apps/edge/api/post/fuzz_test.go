package post_test

import (
	"net/url"
	"strings"
	"testing"

	"crier/tests/edgetest"
)

func FuzzCreate(f *testing.F) {
	s := edgetest.New(f, nil)
	for _, seed := range []string{
		edgetest.PostBody, "", "{", "null", "[]", `""`, "{} {}", `{"posts":[[]]}`, `{"posts":{"0":1}}`, `{"type":null,"date":1e999,"posts":[{"value":[{"delay":1e300}]}]}`,
		`{"posts":[{"settings":"{\"a\":1}","value":[{"image":"x"}]}]}`, `{"posts":[{"settings":"[","value":[{"image":[null,1,"",{"id":null,"path":5}]}]}]}`,
		`{"tags":[null,1,"a",{"label":2}],"inter":"3","republish":"perhaps"}`, "{\"type\":\"\x00\"}", `{"date":"2026-13-45T99:99:99Z"}`, strings.Repeat("[", 20000), "\xff\xfe",
		`{"posts":[{"integration":"c","value":[{"content":"\ud800"}]}]}`, "\xef\xbb\xbf" + edgetest.PostBody, `{"type":"now\u0000","date":"\u0000","creationMethod":"\u0000","tags":["\u0000"]}`,
		`{"type":"draft","date":"2026-01-01","posts":[{"integration":{"id":"\u0000"},"group":"\u0000","settings":{"\u0000":"\u0000"},` +
			`"value":[{"id":"\u0000","content":"\u0000","image":["\u0000","/\u0000",{"id":"\u0000","path":"\u0000","alt":"\u0000"}]}]}]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		edgetest.WantNoServerError(t, s.CallAPI(t, "POST", "/public/v1/posts", body))
	})
}

func FuzzList(f *testing.F) {
	s := edgetest.New(f, nil)
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
		if _, err := url.Parse(s.URL + "/?" + u.RawQuery); err != nil || strings.ContainsAny(query, " \r\n#") {
			t.Skip() // no HTTP client sends this
		}
		edgetest.WantNoServerError(t, s.CallAPI(t, "GET", "/public/v1/posts?"+u.RawQuery, ""))
	})
}
