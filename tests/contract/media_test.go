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

// mp4 returns the beginning of a video. The service reads no more of it.
func mp4() []byte {
	return append([]byte("\x00\x00\x00\x20ftypisom\x00\x00\x02\x00isomiso2avc1mp41\x00\x00\x00\x08free\x00\x00\x00\x10mdat"), make([]byte, 64)...)
}

func (o org) upload(t *testing.T, filename string, data []byte) answer {
	t.Helper()
	return o.uploadAs(t, "file", filename, "image/jpeg", data)
}

func (o org) uploadAs(t *testing.T, field, filename, kind string, data []byte) answer {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	h := textproto.MIMEHeader{}
	h.Set("Content-Disposition", fmt.Sprintf(`form-data; name=%q; filename=%q`, field, filename))
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

func TestMedia(t *testing.T) {
	t.Parallel()
	r := start(t, map[string]string{"MAX_IMAGE_BYTES": "20000", "MAX_VIDEO_BYTES": "40000", "UPLOAD_BODY_LIMIT": "100000"})
	o := r.organization(t)
	c := o.channel(t, "A")
	address := regexp.MustCompile(`^` + regexp.QuoteMeta(base) + `/files/[A-Za-z0-9]{22,}/[A-Za-z0-9_-]+\.(png|jpg|gif|mp4)$`)

	accepted := map[string]struct {
		name, ext, kind string
		data            []byte
	}{
		"png":                            {"a cat.png", "png", "image/png", png(t)},
		"jpg":                            {"cat.jpg", "jpg", "image/jpeg", jpg(t)},
		"jpeg":                           {"cat.JPEG", "jpg", "image/jpeg", jpg(t)},
		"gif":                            {"cat.gif", "gif", "image/gif", gifImage(t)},
		"mp4":                            {"cat.mp4", "mp4", "video/mp4", mp4()},
		"a bare extension for a name":    {"png", "png", "image/png", png(t)},
		"a client's word for no name":    {"undefined", "jpg", "image/jpeg", jpg(t)},
		"a video under that word":        {"undefined", "mp4", "video/mp4", mp4()},
		"a path for a name":              {"../../etc/passwd.png", "png", "image/png", png(t)},
		"a name without a single letter": {"日本.png", "png", "image/png", png(t)},
	}
	for what, v := range accepted {
		t.Run("takes "+what, func(t *testing.T) {
			t.Parallel()
			got := o.upload(t, v.name, v.data).want(t, http.StatusCreated).object(t)
			keys(t, got, "id", "url", "path", "name", "originalName?", "thumbnail", "alt")
			url := got["url"].(string)
			if got["path"] != url || !address.MatchString(url) || !strings.HasSuffix(url, "."+v.ext) {
				t.Fatalf("%v", got)
			}
			file := o
			file.prefix, file.key = strings.TrimPrefix(url, base), ""
			whole := file.get(t, "").want(t, http.StatusOK)
			if whole.Body != string(v.data) || whole.Header.Get("Content-Type") != v.kind || whole.Header.Get("X-Content-Type-Options") != "nosniff" ||
				!strings.Contains(whole.Header.Get("Content-Security-Policy"), "sandbox") {
				t.Fatalf("%d bytes, %v", len(whole.Body), whole.Header)
			}
			ranges(t, file, string(v.data))
			post := o.create(t, now(c.id, part(what, got)))
			full := o.reaches(t, post, "PUBLISHED")
			if media := full["media"].([]any)[0].(m); media["url"] != url || media["type"] != strings.Split(v.kind, "/")[0] {
				t.Fatalf("%v", media)
			}
		})
	}

	refused := map[string]struct {
		name   string
		data   []byte
		status int
	}{
		"an extension that the content belies": {"cat.jpg", png(t), 400},
		"a png named mp4":                      {"cat.mp4", png(t), 400},
		"svg":                                  {"cat.svg", []byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`), 400},
		"svg named png":                        {"cat.png", []byte(`<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>`), 400},
		"html":                                 {"page.html", []byte("<!DOCTYPE html><script>alert(1)</script>"), 400},
		"html named png":                       {"page.png", []byte("<html><body>hello</body></html>"), 400},
		"webp":                                 {"a.webp", []byte("RIFF\x24\x00\x00\x00WEBPVP8 "), 400},
		"text":                                 {"a.txt", []byte("hello"), 400},
		"pdf":                                  {"a.pdf", []byte("%PDF-1.7\n"), 400},
		"an empty file":                        {"a.png", nil, 400},
		"an image over its limit":              {"big.png", append(png(t), make([]byte, 20000)...), 413},
		"a video over its limit":               {"big.mp4", append(mp4(), make([]byte, 40000)...), 413},
		"a body over the limit of all":         {"big.mp4", append(mp4(), make([]byte, 200000)...), 413},
	}
	for what, v := range refused {
		t.Run("refuses "+what, func(t *testing.T) {
			t.Parallel()
			o.upload(t, v.name, v.data).refusal(t, v.status)
		})
	}
	t.Run("takes a file of exactly the limit", func(t *testing.T) {
		t.Parallel()
		o.upload(t, "edge.png", append(png(t), make([]byte, 20000-len(png(t)))...)).want(t, http.StatusCreated)
	})
	t.Run("refuses forms without the file", func(t *testing.T) {
		t.Parallel()
		o.uploadAs(t, "picture", "a.png", "image/png", png(t)).refusal(t, 400)
		o.do(t, http.MethodPost, "/upload", m{"file": "x"}).refusal(t, 400)
		o.do(t, http.MethodPost, "/upload", "--x\r\n", "Content-Type", "multipart/form-data; boundary=x").refusal(t, 400)
		o.do(t, http.MethodPost, "/upload", "", "Content-Type", "multipart/form-data").refusal(t, 400)
		o.do(t, http.MethodPost, "/upload", "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\n\r\n\x89PNG\r\n\x1a\n", "Content-Type", "multipart/form-data; boundary=x").refusal(t, 400)
	})
	t.Run("serves nothing under a wrong key or name", func(t *testing.T) {
		t.Parallel()
		url := strings.TrimPrefix(o.upload(t, "one.png", png(t)).want(t, 201).object(t)["url"].(string), base)
		file := o
		file.prefix, file.key = "", ""
		for _, path := range []string{strings.Replace(url, "one.png", "two.png", 1), strings.Replace(url, "one.png", "one.jpg", 1), "/files/x/one.png", "/files/" + strings.Repeat("a", 24) + "/one.png", "/files/..%2f..%2fetc/passwd"} {
			file.get(t, path).refusal(t, http.StatusNotFound)
		}
	})
}

func ranges(t *testing.T, file org, data string) {
	t.Helper()
	size := len(data)
	for header, want := range map[string]string{"bytes=0-0": data[:1], "bytes=4-9": data[4:10], fmt.Sprintf("bytes=%d-", size-3): data[size-3:], "bytes=-5": data[size-5:]} {
		a := file.do(t, http.MethodGet, "", nil, "Range", header).want(t, http.StatusPartialContent)
		if a.Body != want || !strings.HasSuffix(a.Header.Get("Content-Range"), fmt.Sprintf("/%d", size)) {
			t.Fatalf("%s: %q, %v", header, a.Body, a.Header)
		}
	}
	file.do(t, http.MethodGet, "", nil, "Range", fmt.Sprintf("bytes=%d-", size)).want(t, http.StatusRequestedRangeNotSatisfiable)
	head := file.do(t, http.MethodHead, "", nil).want(t, http.StatusOK)
	if head.Header.Get("Content-Length") != fmt.Sprint(size) || head.Header.Get("Accept-Ranges") != "bytes" {
		t.Fatalf("HEAD: %v", head.Header)
	}
	file.do(t, http.MethodGet, "", nil, "If-None-Match", head.Header.Get("ETag")).want(t, http.StatusNotModified)
}
