package media_test

import (
	"testing"

	"crier/tests/edgetest"
)

func TestFile_ServesRanges(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	path := edgetest.Picture.Path()
	a := s.Call(t, "GET", path, "")
	edgetest.Want(t, a, 200, "0123456789")
	for name, value := range map[string]string{
		"Content-Type": "image/png", "X-Content-Type-Options": "nosniff", "Content-Disposition": "inline; filename=cat.png",
		"Accept-Ranges": "bytes", "Content-Length": "10", "Cache-Control": "public, max-age=31536000, immutable",
		"Content-Security-Policy": "sandbox; default-src 'none'",
	} {
		if got := a.Header.Get(name); got != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
	const whole, none = "0123456789", "bytes */10"
	for asked, c := range map[string]struct {
		status        int
		body, content string // content is the Content-Range header
	}{
		"bytes=0-3":                     {status: 206, body: "0123", content: "bytes 0-3/10"},
		"bytes=7-":                      {status: 206, body: "789", content: "bytes 7-9/10"},
		"bytes=-2":                      {status: 206, body: "89", content: "bytes 8-9/10"},
		"bytes=5-99":                    {status: 206, body: "56789", content: "bytes 5-9/10"},
		"bytes=0-99999999999999999999":  {status: 206, body: whole, content: "bytes 0-9/10"},
		"bytes=-99999999999999999999":   {status: 206, body: whole, content: "bytes 0-9/10"},
		"bytes=0-1,3-4":                 {status: 200, body: whole},
		"lines=1-2":                     {status: 200, body: whole},
		"bytes=99999999999999999999-":   {status: 416, content: none},
		"bytes=3-1":                     {status: 416, content: none},
		"bytes=-0":                      {status: 416, content: none},
		"bytes=-":                       {status: 416, content: none},
		"bytes=1-99999999999999999999x": {status: 416, content: none},
		"bytes=10-":                     {status: 416, content: none},
		"bytes=x":                       {status: 416, content: none},
		"bytes=99999999999999999998-99999999999999999999": {status: 416, content: none},
	} {
		a := s.Call(t, "GET", path, "", "Range", asked)
		content := a.Header.Get("Content-Range")
		if a.Status != c.status || c.body != "" && a.Body != c.body || content != c.content {
			t.Errorf("%s: answered %d %q of %s, want %d %q of %s",
				asked, a.Status, a.Body, content, c.status, c.body, c.content)
		}
	}
	head := s.Call(t, "HEAD", path, "", "Range", "bytes=0-3")
	if head.Status != 206 || head.Body != "" || head.Header.Get("Content-Length") != "4" {
		t.Errorf("HEAD is answered with %+v, want 206, the length 4, and no body", head)
	}
	edgetest.Want(t, s.Call(t, "GET", path, "", "If-None-Match", a.Header.Get("ETag")), 304)
	edgetest.Want(t, s.Call(t, "GET", path, "", "Range", "bytes=0-3", "If-Range", `"other"`), 200)
	edgetest.Want(t, s.Call(t, "GET", "/files/"+edgetest.Picture.Key+"/dog.png", ""), 404)
	edgetest.Want(t, s.Call(t, "GET", "/files/other/cat.png", ""), 404)
}
