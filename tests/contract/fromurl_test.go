package contract

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestUploadFromURL_NamesWhatTheAddressReturned checks that the refusal of an address that returns
// no file says what it returned, and that an address may return a file in unusual ways.
func TestUploadFromURL_NamesWhatTheAddressReturned(t *testing.T) {
	t.Parallel()
	picture := string(png(t))
	const page = "<!DOCTYPE html><html><head><title>Photo</title></head><body></body></html>"
	text := func(kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, body)
		}
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	packed := func(coding, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", coding)
			if coding != "gzip" {
				_, _ = io.WriteString(w, body)
				return
			}
			zip := gzip.NewWriter(w)
			_, _ = io.WriteString(zip, body)
			_ = zip.Close() // the client notices missing data
		}
	}
	cases := map[string]struct {
		serve http.HandlerFunc
		want  string // the message, or the name of the stored file
	}{
		"/page.png":       {text("image/png", page), "The address answered with a web page, not a file. Send the address of the picture or video itself."},
		"/error.png":      {text("image/png", `{"error":{"message":"not found"}}`), "The address answered with JSON text, which may be an error message, not a file."},
		"/s3.png":         {text("application/xml", `<?xml version="1.0" encoding="UTF-8"?><Error><Code>AccessDenied</Code></Error>`), "The address answered with XML text, which may be an error message, not a file."},
		"/text.png":       {text("text/plain", "Too many requests"), "The address answered with text, which may be an error message, not a file."},
		"/webp.png":       {text("image/png", "RIFF\x24\x00\x00\x00WEBPVP8 \x18\x00\x00\x00"), "The file is a WebP picture; send it as png, jpg or gif."},
		"/private.png":    {http.RedirectHandler("/accounts/login", http.StatusFound).ServeHTTP, "The address led to a sign-in page on 127.0.0.1, not to a file. It must be public."},
		"/accounts/login": {text("text/html", page), ""},
		"/moved.png":      {http.RedirectHandler("/page.png", http.StatusFound).ServeHTTP, "The address answered with a web page, not a file. Send the address of the picture or video itself."},
		"/401":            {status(401), "The file cannot be downloaded: its server asks for a sign-in (status 401). The address must be public."},
		"/403":            {status(403), "The file cannot be downloaded: its server refuses access (status 403). The address must be public, and may have expired."},
		"/404":            {status(404), "The file cannot be downloaded: its server has no file at this address (status 404)."},
		"/429":            {status(429), "The file cannot be downloaded: its server asks to wait (status 429). Try again later."},
		"/503":            {status(503), "The file cannot be downloaded: its server had an error (status 503). Try again later."},
		"/202":            {status(202), "The file cannot be downloaded: its server answered with status 202."},
		"/unknown.png":    {packed("x-own", "\x00\x01\x02\x03 nothing"), `The file cannot be read: its server sends it with the content coding "x-own", which is not supported.`},
		"/damaged.png":    {packed("br", "\x00\x01\x02\x03 nothing"), "The file cannot be decompressed: it is damaged or incomplete, or not encoded as its server says."},
		"/zipped page":    {packed("gzip", page), "The address answered with a web page, not a file. Send the address of the picture or video itself."},
		"/zipped.png":     {packed("gzip", picture), "zipped.png"},
		"/mislabelled":    {packed("aws-chunked", picture), "mislabelled.png"},
		"/Müller.png":     {text("image/png", picture), "Müller.png"},
		"/download": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Disposition", `attachment; filename="Muller.png"; filename*=UTF-8''M%C3%BCller%0D%0A%2F1.png`)
			_, _ = io.WriteString(w, picture)
		}, "1.png"},
		"/named?id=7": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Disposition", `attachment; filename*=UTF-8''%E6%97%A5%E6%9C%AC.png`)
			_, _ = io.WriteString(w, picture)
		}, "日本.png"},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		cases[strings.TrimSuffix(q.URL.Path+"?"+q.URL.RawQuery, "?")].serve(w, q)
	}))
	t.Cleanup(server.Close)
	r := start(t, map[string]string{"OUTBOUND_ALLOW": server.Listener.Addr().String()})
	o := r.organization(t)
	for path, c := range cases {
		if c.want == "" {
			continue
		}
		a := o.do(t, http.MethodPost, "/upload-from-url", m{"url": server.URL + path})
		if strings.HasSuffix(c.want, ".png") {
			if got := read[medium](t, a.want(t, http.StatusCreated)); got.Name != c.want {
				t.Errorf("%s: the file is named %s, want %s", path, got.Name, c.want)
			}
			continue
		}
		if got := a.refusal(t, http.StatusBadRequest); got != c.want {
			t.Errorf("%s: got %q, want %q", path, got, c.want)
		}
	}
}

func TestUploadFromURL_ExplainsRefusedAddresses(t *testing.T) {
	t.Parallel()
	o := common(t).organization(t)
	const begin = "The file cannot be downloaded: its address and any redirect must "
	for address, want := range map[string]string{
		"data:image/png;base64,iVBORw0KGgo=":     begin + "begin with http:// or https://.",
		`C:\Users\ann\cat.png`:                   begin + "begin with http:// or https://.",
		"www.example.com/cat.png":                begin + "begin with http:// or https://.",
		"https://ann:secret@example.com/cat.png": begin + "not contain a user name or password.",
		"https://ann@example.com/cat.png":        begin + "not contain a user name or password.",
		"https://example.com/50%.png":            "The file cannot be downloaded: its address or a redirect is not a valid URL.",
		"https:///cat.png":                       "The file cannot be downloaded: its address or a redirect is not a valid URL.",
		"[cat](https://example.com/cat.png)":     begin + "begin with http:// or https://.",
	} {
		if got := o.do(t, http.MethodPost, "/upload-from-url", m{"url": address}).refusal(t, http.StatusBadRequest); got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
}
