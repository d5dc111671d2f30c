package outbound

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// rawServer counts connections and hands each to serve.
func rawServer(t *testing.T, serve func(net.Conn)) (addr string, conns *atomic.Int32) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	conns = new(atomic.Int32)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			conns.Add(1)
			go func() { defer c.Close(); serve(c) }()
		}
	}()
	return ln.Addr().String(), conns
}

func post(t *testing.T, ctx context.Context, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"text":"hello"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", "k-1") // makes net/http believe that it may send again
	return req
}

func readRequest(c net.Conn) (*http.Request, error) {
	req, err := http.ReadRequest(bufio.NewReader(c))
	if err == nil {
		_, err = io.Copy(io.Discard, req.Body)
	}
	return req, err
}

func wantSendError(t *testing.T, err error, written bool) {
	t.Helper()
	var send *SendError
	if !errors.As(err, &send) {
		t.Fatalf("want a SendError, got %v", err)
	}
	if send.Written != written {
		t.Fatalf("Written = %v: %v", send.Written, err)
	}
}

func TestCommitTellsWhatLeft(t *testing.T) {
	t.Parallel()
	closedPort := func() string {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		return ln.Addr().String()
	}()
	tlsServer := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(tlsServer.Close)
	tlsServer.Config.ErrorLog = nil
	headersOnly, _ := rawServer(t, func(c net.Conn) {
		_, _ = bufio.NewReader(c).ReadString('\n')
	})
	afterRequest, _ := rawServer(t, func(c net.Conn) { _, _ = readRequest(c) })
	atOnce, _ := rawServer(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) })
	garbage, _ := rawServer(t, func(c net.Conn) {
		_, _ = readRequest(c)
		_, _ = io.WriteString(c, "this is not HTTP\r\n\r\n")
	})
	midBody, _ := rawServer(t, func(c net.Conn) {
		_, _ = readRequest(c)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
	})
	for name, tc := range map[string]struct {
		url     string
		written bool
	}{
		"dial refused wrote nothing":           {"http://" + closedPort, false},
		"TLS failure wrote nothing":            {"https://" + tlsServer.Listener.Addr().String(), false},
		"guard refusal wrote nothing":          {"http://10.0.0.1", false},
		"credentials in the URL wrote nothing": {"http://u:p@" + closedPort, false},
		"closed at the first byte was written": {"http://" + atOnce, true},
		"closed after headers was written":     {"http://" + headersOnly, true},
		"closed after the request was written": {"http://" + afterRequest, true},
		"unreadable answer was written":        {"http://" + garbage, true},
		"closed in the answer was written":     {"http://" + midBody, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, Deps{}, closedPort, tlsServer.Listener.Addr().String(), headersOnly, afterRequest, atOnce, garbage, midBody)
			resp, err := c.Commit(post(t, t.Context(), tc.url))
			if err == nil {
				_, err = ReadAll(resp, 1<<20)
			}
			wantSendError(t, err, tc.written)
		})
	}
}

func TestCommitUnknownHostWroteNothing(t *testing.T) {
	t.Parallel()
	r := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no name server")
	}}
	_, err := newClient(t, Deps{Resolver: r}).Commit(post(t, t.Context(), "https://unknown.example/"))
	wantSendError(t, err, false)
}

func TestCommitRefusalIsRecognised(t *testing.T) {
	t.Parallel()
	_, err := newClient(t, Deps{}).Commit(post(t, t.Context(), "http://127.0.0.1/"))
	if !errors.Is(err, ErrBlocked) {
		t.Fatal(err)
	}
}

func TestCommitNeverSendsTwice(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	addr, conns := rawServer(t, func(c net.Conn) {
		if _, err := readRequest(c); err == nil {
			requests.Add(1)
		}
	})
	c := newClient(t, Deps{}, addr)
	for n := int32(1); n <= 20; n++ {
		_, err := c.Commit(post(t, t.Context(), "http://"+addr))
		wantSendError(t, err, true)
		if requests.Load() != n || conns.Load() != n {
			t.Fatalf("%d commits: %d requests on %d connections", n, requests.Load(), conns.Load())
		}
	}
}

// A server that answers, keeps the connection and closes it on the second request is what makes net/http send again.
func TestCommitUsesAFreshConnectionEach(t *testing.T) {
	t.Parallel()
	addr, conns := rawServer(t, func(c net.Conn) {
		br := bufio.NewReader(c)
		if req, err := http.ReadRequest(br); err != nil || req.Proto != "HTTP/1.1" || !req.Close {
			t.Errorf("want HTTP/1.1 with Connection: close: %+v %v", req, err)
		} else if _, err := io.Copy(io.Discard, req.Body); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		_, _ = http.ReadRequest(br)
	})
	c := newClient(t, Deps{}, addr)
	for n := int32(1); n <= 5; n++ {
		resp, err := c.Commit(post(t, t.Context(), "http://"+addr))
		if err != nil {
			t.Fatal(err)
		}
		if body, err := ReadAll(resp, 10); err != nil || string(body) != "ok" || conns.Load() != n {
			t.Fatalf("%q %v, %d connections after %d commits", body, err, conns.Load(), n)
		}
	}
}

func TestCommitReturnsRedirects(t *testing.T) {
	t.Parallel()
	addr, conns := rawServer(t, func(c net.Conn) {
		_, _ = readRequest(c)
		_, _ = io.WriteString(c, "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://%zz/\r\nContent-Length: 0\r\n\r\n")
	})
	resp, err := newClient(t, Deps{}, addr).Commit(post(t, t.Context(), "http://"+addr))
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != 307 || conns.Load() != 1 {
		t.Fatalf("%v, status %d, %d connections", err, resp.StatusCode, conns.Load())
	}
}

func TestCommitHonoursItsContext(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	silent, _ := rawServer(t, func(c net.Conn) { _, _ = readRequest(c); <-release })
	stuck, _ := rawServer(t, func(c net.Conn) {
		_, _ = readRequest(c)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
		<-release
	})
	c := newClient(t, Deps{}, silent, stuck)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Commit(post(t, over, "http://"+silent))
	wantSendError(t, err, false)

	for _, addr := range []string{silent, stuck} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		resp, err := c.Commit(post(t, ctx, "http://"+addr))
		if err == nil {
			_, err = ReadAll(resp, 100)
		}
		cancel()
		wantSendError(t, err, true)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("want the deadline as cause: %v", err)
		}
	}
}

// A platform may say no before it has read a large request, and hang up; or speak before its answer.
func TestCommitTakesTheAnswerThatItGets(t *testing.T) {
	t.Parallel()
	early, _ := rawServer(t, func(c net.Conn) {
		_, _ = http.ReadRequest(bufio.NewReader(c)) // not its body
		_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
		_, _ = io.Copy(io.Discard, c) // until the client hangs up: a reset would take the answer with it
	})
	interim, _ := rawServer(t, func(c net.Conn) {
		_, _ = readRequest(c)
		_, _ = io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok")
	})
	babbling, _ := rawServer(t, func(c net.Conn) {
		_, _ = readRequest(c)
		for {
			if _, err := io.WriteString(c, "HTTP/1.1 103 Early Hints\r\n\r\n"); err != nil {
				return
			}
		}
	})
	flooding, _ := rawServer(t, func(c net.Conn) {
		_, _ = readRequest(c)
		for _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n"); err == nil; {
			_, err = io.WriteString(c, "X-More: "+strings.Repeat("x", 1000)+"\r\n")
		}
	})
	c := newClient(t, Deps{}, early, interim, babbling, flooding)

	large := post(t, t.Context(), "http://"+early)
	large.Body, large.ContentLength = io.NopCloser(io.LimitReader(endless{}, 64<<20)), 64<<20
	resp, err := c.Commit(large)
	if err != nil || resp.StatusCode != 413 {
		t.Fatalf("%+v, %v", resp, err)
	}
	if body, err := ReadAll(resp, 10); err != nil || string(body) != "no" {
		t.Errorf("%q, %v", body, err)
	}
	resp, err = c.Commit(post(t, t.Context(), "http://"+interim))
	if err != nil || resp.StatusCode != 201 {
		t.Fatalf("%+v, %v", resp, err)
	}
	if body, err := ReadAll(resp, 10); err != nil || string(body) != "ok" {
		t.Errorf("%q, %v", body, err)
	}
	for _, addr := range []string{babbling, flooding} {
		_, err := c.Commit(post(t, t.Context(), "http://"+addr))
		wantSendError(t, err, true)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

var errFile = errors.New("the file is gone")

type broken struct{ after io.Reader }

func (b broken) Read(p []byte) (int, error) {
	n, err := b.after.Read(p)
	if errors.Is(err, io.EOF) {
		err = errFile
	}
	return n, err
}

// A body that cannot be read to its end is never a whole request.
func TestCommitWithABodyThatBreaks(t *testing.T) {
	t.Parallel()
	addr, brought := counting(t)
	c := newClient(t, Deps{}, addr)
	for _, length := range []int64{1, 100, 1 << 20, -1} {
		for name, read := range map[string]int64{"at once": 0, "in the middle": 200 << 10} {
			req := post(t, t.Context(), "http://"+addr)
			req.Body, req.ContentLength = io.NopCloser(broken{io.LimitReader(endless{}, min(read, max(length-1, 0)))}), length
			_, err := c.Commit(req)
			var send *SendError
			if !errors.As(err, &send) || !strings.Contains(err.Error(), errFile.Error()) { // net/http says it in a type that hides it
				t.Fatalf("%s of %d: %v", name, length, err)
			}
			if n := <-brought; n > 0 && !send.Written {
				t.Errorf("%s of %d: %d bytes came of what was told as not written", name, length, n)
			}
		}
	}
}

func TestCommitThroughTLS(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Proto+" "+r.Host+" "+r.Header.Get("Accept-Encoding")+" "+string(body))
	}))
	t.Cleanup(server.Close)
	c := newClient(t, Deps{}, server.Listener.Addr().String())
	c.tls.RootCAs = x509.NewCertPool()
	c.tls.RootCAs.AddCert(server.Certificate())
	resp, err := c.Commit(post(t, t.Context(), server.URL))
	if err != nil {
		t.Fatal(err)
	}
	if body, err := ReadAll(resp, 1000); err != nil || string(body) != "HTTP/1.1 "+server.Listener.Addr().String()+` identity {"text":"hello"}` {
		t.Errorf("%q, %v", body, err)
	}
}
