package contract

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	stdpng "image/png"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"regexp"
	"strings"
	"testing"

	"crier/tests/fixture"
)

func picture() image.Image {
	img := image.NewPaletted(image.Rect(0, 0, 8, 6), color.Palette{color.White, color.Black})
	img.Set(3, 3, color.Black)
	return img
}

func png(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := stdpng.Encode(&b, picture()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func jpg(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, picture(), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gifImage(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := gif.Encode(&b, picture(), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// mp4 returns a video.
func mp4() []byte { return fixture.Film(make([]byte, 64)) }

func (o org) upload(t *testing.T, filename string, data []byte) answer {
	t.Helper()
	return o.uploadAs(t, "file", filename, "image/jpeg", data)
}

func (o org) uploadAs(t *testing.T, field, filename, kind string, data []byte) answer {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	h := textproto.MIMEHeader{}
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace
	h.Set("Content-Disposition", `form-data; name="`+escape(field)+`"; filename="`+escape(filename)+`"`)
	h.Set("Content-Type", kind)
	p, err := w.CreatePart(h)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return o.do(t, http.MethodPost, "/upload", b.String(), "Content-Type", w.FormDataContentType())
}

// mediaRig starts a service with small limits for files.
func mediaRig(t *testing.T) *rig {
	t.Helper()
	return start(t, map[string]string{
		"MAX_IMAGE_BYTES": "20000", "MAX_VIDEO_BYTES": "40000", "UPLOAD_BODY_LIMIT": "100000",
	})
}

var fileAddress = regexp.MustCompile(
	`^` + regexp.QuoteMeta(base) + `/files/[A-Za-z0-9]{22,}/([A-Za-z0-9_-]|%[0-9A-F]{2})+\.(png|jpg|gif|mp4)$`)

func TestMedia(t *testing.T) {
	t.Parallel()
	subjects(t, mediaRig(t), map[string]subject{
		"accepted files are stored, served and published": testAccepted,
		"other files are refused":                         testRefused,
		"a file with a wrong key or name is not found":    testWrongFile,
	})
}

func testAccepted(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	for what, v := range map[string]struct {
		name, ext, kind string
		data            []byte
	}{
		"png":                         {name: "a cat.png", ext: "png", kind: "image/png", data: png(t)},
		"jpg":                         {name: "cat.jpg", ext: "jpg", kind: "image/jpeg", data: jpg(t)},
		"jpeg":                        {name: "cat.JPEG", ext: "jpg", kind: "image/jpeg", data: jpg(t)},
		"gif":                         {name: "cat.gif", ext: "gif", kind: "image/gif", data: gifImage(t)},
		"mp4":                         {name: "cat.mp4", ext: "mp4", kind: "video/mp4", data: mp4()},
		"a bare extension for a name": {name: "png", ext: "png", kind: "image/png", data: png(t)},
		"a client's word for no name": {name: "undefined", ext: "jpg", kind: "image/jpeg", data: jpg(t)},
		"a video under that word":     {name: "undefined", ext: "mp4", kind: "video/mp4", data: mp4()},
		"a path for a name":           {name: "../../etc/passwd.png", ext: "png", kind: "image/png", data: png(t)},
		"a name in another script":    {name: "日本.png", ext: "png", kind: "image/png", data: png(t)},
	} {
		t.Run("accepts "+what, func(t *testing.T) {
			t.Parallel()
			a := o.upload(t, v.name, v.data).want(t, http.StatusCreated)
			members(t, a.raw(), "id", "url", "path", "name", "originalName?", "thumbnail", "alt")
			got := read[medium](t, a)
			if got.Path != got.URL || !fileAddress.MatchString(got.URL) || !strings.HasSuffix(got.URL, "."+v.ext) {
				t.Fatalf("the file is %+v, want a path and an equal url that match %s and end in .%s", got, fileAddress, v.ext)
			}
			file := o
			file.prefix, file.key = strings.TrimPrefix(got.URL, base), ""
			served(t, file, v.data, v.kind)
			full := o.reaches(t, o.create(t, now(c.id, part(what, got))), "PUBLISHED")
			if m, kind := full.Media[0], strings.Split(v.kind, "/")[0]; m.URL != got.URL || m.Type != kind {
				t.Fatalf("the post has the file %s of the type %s, want %s of %s", m.URL, m.Type, got.URL, kind)
			}
		})
	}
	t.Run("accepts a file of exactly the largest size", func(t *testing.T) {
		t.Parallel()
		o.stored(t, "edge.png", append(png(t), make([]byte, 20000-len(png(t)))...))
	})
}

// served checks that a file is served whole and in ranges, with headers that keep browsers from
// running it.
func served(t *testing.T, file org, data []byte, kind string) {
	t.Helper()
	whole := file.get(t, "").want(t, http.StatusOK)
	if whole.Body != string(data) {
		t.Fatalf("%d bytes are served, want the %d that were uploaded", len(whole.Body), len(data))
	}
	for name, want := range map[string]string{"Content-Type": kind, "X-Content-Type-Options": "nosniff"} {
		if got := whole.Header.Get(name); got != want {
			t.Fatalf("the header %s is %q, want %q", name, got, want)
		}
	}
	if got := whole.Header.Get("Content-Security-Policy"); !strings.Contains(got, "sandbox") {
		t.Fatalf("the policy is %q, want a sandbox", got)
	}
	ranges(t, file, string(data))
}

func testRefused(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	const svg = `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`
	for what, v := range map[string]struct {
		name   string
		data   []byte
		status int
	}{
		"an extension that the content belies": {name: "cat.jpg", data: png(t), status: 400},
		"a png named mp4":                      {name: "cat.mp4", data: png(t), status: 400},
		"svg":                                  {name: "cat.svg", data: []byte(svg), status: 400},
		"svg named png":                        {name: "cat.png", data: []byte(`<?xml version="1.0"?>` + svg), status: 400},
		"html":                                 {name: "page.html", data: []byte("<!DOCTYPE html><script>alert(1)</script>"), status: 400},
		"html named png":                       {name: "page.png", data: []byte("<html><body>hello</body></html>"), status: 400},
		"webp":                                 {name: "a.webp", data: []byte("RIFF\x24\x00\x00\x00WEBPVP8 "), status: 400},
		"text":                                 {name: "a.txt", data: []byte("hello"), status: 400},
		"pdf":                                  {name: "a.pdf", data: []byte("%PDF-1.7\n"), status: 400},
		"an empty file":                        {name: "a.png", status: 400},
		"an image over its limit":              {name: "big.png", data: append(png(t), make([]byte, 20000)...), status: 413},
		"a video over its limit":               {name: "big.mp4", data: append(mp4(), make([]byte, 40000)...), status: 413},
		"a body over the limit of all":         {name: "big.mp4", data: append(mp4(), make([]byte, 200000)...), status: 413},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			o.upload(t, v.name, v.data).refusal(t, v.status)
		})
	}
	t.Run("forms without the file", func(t *testing.T) {
		t.Parallel()
		o.uploadAs(t, "picture", "a.png", "image/png", png(t)).refusal(t, http.StatusBadRequest)
		o.do(t, http.MethodPost, "/upload", m{"file": "x"}).refusal(t, http.StatusBadRequest)
		const cut = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\n\r\n\x89PNG\r\n\x1a\n"
		for _, v := range []struct{ kind, body string }{
			{kind: "multipart/form-data; boundary=x", body: "--x\r\n"},
			{kind: "multipart/form-data", body: ""},
			{kind: "multipart/form-data; boundary=x", body: cut},
		} {
			o.do(t, http.MethodPost, "/upload", v.body, "Content-Type", v.kind).refusal(t, http.StatusBadRequest)
		}
	})
}

func testWrongFile(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	path := strings.TrimPrefix(o.stored(t, "one.png", png(t)).URL, base)
	o.prefix, o.key = "", ""
	for _, wrong := range []string{
		strings.Replace(path, "one.png", "two.png", 1), strings.Replace(path, "one.png", "one.jpg", 1),
		"/files/x/one.png", "/files/" + strings.Repeat("a", 24) + "/one.png", "/files/..%2f..%2fetc/passwd",
	} {
		o.get(t, wrong).refusal(t, http.StatusNotFound)
	}
}

// ranges checks that parts of a file are served, and that clients may cache it.
func ranges(t *testing.T, file org, data string) {
	t.Helper()
	size := len(data)
	for header, want := range map[string]string{
		"bytes=0-0": data[:1], "bytes=4-9": data[4:10], "bytes=-5": data[size-5:],
		fmt.Sprintf("bytes=%d-", size-3): data[size-3:],
	} {
		a := file.do(t, http.MethodGet, "", nil, "Range", header).want(t, http.StatusPartialContent)
		if of := a.Header.Get("Content-Range"); a.Body != want || !strings.HasSuffix(of, fmt.Sprintf("/%d", size)) {
			t.Fatalf("%s answered %q as %s, want %q of %d bytes", header, a.Body, of, want, size)
		}
	}
	beyond := fmt.Sprintf("bytes=%d-", size)
	file.do(t, http.MethodGet, "", nil, "Range", beyond).want(t, http.StatusRequestedRangeNotSatisfiable)
	head := file.do(t, http.MethodHead, "", nil).want(t, http.StatusOK)
	for name, want := range map[string]string{"Content-Length": fmt.Sprint(size), "Accept-Ranges": "bytes"} {
		if got := head.Header.Get(name); got != want {
			t.Fatalf("HEAD answered with %s %q, want %q", name, got, want)
		}
	}
	tag := head.Header.Get("ETag")
	file.do(t, http.MethodGet, "", nil, "If-None-Match", tag).want(t, http.StatusNotModified)
}
