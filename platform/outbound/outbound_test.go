package outbound

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"
)

func TestCheckRedirect_Rules(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		method   string
		via      []string
		to       string
		want     error
		keepAuth bool
	}{
		"same host keeps credentials": {
			method: "GET", via: []string{"https://a.example/1"}, to: "https://a.example/2",
			want: nil, keepAuth: true,
		},
		"other host loses credentials": {method: "GET", via: []string{"https://a.example/1"}, to: "https://b.example/2", want: nil},
		"sub-domain loses credentials": {method: "GET", via: []string{"https://a.example/1"}, to: "https://x.a.example/2", want: nil},
		"other port loses credentials": {method: "HEAD", via: []string{"https://a.example/1"}, to: "https://a.example:8443/2", want: nil},
		"http may become https": {
			method: "GET", via: []string{"http://a.example/"}, to: "https://a.example/",
			want: nil, keepAuth: true,
		},
		"https never becomes http": {
			method: "GET", via: []string{"https://a.example/"}, to: "http://a.example/",
			want: ErrBlocked, keepAuth: true,
		},
		"later https never becomes http": {
			method: "GET", via: []string{"http://a.example/", "https://a.example/"}, to: "http://a.example/",
			want: ErrBlocked, keepAuth: true,
		},
		"other schemes are refused": {
			method: "GET", via: []string{"https://a.example/"}, to: "file:///etc/passwd",
			want: ErrBlocked, keepAuth: true,
		},
		"third redirect is followed": {
			method: "GET", via: []string{"http://a/", "http://a/", "http://a/"}, to: "http://a/",
			want: nil, keepAuth: true,
		},
		"fourth redirect is refused": {
			method: "GET", via: []string{"http://a/", "http://a/", "http://a/", "http://a/"}, to: "http://a/",
			want: ErrBlocked, keepAuth: true,
		},
		"a POST is not followed": {
			method: "POST", via: []string{"https://a.example/"}, to: "https://a.example/2",
			want: http.ErrUseLastResponse, keepAuth: true,
		},
		"a DELETE is not followed to be safe": {
			method: "DELETE", via: []string{"https://a.example/"}, to: "https://a.example/2",
			want: http.ErrUseLastResponse, keepAuth: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var via []*http.Request
			for _, u := range tc.via {
				via = append(via, httptest.NewRequest(tc.method, u, nil))
			}
			next := httptest.NewRequest("GET", tc.to, nil)
			for _, h := range []string{"Authorization", "X-Api-Key", "Cookie", "Accept", "Referer"} {
				next.Header.Set(h, "x")
			}
			if err := checkRedirect(next, via); !errors.Is(err, tc.want) || (tc.want == nil) != (err == nil) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			if tc.want != nil {
				return
			}
			for _, h := range []string{"Authorization", "X-Api-Key", "Cookie"} {
				if kept := next.Header.Get(h) != ""; kept != tc.keepAuth {
					t.Errorf("%s kept: got %v, want %v", h, kept, tc.keepAuth)
				}
			}
			if next.Header.Get("Referer") != "" || next.Header.Get("Accept") == "" {
				t.Errorf("got the headers %v, want Accept and no Referer", next.Header)
			}
		})
	}
}

func TestHTTP_PostReturnsRedirect(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		hits := 0
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			hits++
			http.Redirect(w, r, "/again", status)
		}))
		t.Cleanup(srv.Close)
		c := newClient(t, Deps{}, srv.Listener.Addr().String())
		resp, err := c.HTTP().Post(srv.URL, "text/plain", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode != status || hits != 1 {
			t.Errorf("status %d after %d hits, want %d after 1: %v", resp.StatusCode, hits, status, err)
		}
	}
}

func TestReadAll_RefusesBodyAboveLimit(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		size, limit int64
		want        error
	}{
		{size: 0, limit: 0, want: nil},
		{size: 10, limit: 10, want: nil},
		{size: 11, limit: 10, want: ErrTooLarge},
		{size: 1 << 20, limit: 10, want: ErrTooLarge},
	} {
		t.Run(fmt.Sprintf("%d of %d gives %v", tc.size, tc.limit, tc.want), func(t *testing.T) {
			t.Parallel()
			body := io.NopCloser(io.LimitReader(zeros{}, tc.size))
			got, err := ReadAll(&http.Response{Body: body}, tc.limit)
			if !errors.Is(err, tc.want) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			if err == nil && int64(len(got)) != tc.size {
				t.Fatalf("got %d bytes, want %d", len(got), tc.size)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestErrors_OmitQuery(t *testing.T) {
	t.Parallel()
	c := newClient(t, Deps{})
	for name, try := range map[string]func(address string) error{
		"a websocket": func(address string) error {
			_, err := c.DialWebsocket(t.Context(), "ws"+address)
			return err
		},
		"a request": func(address string) error {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http"+address, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := c.Do(req)
			if err != nil {
				return err
			}
			return resp.Body.Close()
		},
	} {
		err := try("://me:SECRET@127.0.0.1/relay?auth=SECRET#SECRET")
		if strings.Contains(fmt.Sprint(err), "SECRET") || !strings.Contains(fmt.Sprint(err), "127.0.0.1/relay") || !errors.Is(err, ErrBlocked) {
			t.Errorf("%s: got %v, want ErrBlocked with the path and without the query", name, err)
		}
	}
}

func TestDialWebsocket_ExchangesMessages(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		kind, msg, err := conn.Read(r.Context())
		if err != nil {
			t.Error(err)
			return
		}
		if err := conn.Write(r.Context(), kind, append(msg, '!')); err != nil {
			t.Error(err)
		}
		_ = conn.Close(websocket.StatusNormalClosure, "")
	}))
	t.Cleanup(srv.Close)
	c := newClient(t, Deps{}, srv.Listener.Addr().String())
	conn, err := c.DialWebsocket(t.Context(), "ws"+strings.TrimPrefix(srv.URL, "http"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	if err := conn.Write(t.Context(), websocket.MessageText, []byte("hi")); err != nil {
		t.Fatal(err)
	}
	if _, msg, err := conn.Read(t.Context()); err != nil || string(msg) != "hi!" {
		t.Fatalf("got %q, %v; want hi!", msg, err)
	}
}

func TestDialWebsocket_FollowsNoRedirect(t *testing.T) {
	t.Parallel()
	var hits atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hits.Add(1) == 1 {
			http.Redirect(w, r, "/again", http.StatusFound)
		}
	}))
	t.Cleanup(srv.Close)
	c := newClient(t, Deps{}, srv.Listener.Addr().String())
	if _, err := c.DialWebsocket(t.Context(), srv.URL); err == nil || hits.Load() != 1 {
		t.Fatalf("got %v after %d requests, want an error after 1", err, hits.Load())
	}
}
