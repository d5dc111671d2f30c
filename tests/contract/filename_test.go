package contract

import (
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// TestMedia_NamesKeepTheirLetters checks that a file's address keeps the letters of its name, in
// one spelling, and leads to the file however a client encodes it.
func TestMedia_NamesKeepTheirLetters(t *testing.T) {
	t.Parallel()
	r := common(t)
	o := r.organization(t)
	c := o.channel(t, "A")
	for sent, name := range map[string]string{
		"Müller.png": "Müller.png", "Mu\u0308ller.png": "Müller.png", "日本.png": "日本.png", "тест 1.png": "тест-1.png",
		"a\u202egnp.png": "agnp.png", "CON.png": "file.png", strings.Repeat("日", 60) + ".png": strings.Repeat("日", 32) + ".png",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := read[struct{ URL, Name string }](t, o.upload(t, sent, png(t)).want(t, http.StatusCreated))
			path := strings.TrimPrefix(file.URL, base)
			folder, encoded := path[:strings.LastIndex(path, "/")+1], path[strings.LastIndex(path, "/")+1:]
			if encoded != url.PathEscape(name) || file.Name != name {
				t.Fatalf("the file is at %s with the name %s, want %s", file.URL, file.Name, name)
			}
			open := o
			open.prefix, open.key = "", ""
			for spelling, at := range map[string]string{
				"encoded": encoded, "in small letters": hex.ReplaceAllStringFunc(encoded, strings.ToLower), "decomposed": url.PathEscape(decomposed(name)),
				"all of it encoded": everyByte(name),
			} {
				got := open.get(t, folder+at).want(t, http.StatusOK)
				kind, params, err := mime.ParseMediaType(got.Header.Get("Content-Disposition"))
				if err != nil || kind != "inline" || params["filename"] != name || got.Body != string(png(t)) {
					t.Errorf("%s: got %d bytes as %q, want the file as %q", spelling, len(got.Body), got.Header.Get("Content-Disposition"), name)
				}
			}
			for _, wrong := range []string{"x" + encoded, url.PathEscape(encoded) + "x", encoded + "%2fx", "%ff" + encoded, "%0d%0aX-A:%20b" + encoded} {
				open.get(t, folder+wrong).refusal(t, http.StatusNotFound)
			}
			for field, at := range map[string]string{"its address": file.URL, "its address, decoded": base + folder + name} {
				full := o.reaches(t, o.create(t, now(c.id, part(field+" "+name, m{"path": at}))), "PUBLISHED")
				if full.Media[0].URL != file.URL {
					t.Errorf("%s: the post has the file %s, want %s", field, full.Media[0].URL, file.URL)
				}
			}
			copied := read[medium](t, o.do(t, http.MethodPost, "/upload-from-url", m{"url": file.URL}).want(t, http.StatusCreated))
			if !strings.HasSuffix(copied.URL, "/"+url.PathEscape(name)) {
				t.Errorf("the copy is at %s, want the name %s", copied.URL, name)
			}
		})
	}
}

var hex = regexp.MustCompile("%..")

func decomposed(s string) string { return strings.ReplaceAll(s, "ü", "u\u0308") }

func everyByte(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02X", s[i])
	}
	return b.String()
}
