package sandbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"image"
	"image/png"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	dir := flag.String("sandbox.child", "", "serve this folder until killed")
	flag.Parse()
	if *dir != "" {
		os.Exit(child(*dir))
	}
	os.Exit(m.Run())
}

// rig is a platform that listens on a port.
type rig struct {
	t   *testing.T
	p   *Platform
	url string
}

func start(t *testing.T, dir string, opts Options) *rig {
	t.Helper()
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	p, err := Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(p.Handler())
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		srv.Close()
	})
	return &rig{t: t, p: p, url: srv.URL}
}

type reply struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
}

func (a reply) text(name string) string { s, _ := a.body[name].(string); return s }

func (a reply) code() string {
	e, _ := a.body["error"].(map[string]any)
	s, _ := e["code"].(string)
	return s
}

func (r *rig) try(method, path, token, kind string, body []byte) (reply, error) {
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Close = true // the transport would repeat requests on reused connections
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	a := reply{status: res.StatusCode, header: res.Header, raw: string(raw)}
	if err != nil || !strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		return a, err
	}
	return a, json.Unmarshal(raw, &a.body)
}

func (r *rig) do(method, path, token, body string) reply {
	r.t.Helper()
	kind := ""
	if body != "" {
		kind = "application/json"
	}
	a, err := r.try(method, path, token, kind, []byte(body))
	if err != nil {
		r.t.Fatalf("%s %s: got the error %v, want an answer", method, path, err)
	}
	return a
}

func (r *rig) want(status int, method, path, token, body string) reply {
	r.t.Helper()
	a := r.do(method, path, token, body)
	if a.status != status {
		r.t.Fatalf("%s %s %s: got %d %s, want %d", method, path, body, a.status, a.raw, status)
	}
	return a
}

// join creates an account and signs in.
func (r *rig) join(name, g string) (token string) {
	r.t.Helper()
	r.want(201, "POST", "/api/accounts", "", `{"name":"`+name+`","password":"pw","grade":"`+g+`"}`)
	return r.signIn(name).text("accessToken")
}

func (r *rig) signIn(name string) reply {
	r.t.Helper()
	return r.want(200, "POST", "/api/session", "", `{"name":"`+name+`","password":"pw"}`)
}

func (r *rig) published(name string) []map[string]any {
	r.t.Helper()
	var out struct{ Posts []map[string]any }
	a := r.want(200, "GET", "/_sim/posts?account="+name, "", "")
	if err := json.Unmarshal([]byte(a.raw), &out); err != nil {
		r.t.Fatal(err)
	}
	return out.Posts
}

func (r *rig) upload(token string) reply {
	r.t.Helper()
	a, err := r.try("POST", "/api/media?alt=a%20dot", token, "image/png", dot(r.t))
	if err != nil || a.status != 201 {
		r.t.Fatalf("upload: %v %d %s", err, a.status, a.raw)
	}
	return a
}

func dot(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// raw writes a request on a new connection and returns the connection.
func (r *rig) raw(method, path, token, body string) net.Conn {
	r.t.Helper()
	conn, err := new(net.Dialer).DialContext(r.t.Context(), "tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if kind := http.DetectContentType([]byte(body)); kind == "image/png" {
		req.Header.Set("Content-Type", kind)
	}
	if err := req.Write(conn); err != nil {
		r.t.Fatal(err)
	}
	return conn
}

// answered reads one response from the connection. It returns nil if the connection ends first.
func (r *rig) answered(conn net.Conn) *http.Response {
	r.t.Helper()
	b := bufio.NewReader(conn)
	if _, err := b.Peek(1); err != nil {
		return nil
	}
	res, err := http.ReadResponse(b, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	_ = res.Body.Close()
	return res
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 2000 {
		if ok() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("timed out; want: " + what)
}
