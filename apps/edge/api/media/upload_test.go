package media_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"crier/tests/edgetest"
)

func TestUpload_AnswersMedium(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	body, kind := edgetest.UploadForm(t, "file", "png", strings.NewReader("content"))
	a := s.Call(t, "POST", "/public/v1/upload", body.String(), "Authorization", edgetest.APIKey, "Content-Type", kind)
	url := "http://crier.test/files/abcdefghijklmnopqrstuv/cat.png"
	edgetest.Want(t, a, 201, `"id":"`+edgetest.Picture.ID.String()+`"`, `"url":"`+url+`"`, `"path":"`+url+`"`, `"name":"cat.png"`, `"originalName":"png"`, `"thumbnail":null`, `"alt":null`)
	if s.Uploaded != 7 {
		t.Errorf("%d bytes were uploaded, want 7", s.Uploaded)
	}
	body, kind = edgetest.UploadForm(t, "other", "png", strings.NewReader("content"))
	edgetest.Want(t, s.Call(t, "POST", "/public/v1/upload", body.String(), "Authorization", edgetest.APIKey, "Content-Type", kind), 400,
		`The form has a file in the field \"other\". Send one file, in the field file.`)
	body, kind = edgetest.UploadForm(t, "file", "png", strings.NewReader("content"))
	edgetest.Want(t, s.Call(t, "POST", "/public/v1/upload", body.String()[:body.Len()-30], "Authorization", edgetest.APIKey, "Content-Type", kind), 400)
	encoded := strings.Replace(body.String(), "\r\n\r\ncontent", "\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\ncon\atent", 1)
	edgetest.Want(t, s.Call(t, "POST", "/public/v1/upload", encoded, "Authorization", edgetest.APIKey, "Content-Type", kind), 400, "Content-Transfer-Encoding")
}

// TestUpload_RefusesOtherFilesOfForm: a file that would not be stored is refused, not silently
// dropped.
func TestUpload_RefusesOtherFilesOfForm(t *testing.T) {
	t.Parallel()
	field := func(disposition, content string) string {
		return "--b\r\nContent-Disposition: form-data; " + disposition + "\r\n\r\n" + content + "\r\n"
	}
	file, text := field(`name="file"; filename="a.png"`, "content"), field(`name="alt"`, "a cat")
	other := field(`name="image[]"; filename="b.png"`, "content")
	const one = `The form has a file in the field \"image[]\". Send one file, in the field file.`
	const each = "The form has more than one field file. Send each file in a separate request."
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
		"fields alone":                     {body: text, status: 400, words: "There is no file. Send it in the field file."},
		"a field name that goes on":        {body: field(`name="`+strings.Repeat("x", 200)+`"; filename="b"`, ""), status: 400, words: `\"` + strings.Repeat("x", 60) + `\".`},
		"nearly 64 KB after the file":      {body: file + field(`name="alt"`, strings.Repeat("x", 60<<10)), status: 201},
		"more than 64 KB after the file":   {body: file + field(`name="alt"`, strings.Repeat("x", 80<<10)), status: 400, words: "At most 64 KB of other fields"},
		"a broken field after the file":    {body: file + "--b\r\n" + strings.Repeat("\x01", 100) + "\r\n\r\n", status: 400, words: "not well formed"},
		"a header of 9 MB after the file":  {body: file + field(`name="`+strings.Repeat("a", 9<<20)+`"`, ""), status: 400, words: "At most 64 KB"},
		"a second file after 1 MB of text": {body: file + field(`name="alt"`, strings.Repeat("x", 1<<20)) + file, status: 400, words: "At most 64 KB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := edgetest.New(t, nil)
			a := s.Call(t, "POST", "/public/v1/upload", c.body+"--b--\r\n", "Authorization", edgetest.APIKey, "Content-Type", "multipart/form-data; boundary=b")
			edgetest.Want(t, a, c.status, c.words)
			if n := len(s.Log.String()); n > 2000 {
				t.Errorf("%d bytes were logged", n)
			}
		})
	}
}

// uploadOf returns a body with a part that has the given headers, preceded by a field of before
// bytes.
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
			s := edgetest.New(t, nil)
			a := s.Call(t, "POST", "/public/v1/upload", c.body, "Authorization", edgetest.APIKey, "Content-Type", "multipart/form-data; boundary=b")
			edgetest.Want(t, a, c.status, c.words)
			if n := len(s.Log.String()); n > 2000 {
				t.Errorf("%d bytes were logged", n)
			}
		})
	}
}

// zeros is a reader that returns left zero bytes.
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
	s := edgetest.New(t, nil)
	const size = 256 << 20
	head := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.mp4\"\r\n\r\n"
	body := io.MultiReader(strings.NewReader(head), &zeros{left: size}, strings.NewReader("\r\n--b--\r\n"))
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/public/v1/upload", bufio.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", edgetest.APIKey)
	req.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	resp, err := s.Client.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	runtime.ReadMemStats(&after)
	if resp.StatusCode != 201 || s.Uploaded != size {
		t.Errorf("got %d and %d bytes, want 201 and %d", resp.StatusCode, s.Uploaded, size)
	}
	if grown := int64(after.Sys) - int64(before.Sys); grown > 32<<20 {
		t.Errorf("memory grew by %d MB, want at most 32", grown>>20)
	}
}
