package edge_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// hidden is a request that must never run: its trace would be an id that only it deletes.
const hidden = "DELETE /public/v1/posts/smuggled HTTP/1.1\r\nHost: x\r\nAuthorization: " + goodKey + "\r\nContent-Length: 0\r\n\r\n"

// last is sent behind everything else, so that every connection comes to an end.
const last = "GET /is-this-the-end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

// raw sends bytes as they are on one connection, and reads until the server closes it.
func (r *running) raw(t *testing.T, message string) string {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() { _, _ = io.WriteString(conn, message+last) }() // the server may close before the end
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) { // a reset is an end, too
		t.Errorf("the connection stays open after %q", out)
	}
	return string(out)
}

func chunked(body string) string { return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body) }

func TestRequestsHiddenInBodiesNeverRun(t *testing.T) {
	t.Parallel()
	auth := "Authorization: " + goodKey + "\r\n"
	form := "Content-Type: multipart/form-data; boundary=b\r\n"
	big := strings.Repeat(" ", 2<<20)
	// The server reads so much of a body with the headers; what comes behind it is what a careless server would run.
	first := strings.Repeat("x", 8<<10)
	for name, c := range map[string]struct {
		head, body string
		refuse     bool
		status     string
	}{
		"upload without key":       {head: "POST /public/v1/upload HTTP/1.1\r\n" + form, body: first + hidden, refuse: false, status: " 401 "},
		"large upload without key": {head: "POST /public/v1/upload HTTP/1.1\r\n" + form, body: big + hidden, refuse: false, status: ""},
		"upload refused by limit":  {head: "POST /public/v1/upload HTTP/1.1\r\n" + auth + form, body: first + hidden, refuse: true, status: " 429 "},
		"upload of another type":   {head: "POST /public/v1/upload HTTP/1.1\r\n" + auth + "Content-Type: text/plain\r\n", body: first + hidden, refuse: false, status: " 400 "},
		"upload that is malformed": {head: "POST /public/v1/upload HTTP/1.1\r\n" + auth + form, body: "--b\r\n\r\n" + first[6:] + hidden, refuse: false, status: " 400 "},
		"upload that is too large": {
			head: "POST /public/v1/upload HTTP/1.1\r\n" + auth + form,
			body: "--b\r\nContent-Disposition: form-data; name=file; filename=a\r\n\r\n" + strings.Repeat("x", 300<<10) + hidden, refuse: false, status: "",
		},
		"JSON that is too long": {head: "PUT /public/v1/posts/p/status HTTP/1.1\r\n" + auth, body: big + hidden, refuse: false, status: ""},
		"JSON without key":      {head: "POST /public/v1/posts HTTP/1.1\r\n", body: first + hidden, refuse: false, status: " 401 "},
		"a GET with a body":     {head: "GET /public/v1/is-connected HTTP/1.1\r\n" + auth, body: first + hidden, refuse: false, status: " 200 "},
		"a DELETE with a body":  {head: "DELETE /public/v1/posts/other HTTP/1.1\r\n" + auth, body: first + hidden, refuse: false, status: " 200 "},
		"no such route":         {head: "POST /nowhere HTTP/1.1\r\n", body: first + hidden, refuse: false, status: " 404 "},
		"no such method":        {head: "BREW /public/v1/posts HTTP/1.1\r\n", body: first + hidden, refuse: false, status: " 405 "},
		"a preflight":           {head: "OPTIONS /public/v1/posts HTTP/1.1\r\nOrigin: http://a\r\nAccess-Control-Request-Method: POST\r\n", body: first + hidden, refuse: false, status: " 204 "},
		"a missing route":       {head: "POST /stripe HTTP/1.1\r\n", body: first + hidden, refuse: false, status: " 501 "},
	} {
		for _, form := range []string{"with a length", "in chunks"} {
			t.Run(name+" "+form, func(t *testing.T) {
				t.Parallel()
				s := start(t, map[string]string{"UPLOAD_BODY_LIMIT": "200000"})
				s.refused.Store(c.refuse)
				framing, body := fmt.Sprintf("Content-Length: %d\r\n\r\n", len(c.body)), c.body
				if form == "in chunks" {
					framing, body = "Transfer-Encoding: chunked\r\n\r\n", chunked(c.body)
				}
				out := s.raw(t, strings.Replace(c.head, "HTTP/1.1\r\n", "HTTP/1.1\r\nHost: x\r\n", 1)+framing+body)
				if !strings.Contains(out, c.status) {
					t.Errorf("no %q in %q", c.status, out)
				}
				s.mu.Lock()
				defer s.mu.Unlock()
				if strings.Contains(strings.Join(s.ids, " "), "smuggled") {
					t.Errorf("the hidden request ran: %q", out)
				}
			})
		}
	}
}

func TestBody_BrokenChunksCloseConnection(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, path := range []string{"/public/v1/posts", "/public/v1/upload", "/nowhere"} {
		out := s.raw(t, "POST "+path+" HTTP/1.1\r\nHost: x\r\nAuthorization: "+goodKey+"\r\nContent-Type: multipart/form-data; boundary=b\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n0\r\n\r\n"+hidden)
		if n := strings.Count(out, "HTTP/1.1 "); n > 1 {
			t.Errorf("%s: got %d answers, want one: %q", path, n, out)
		}
	}
	if len(s.ids) != 0 {
		t.Errorf("requests ran: %v, want none", s.ids)
	}
}

func TestPipelinedRequests_AllRun(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	one := "POST /public/v1/posts HTTP/1.1\r\nHost: x\r\nAuthorization: " + goodKey + "\r\n"
	withLength := one + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(goodPost)) + goodPost
	out := s.raw(t, withLength+withLength+strings.Replace(hidden, "smuggled", "piped", 1)+one+"Transfer-Encoding: chunked\r\n\r\n"+chunked(goodPost))
	if strings.Count(out, "HTTP/1.1 201") != 3 || strings.Count(out, "HTTP/1.1 200") != 1 || len(s.creates) != 3 || len(s.ids) != 1 {
		t.Errorf("got %d creates and %v, want 3 and one id: %q", len(s.creates), s.ids, out)
	}
}

// TestBody_ConnectionClosesAfterChunks: a proxy may see the end of a trailer elsewhere, and read the next request as a
// part of it.
func TestBody_ConnectionClosesAfterChunks(t *testing.T) {
	t.Parallel()
	health := "GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, c := range map[string]struct {
		head, body string
		status     string
	}{
		"a trailer that ends without CR":   {head: "POST /nowhere HTTP/1.1\r\n", body: "0\r\nX: a\n\n", status: "404"},
		"a trailer":                        {head: "POST /nowhere HTTP/1.1\r\n", body: "0\r\nX: a\r\n\r\n", status: "404"},
		"no trailer":                       {head: "POST /nowhere HTTP/1.1\r\n", body: "0\r\n\r\n", status: "404"},
		"a trailer of a body that is read": {head: "POST /public/v1/posts HTTP/1.1\r\n" + withKey, body: strings.TrimSuffix(chunked(goodPost), "\r\n") + "X: a\n\n", status: "201"},
		"a trailer of a GET":               {head: "GET /health HTTP/1.1\r\n", body: "0\r\nX: a\n\n", status: "200"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, nil)
			out := s.raw(t, strings.Replace(c.head, "HTTP/1.1\r\n", "HTTP/1.1\r\nHost: x\r\n", 1)+"Transfer-Encoding: chunked\r\n\r\n"+c.body+health)
			if !strings.HasPrefix(out, "HTTP/1.1 "+c.status+" ") || strings.Count(out, "HTTP/1.1 ") != 1 || !strings.Contains(out, "\r\nConnection: close\r\n") {
				t.Errorf("want one answer with %s and Connection: close, got %q", c.status, out)
			}
		})
	}
}

func TestBody_IsLimited(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"BODY_LIMIT": "1000", "POST_BODY_LIMIT": "5000", "UPLOAD_BODY_LIMIT": "3000"})
	pad := func(n int) string { return `{"status":"draft","pad":"` + strings.Repeat("x", n) + `"}` }
	want(t, s.api(t, "PUT", "/public/v1/posts/p/status", pad(900)), 200)
	want(t, s.api(t, "PUT", "/public/v1/posts/p/status", pad(1000)), 413, `"statusCode":413`)
	want(t, s.api(t, "POST", "/public/v1/posts", strings.Replace(goodPost, `"x"`, `"`+strings.Repeat("x", 3000)+`"`, 1)), 201)
	want(t, s.api(t, "POST", "/public/v1/posts", strings.Replace(goodPost, `"x"`, `"`+strings.Repeat("x", 5000)+`"`, 1)), 413)
	for _, length := range []int64{0, -1} {
		body, kind := upload(t, "file", "a.png", strings.NewReader(strings.Repeat("x", 4000)))
		req, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/public/v1/upload", io.MultiReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = length
		if length == 0 {
			req.ContentLength = int64(body.Len())
		}
		req.Header.Set("Authorization", goodKey)
		req.Header.Set("Content-Type", kind)
		resp, err := s.client.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 413 {
			t.Errorf("length %d: got %d, want 413", length, resp.StatusCode)
		}
	}
}

func upload(t testing.TB, field, name string, r io.Reader) (*bytes.Buffer, string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	if err := w.WriteField("before", "something"); err != nil {
		t.Fatal(err)
	}
	part, err := w.CreateFormFile(field, name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(part, r); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b, w.FormDataContentType()
}

func TestUpload_AnswersMedium(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	body, kind := upload(t, "file", "png", strings.NewReader("content"))
	a := s.call(t, "POST", "/public/v1/upload", body.String(), "Authorization", goodKey, "Content-Type", kind)
	url := "http://crier.test/files/abcdefghijklmnopqrstuv/cat.png"
	want(t, a, 201, `"id":"`+picture.ID.String()+`"`, `"url":"`+url+`"`, `"path":"`+url+`"`, `"name":"cat.png"`, `"originalName":"png"`, `"thumbnail":null`, `"alt":null`)
	if s.uploaded != 7 {
		t.Errorf("%d bytes were uploaded, want 7", s.uploaded)
	}
	body, kind = upload(t, "other", "png", strings.NewReader("content"))
	want(t, s.call(t, "POST", "/public/v1/upload", body.String(), "Authorization", goodKey, "Content-Type", kind), 400, `The form has a file in the field \"other\": send one file, in the field file.`)
	body, kind = upload(t, "file", "png", strings.NewReader("content"))
	want(t, s.call(t, "POST", "/public/v1/upload", body.String()[:body.Len()-30], "Authorization", goodKey, "Content-Type", kind), 400)
	encoded := strings.Replace(body.String(), "\r\n\r\ncontent", "\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\ncon\atent", 1)
	want(t, s.call(t, "POST", "/public/v1/upload", encoded, "Authorization", goodKey, "Content-Type", kind), 400, "Content-Transfer-Encoding")
}

// TestUpload_RefusesOtherFilesOfForm: a file that is not stored is refused instead of dropped silently.
func TestUpload_RefusesOtherFilesOfForm(t *testing.T) {
	t.Parallel()
	field := func(disposition, content string) string {
		return "--b\r\nContent-Disposition: form-data; " + disposition + "\r\n\r\n" + content + "\r\n"
	}
	file, text := field(`name="file"; filename="a.png"`, "content"), field(`name="alt"`, "a cat")
	other := field(`name="image[]"; filename="b.png"`, "content")
	const one = `The form has a file in the field \"image[]\": send one file, in the field file.`
	const each = "The form has more than one field file: send each file in a request of its own."
	for name, c := range map[string]struct {
		body, words string
		status      int
	}{
		"one file":                         {body: file, status: 201},
		"a file between fields":            {body: text + file + text, status: 201},
		"a file and an empty input":        {body: file + field(`name="image[]"; filename=""`, ""), status: 201},
		"two files":                        {body: file + file, status: 400, words: each},
		"two files with a field between":   {body: file + text + file, status: 400, words: each},
		"a file in another field":          {body: other, status: 400, words: one},
		"a file in another field, before":  {body: other + file, status: 400, words: one},
		"a file in another field, after":   {body: file + other, status: 400, words: one},
		"fields alone":                     {body: text, status: 400, words: "There is no file: send it in the field file."},
		"a field name that goes on":        {body: field(`name="`+strings.Repeat("x", 200)+`"; filename="b"`, ""), status: 400, words: `\"` + strings.Repeat("x", 60) + `\":`},
		"nearly 64 KB after the file":      {body: file + field(`name="alt"`, strings.Repeat("x", 60<<10)), status: 201},
		"more than 64 KB after the file":   {body: file + field(`name="alt"`, strings.Repeat("x", 80<<10)), status: 400, words: "At most 64 KB of other fields"},
		"a broken field after the file":    {body: file + "--b\r\n" + strings.Repeat("\x01", 100) + "\r\n\r\n", status: 400, words: "not well formed"},
		"a header of 9 MB after the file":  {body: file + field(`name="`+strings.Repeat("a", 9<<20)+`"`, ""), status: 400, words: "At most 64 KB"},
		"a second file after 1 MB of text": {body: file + field(`name="alt"`, strings.Repeat("x", 1<<20)) + file, status: 400, words: "At most 64 KB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, nil)
			a := s.call(t, "POST", "/public/v1/upload", c.body+"--b--\r\n", "Authorization", goodKey, "Content-Type", "multipart/form-data; boundary=b")
			want(t, a, c.status, c.words)
			if n := len(s.log.String()); n > 2000 {
				t.Errorf("%d bytes were logged", n)
			}
		})
	}
}

// uploadOf returns a body with a part that has these headers, after another field of so many bytes.
func uploadOf(headers string, before int) string {
	field := "--b\r\nContent-Disposition: form-data; name=\"before\"\r\n\r\n" + strings.Repeat("x", before) + "\r\n"
	return field + "--b\r\n" + headers + "\r\n\r\ncontent\r\n--b--\r\n"
}

func TestUpload_LimitsBytesBeforeFile(t *testing.T) {
	t.Parallel()
	const file = `Content-Disposition: form-data; name="file"; filename="%s"`
	named := func(n int) string { return fmt.Sprintf(file, strings.Repeat("a", n)) }
	const late, long, malformed = "must begin within the first 64 KB", "must have at most 1,024 bytes", "not well formed"
	for name, c := range map[string]struct {
		body   string
		status int
		words  string
	}{
		"nearly 64 KB of another field": {body: uploadOf(named(5), 64<<10-200), status: 201, words: ""},
		"64 KB of another field":        {body: uploadOf(named(5), 64<<10), status: 400, words: late},
		"the longest name":              {body: uploadOf(named(1024), 0), status: 201, words: ""},
		"a name that is too long":       {body: uploadOf(named(1025), 0), status: 400, words: long},
		"a name of 9 MB":                {body: uploadOf(named(9<<20), 0), status: 400, words: late},
		"an encoded name":               {body: uploadOf(`Content-Disposition: form-data; name="file"; filename*=utf-8''`+strings.Repeat("%61", 1025), 0), status: 400, words: long},
		"9,900 headers":                 {body: uploadOf(named(5)+strings.Repeat("\r\nA: bcdef", 9900), 0), status: 400, words: late},
		"9 MB without a colon":          {body: uploadOf(strings.Repeat("\x01", 9<<20), 0), status: 400, words: late},
		"60 KB without a colon":         {body: uploadOf(strings.Repeat("\x01", 60<<10), 0), status: 400, words: malformed},
		"a preamble of 9 MB":            {body: strings.Repeat("x\n", 9<<19) + uploadOf(named(5), 0), status: 400, words: late},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, nil)
			a := s.call(t, "POST", "/public/v1/upload", c.body, "Authorization", goodKey, "Content-Type", "multipart/form-data; boundary=b")
			want(t, a, c.status, c.words)
			if n := len(s.log.String()); n > 2000 {
				t.Errorf("%d bytes were logged", n)
			}
		})
	}
}

// zeros reads as left zero bytes.
type zeros struct{ left int64 }

func (z *zeros) Read(p []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), z.left)
	z.left -= n
	return int(n), nil
}

func TestUpload_LargeFileStaysOutOfMemory(t *testing.T) {
	s := start(t, nil)
	const size = 256 << 20
	head := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.mp4\"\r\n\r\n"
	body := io.MultiReader(strings.NewReader(head), &zeros{left: size}, strings.NewReader("\r\n--b--\r\n"))
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/public/v1/upload", bufio.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", goodKey)
	req.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	resp, err := s.client.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	runtime.ReadMemStats(&after)
	if resp.StatusCode != 201 || s.uploaded != size {
		t.Errorf("got %d and %d bytes, want 201 and %d", resp.StatusCode, s.uploaded, size)
	}
	if grown := int64(after.Sys) - int64(before.Sys); grown > 32<<20 {
		t.Errorf("memory grew by %d MB, want at most 32", grown>>20)
	}
}
