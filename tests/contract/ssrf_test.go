package contract

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"crier/platform/fault"
	"crier/publishing"
	"crier/tests/canary"
)

// TestOutgoing_ReachesPublicAddressesOnly requests hostile addresses wherever a client may name
// one.
func TestOutgoing_ReachesPublicAddressesOnly(t *testing.T) {
	t.Parallel()
	c := canary.New(t)
	redirector, to := canary.Redirector(t)
	r := start(t, map[string]string{"OUTBOUND_ALLOW": redirector, "TRUSTED_PROXIES": "127.0.0.1", "APP_LIMIT": "100000"})
	o := r.organization(t)
	asked := 0
	refused := func(t *testing.T, address string) {
		t.Helper()
		asked++
		body, err := json.Marshal(m{"url": address})
		if err != nil {
			t.Fatal(err)
		}
		if a := o.do(t, http.MethodPost, "/upload-from-url", string(body)); a.Status != http.StatusBadRequest {
			t.Errorf("%q is answered with %v, want 400", address, a)
		}
	}
	all := append(append(c.URLs("http", "/cat.png"), c.URLs("https", "/cat.png")...), c.OtherSchemes()...)
	for _, address := range all {
		refused(t, address)
	}
	// Relative targets lead back to the redirector, which redirects to nowhere.
	for _, address := range append(c.URLs("http", "/cat.png"), c.OtherSchemes()...) {
		refused(t, to(address))
		refused(t, to(to(address)))
	}
	refused(t, to(to(to(to(to("https://127.0.0.1/"))))))
	c.Silent(t)
	if asked < 40 {
		t.Errorf("%d hostile addresses were tried, want 40 at least", asked)
	}
	t.Run("streams", func(t *testing.T) {
		signedIn := o.dashboard(t)
		for i, address := range append(c.URLs("https", "/a.mp4"), c.OtherSchemes()...) {
			// The limits are 30 a minute per address and 120 per network.
			from := fmt.Sprintf("%d.%d.7.9", 60+i/250, i%250)
			a := signedIn(http.MethodGet, "/public/stream?url="+url.QueryEscape(address), nil, "X-Forwarded-For", from)
			if a.Status != http.StatusBadRequest && a.Status != http.StatusBadGateway {
				t.Errorf("%q is answered with %v, want 400 or 502", address, a)
			}
		}
		c.Silent(t)
	})
	t.Run("custom instances", func(t *testing.T) {
		connect := func(platform string, fields map[string]string) {
			t.Helper()
			state, err := r.app.Channels.Begin(t.Context(), r.owner, publishing.BeginConnect{Connector: platform})
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.app.Channels.Finish(t.Context(), publishing.FinishConnect{Connector: platform, State: state, Fields: fields})
			if !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.Unavailable) {
				t.Errorf("%s with %v: %v, want a refusal", platform, fields, err)
			}
		}
		for _, address := range append(c.URLs("https", ""), c.URLs("http", "")...) {
			connect("bluesky", map[string]string{"service": address, "identifier": "somebody.example.com", "password": "abcd-efgh-ijkl-mnop"})
		}
		c.Silent(t)
	})
}

// TestUploadFromURL_StoresAsUpload downloads from a server that the service may reach.
func TestUploadFromURL_StoresAsUpload(t *testing.T) {
	t.Parallel()
	picture := png(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch q.URL.Path {
		case "/missing.png":
			w.WriteHeader(http.StatusNotFound)
		case "/text.png":
			_, _ = w.Write([]byte("no picture"))
		case "/cut.png":
			w.Header().Set("Content-Length", "20000")
			_, _ = w.Write(picture)
		case "/large.mp4":
			_, _ = w.Write(append(mp4(), make([]byte, 50_000)...))
		case "/announced.mp4":
			w.Header().Set("Content-Length", "900000000")
			_, _ = w.Write(mp4())
		case "/again":
			http.Redirect(w, q, "/files/a%20cat.webp", http.StatusFound)
		default:
			_, _ = w.Write(picture)
		}
	}))
	t.Cleanup(server.Close)
	r := start(t, map[string]string{
		"OUTBOUND_ALLOW": server.Listener.Addr().String(), "MAX_VIDEO_BYTES": "40000", "MAX_IMAGE_BYTES": "20000",
	})
	o, other := r.organization(t), r.organization(t)
	fetch := func(o org, body any) answer { return o.do(t, http.MethodPost, "/upload-from-url", body) }
	first := read[medium](t, fetch(o, m{"url": server.URL + "/a%20cat.webp?size=1"}).want(t, http.StatusCreated))
	if !fileAddress.MatchString(first.URL) || !strings.HasSuffix(first.URL, "/a-cat.png") {
		t.Errorf("the file is at %s, want the name a-cat.png", first.URL)
	}
	for name, address := range map[string]string{
		"the same bytes": server.URL + "/other.png", "a redirect": server.URL + "/again", "its own address": first.URL,
	} {
		again := read[medium](t, fetch(o, m{"url": address}).want(t, http.StatusCreated))
		if again.ID == first.ID || again.URL == first.URL {
			t.Errorf("%s: the file is %s at %s, want one of its own", name, again.ID, again.URL)
		}
		o.do(t, http.MethodDelete, "/media/"+again.ID, nil).want(t, http.StatusOK)
		file := o
		file.prefix, file.key = strings.TrimPrefix(first.URL, base), ""
		if got := file.get(t, "").want(t, http.StatusOK); got.Body != string(picture) {
			t.Errorf("%s: the first file has %d bytes after the deletion, want %d", name, len(got.Body), len(picture))
		}
	}
	if theirs := read[medium](t, fetch(other, m{"url": server.URL + "/cat.png"}).want(t, http.StatusCreated)); theirs.ID == first.ID {
		t.Error("another organization got the same file")
	}
	for name, v := range map[string]struct {
		body   any
		status int
	}{
		"a file of another organization": {body: m{"url": read[medium](t, other.upload(t, "x.jpg", jpg(t))).URL}, status: 400},
		"a status of 404":                {body: m{"url": server.URL + "/missing.png"}, status: 400},
		"a text":                         {body: m{"url": server.URL + "/text.png"}, status: 400},
		"an answer that breaks off":      {body: m{"url": server.URL + "/cut.png"}, status: 400},
		"a large file":                   {body: m{"url": server.URL + "/large.mp4"}, status: 413},
		"a file announced as large":      {body: m{"url": server.URL + "/announced.mp4"}, status: 413},
		"no url":                         {body: m{}, status: 400},
		"an empty url":                   {body: m{"url": ""}, status: 400},
		"a number":                       {body: m{"url": 1}, status: 400},
		"a long url":                     {body: m{"url": server.URL + "/" + strings.Repeat("x", 5000)}, status: 400},
		"no object":                      {body: "[]", status: 400},
	} {
		if a := fetch(o, v.body); a.Status != v.status {
			t.Errorf("%s is answered with %v, want %d", name, a, v.status)
		}
	}
}
