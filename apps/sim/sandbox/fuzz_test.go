package sandbox

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
)

func FuzzBodies(f *testing.F) {
	paths := []string{"/api/accounts", "/api/session", "/api/session/refresh", "/api/posts", "/_sim/faults"}
	for i := range paths {
		for _, body := range []string{
			`{}`, `null`, `[]`, `""`, `{"a":`, `{"text":"x"}`, `{"text":"x","media":[{"id":"1","alt":"b"}],"replyTo":"r","key":"k","marker":"m"}`,
			`{"name":"n","password":"p","grade":"C","maxLength":1e3}`, `{"refreshToken":"\ud800"}`, `{"media":[null,{}],"text":null}`,
			`{"match":{"method":"GET","path":"/api/x","nth":1,"contains":"c"},"action":"slow","ms":1,"times":2}`, `{"text":{"text":[{"text":1}]}}`,
		} {
			f.Add(uint8(i), []byte(body))
		}
	}
	dir := f.TempDir()
	p, err := Open(dir, Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = p.Close() })
	send := sender(p)
	send("POST", "/api/accounts", "", []byte(`{"name":"c","password":"pw","grade":"C"}`))
	var s sessionView
	if err := json.Unmarshal(send("POST", "/api/session", "", []byte(`{"name":"c","password":"pw"}`)).Body.Bytes(), &s); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		path := paths[int(which)%len(paths)]
		w := send("POST", path, s.AccessToken, body)
		if w.Code >= 500 || w.Code >= 400 && !strings.Contains(w.Body.String(), `"code":`) {
			t.Errorf("%s %q: got %d %s, want a success or a refusal with a code", path, body, w.Code, w.Body)
		}
		if _, post, ok := strings.Cut(w.Body.String(), "?post="); ok {
			if w := send("GET", "/?post="+post[:36], "", nil); w.Code != 200 {
				t.Errorf("the page of %q: got %d %s, want 200", body, w.Code, w.Body)
			}
		}
		send("DELETE", "/_sim/faults", "", nil)
	})
}
