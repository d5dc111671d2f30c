package post_test

import (
	"encoding/json"
	"strings"
	"testing"

	"crier/publishing"
	"crier/tests/edgetest"
)

func TestDetail_HasNoTopLevelError(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	a := s.CallAPI(t, "GET", "/public/v1/posts/p1", "")
	edgetest.Want(t, a, 200, `"timeline":[{"at":"2026-01-02T03:04:05.000Z","event":"written","reason":"by hand"}]`,
		`"approval":{"status":"NONE"}`, `"customer":{"id":`, `"outcomeUnknown":false`,
		`"createdAt":"2026-01-02T03:04:05.000Z"`)
	top := edgetest.Decode[struct {
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

func TestRecord_NamesContentType(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	for name, c := range map[string]struct {
		stored      publishing.Content
		query, want string
	}{
		"text":         {stored: publishing.Content{Text: "<b> & \\"}, query: "", want: `"content":"<b> & \\","contentType":"text"`},
		"HTML":         {stored: publishing.Content{Text: "<p>a</p>", HTML: true}, query: "", want: `"content":"<p>a</p>","contentType":"html"`},
		"text as HTML": {stored: publishing.Content{Text: "<img onerror=x>\nb"}, query: "?format=html", want: `"content":"<p>&lt;img onerror=x&gt;</p><p>b</p>","contentType":"html"`},
		"HTML as text": {stored: publishing.Content{Text: "<p>a</p><p>b &amp; c</p>", HTML: true}, query: "?format=text", want: `"content":"a\nb & c","contentType":"text"`},
	} {
		s.Thread.Root.Parts[0].Content = c.stored
		for _, path := range []string{"/public/v1/posts/" + s.Thread.Root.ID.String() + c.query, "/public/v1/posts" + c.query + map[bool]string{true: "?", false: "&"}[c.query == ""] + "page=0"} {
			body := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(s.CallAPI(t, "GET", path, "").Body)
			if !strings.Contains(body, c.want) {
				t.Errorf("%s: %s\nhas no %s", name, body, c.want)
			}
		}
	}
	edgetest.Want(t, s.CallAPI(t, "GET", "/public/v1/posts?page=0&format=xml", ""), 400, "format must be one of")
	edgetest.Want(t, s.CallAPI(t, "GET", "/public/v1/posts/x?format=xml", ""), 400, "format must be one of")
}

func TestSettingsKeepTheirDigits(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	const settings = `{"channel":1234567890123456789,"ratio":1.10}`
	s.Thread.Root.Settings = []byte(settings)
	edgetest.Want(t, s.CallAPI(t, "GET", "/public/v1/posts/"+s.Thread.Root.ID.String(), ""), 200, settings)
	s.CallAPI(t, "POST", "/public/v1/posts", `{"type":"draft","date":"2030-01-01","posts":[{"integration":{"id":"c"},"value":[{"content":"x"}],"settings":`+settings+`}]}`)
	if got := string(s.Creates[0].Entries[0].Settings); got != settings {
		t.Errorf("stored %s", got)
	}
}
