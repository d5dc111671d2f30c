package outbound

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// ways are the two kinds of connections that a Commit can have.
var ways = map[string]func(context.Context) context.Context{
	"on a fresh connection": func(ctx context.Context) context.Context { return ctx },
	"on a kept connection":  WithKeptConnections,
}

// trusting returns a client that trusts the certificate of a test server.
func trusting(t *testing.T, server *httptest.Server, allow ...string) *Client {
	t.Helper()
	c := newClient(t, Deps{}, allow...)
	c.tls.RootCAs = x509.NewCertPool()
	c.tls.RootCAs.AddCert(server.Certificate())
	return c
}

// rawServer counts connections and passes each to serve.
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
	req.Header.Set("Idempotency-Key", "k-1") // net/http repeats such a request
	return req
}

func readRequest(c net.Conn) (*http.Request, error) {
	req, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, req.Body)
	return req, err
}

// commit sends a request and reads at most limit bytes of the response.
func commit(c *Client, req *http.Request, limit int64) error {
	resp, err := c.Commit(req)
	if err != nil {
		return err
	}
	_, err = ReadAll(resp, limit)
	return err
}

func wantSendError(t *testing.T, err error, written bool) {
	t.Helper()
	var send *SendError
	if !errors.As(err, &send) {
		t.Fatalf("got %v, want a SendError", err)
	}
	if send.Written != written {
		t.Fatalf("got Written = %v, want %v: %v", send.Written, written, err)
	}
}

func TestCommit_ReportsWhetherAnythingWasWritten(t *testing.T) {
	t.Parallel()
	tlsServer := httptest.NewUnstartedServer(http.NotFoundHandler())
	tlsServer.Config.ErrorLog = log.New(io.Discard, "", 0)
	tlsServer.StartTLS()
	t.Cleanup(tlsServer.Close)
	var servers []string
	serve := func(serve func(net.Conn)) string {
		addr, _ := rawServer(t, serve)
		servers = append(servers, addr)
		return "http://" + addr
	}
	answer := func(text string) string {
		return serve(func(c net.Conn) {
			_, _ = readRequest(c)
			_, _ = io.WriteString(c, text)
		})
	}
	flood := func(first, more string) string {
		return serve(func(c net.Conn) {
			_, _ = readRequest(c)
			for _, err := io.WriteString(c, first); err == nil; {
				_, err = io.WriteString(c, more)
			}
		})
	}
	closed := httptest.NewServer(nil)
	closed.Close()
	servers = append(servers, closed.Listener.Addr().String(), tlsServer.Listener.Addr().String())
	for name, tc := range map[string]struct {
		url     string
		written bool
	}{
		"dial refused wrote nothing":           {url: closed.URL, written: false},
		"TLS failure wrote nothing":            {url: tlsServer.URL, written: false},
		"guard refusal wrote nothing":          {url: "http://10.0.0.1", written: false},
		"credentials in the URL wrote nothing": {url: "http://u:p@" + closed.Listener.Addr().String(), written: false},
		"closed at the first byte was written": {url: serve(func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) }), written: true},
		"closed after headers was written":     {url: serve(func(c net.Conn) { _, _ = bufio.NewReader(c).ReadString('\n') }), written: true},
		"closed after the request was written": {url: answer(""), written: true},
		"unreadable answer was written":        {url: answer("this is not HTTP\r\n\r\n"), written: true},
		"another protocol was written": {
			url:     answer("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"),
			written: true,
		},
		"closed in the answer was written":         {url: answer("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"), written: true},
		"interim answers without end were written": {url: flood("", "HTTP/1.1 103 Early Hints\r\n\r\n"), written: true},
		"a head without end was written":           {url: flood("HTTP/1.1 200 OK\r\n", "X-More: "+strings.Repeat("x", 1000)+"\r\n"), written: true},
	} {
		for way, with := range ways {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				err := commit(newClient(t, Deps{}, servers...), post(t, with(t.Context()), tc.url), 1<<20)
				wantSendError(t, err, tc.written)
				if blocked := strings.HasPrefix(name, "guard"); errors.Is(err, ErrBlocked) != blocked {
					t.Errorf("refused by the guard: %v, want %v: %v", !blocked, blocked, err)
				}
			})
		}
	}
}

func TestCommit_UnknownHostWroteNothing(t *testing.T) {
	t.Parallel()
	r := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no name server")
	}}
	_, err := newClient(t, Deps{Resolver: r}).Commit(post(t, t.Context(), "https://unknown.example/"))
	wantSendError(t, err, false)
}

// Requests that net/http cannot send are refused before a connection is opened, and errors contain
// no secrets.
func TestCommit_RefusesInvalidRequests(t *testing.T) {
	t.Parallel()
	addr, conns := rawServer(t, func(c net.Conn) { _, _ = readRequest(c) })
	c := newClient(t, Deps{}, addr)
	for name, spoil := range map[string]func(*http.Request){
		"a line break in a value":   func(r *http.Request) { r.Header.Set("Authorization", "Bearer a\r\nEvil: 1") },
		"a line break in a name":    func(r *http.Request) { r.Header["X\r\nEvil"] = []string{"1"} },
		"a line break in a trailer": func(r *http.Request) { r.ContentLength, r.Trailer = -1, http.Header{"X": {"a\r\nEvil: 1"}} },
		"a request in the method":   func(r *http.Request) { r.Method = "POST /evil HTTP/1.1\r\n\r\nPOST" },
		"no header":                 func(r *http.Request) { r.Header = nil },
	} {
		req := post(t, t.Context(), "http://"+addr)
		spoil(req)
		_, err := c.Commit(req)
		wantSendError(t, err, false)
		if strings.Contains(err.Error(), "Bearer") || conns.Load() != 0 {
			t.Errorf("%s: got %d connections, %v; want none and no secret in the error", name, conns.Load(), err)
		}
	}
}

// Interim responses are skipped. A server may also refuse a large request before reading all of it,
// and then wait or close the connection: that is a response, not an unknown outcome.
func TestCommit_ReturnsTheAnswer(t *testing.T) {
	t.Parallel()
	const small, large = 100, 4 << 20
	for name, tc := range map[string]struct {
		size   int64
		read   bool
		answer string
		wait   bool
		status int
	}{
		"after interim answers": {
			size: small, read: true,
			answer: strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 30) + "HTTP/1.1 201 Created",
			status: 201,
		},
		"that is a redirect": {
			size: small, read: true, answer: "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://%zz/",
			status: 307,
		},
		"before the request was read":       {size: large, answer: "HTTP/1.1 413 Too Large", wait: true, status: 413},
		"of a server that closed":           {size: small, answer: "HTTP/1.1 401 Unauthorized", status: 401},
		"of a server that closed meanwhile": {size: large, answer: "HTTP/1.1 401 Unauthorized", status: 401},
	} {
		for way, with := range ways {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				addr, conns := rawServer(t, func(c net.Conn) {
					if tc.read {
						_, _ = readRequest(c)
					} else {
						// Closing the connection with unread bytes resets it.
						_, _ = c.Read(make([]byte, 50))
					}
					_, _ = io.WriteString(c, tc.answer+"\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno")
					if tc.wait {
						_, _ = io.Copy(io.Discard, c)
					}
				})
				c := newClient(t, Deps{}, addr)
				for n := range int32(20) {
					req := post(t, with(t.Context()), "http://"+addr)
					req.Body, req.ContentLength = io.NopCloser(io.LimitReader(endless{}, tc.size)), tc.size
					resp, err := c.Commit(req)
					if err != nil {
						t.Fatal(err)
					}
					body, err := ReadAll(resp, 10)
					if err != nil || string(body) != "no" || resp.StatusCode != tc.status || conns.Load() != n+1 {
						t.Fatalf("got %d %q, %v on connection %d; want %d and the body on connection %d", resp.StatusCode, body, err, conns.Load(), tc.status, n+1)
					}
				}
			})
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestCommit_EndsWithItsContext(t *testing.T) {
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
	for way, with := range ways {
		over, cancel := context.WithCancel(with(t.Context()))
		cancel()
		_, err := c.Commit(post(t, over, "http://"+silent))
		wantSendError(t, err, false)
		for name, addr := range map[string]string{"no answer": silent, "half an answer": stuck, "half a request": silent} {
			ctx, cancel := context.WithTimeout(with(t.Context()), 300*time.Millisecond)
			req := post(t, ctx, "http://"+addr)
			if name == "half a request" {
				req.Body, _ = io.Pipe()
			}
			err := commit(c, req, 100)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s %s: got %v, want the deadline as cause", name, way, err)
			}
			wantSendError(t, err, true)
		}
	}
}

var errFile = errors.New("the file is gone")

type broken struct{ after io.Reader }

func (b broken) Read(p []byte) (int, error) {
	n, err := b.after.Read(p)
	if errors.Is(err, io.EOF) {
		err = errFile
	}
	return n, err
}

// A body that cannot be read to its end is never sent as a complete request.
func TestCommit_BrokenBodyFails(t *testing.T) {
	t.Parallel()
	addr, brought := counting(t)
	c := newClient(t, Deps{}, addr)
	for _, length := range []int64{1, 100, 1 << 20, -1} {
		for name, read := range map[string]int64{"at once": 0, "in the middle": 200 << 10} {
			req := post(t, t.Context(), "http://"+addr)
			req.Body, req.ContentLength = io.NopCloser(broken{after: io.LimitReader(endless{}, min(read, max(length-1, 0)))}), length
			_, err := c.Commit(req)
			var send *SendError
			// net/http does not wrap the cause.
			if !errors.As(err, &send) || !strings.Contains(err.Error(), errFile.Error()) {
				t.Fatalf("%s of %d: got %v, want a SendError with %q", name, length, err, errFile)
			}
			if n := <-brought; n > 0 && !send.Written {
				t.Errorf("%s of %d: %d bytes arrived of a request reported as not written", name, length, n)
			}
		}
	}
}

func TestCommit_ResumesTLSSessions(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %v %s %s %s", r.Proto, r.TLS.DidResume, r.Host, r.Header.Get("Accept-Encoding"), body)
	}))
	t.Cleanup(server.Close)
	host := server.Listener.Addr().String()
	c := trusting(t, server, host)
	for _, resumed := range []bool{false, true, true} {
		resp, err := c.Commit(post(t, t.Context(), server.URL))
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf(`HTTP/1.1 %v %s identity {"text":"hello"}`, resumed, host)
		if body, err := ReadAll(resp, 1000); err != nil || string(body) != want {
			t.Errorf("the server got %q, %v; want %q", body, err, want)
		}
	}
}

// Contexts end, limits pass and servers close connections at any moment. If a request is reported
// as not written, no byte of it arrives.
func TestCommit_NotWrittenMeansNothingArrived(t *testing.T) {
	t.Parallel()
	maker := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(maker.Close)
	for scheme, span := range map[string]int{"http": 4, "https": 30} { // milliseconds
		const commits = 200
		moment := func() time.Duration { return time.Duration(rand.IntN(span*1000)) * time.Microsecond }
		came := make(chan string, commits)
		addr, conns := rawServer(t, func(raw net.Conn) {
			_ = raw.SetDeadline(time.Now().Add(moment())) // then the connection is closed
			c := raw
			if scheme == "https" {
				c = tls.Server(raw, maker.TLS)
			}
			got, _ := io.ReadAll(c)
			came <- string(got[:min(len(got), len("POST /000"))])
		})
		c := trusting(t, maker, addr)
		denied := map[string]error{}
		for n := range commits {
			path := fmt.Sprintf("/%03d", n)
			ctx, cancel := context.WithTimeout(WithLimit(t.Context(), moment()), moment())
			if n%2 == 0 {
				ctx = WithKeptConnections(ctx)
			}
			req := post(t, ctx, scheme+"://"+addr+path)
			text := strings.Repeat("x", rand.IntN(60<<10))
			req.Body, req.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
			_, err := c.Commit(req)
			cancel()
			var send *SendError
			if !errors.As(err, &send) {
				t.Fatal(err)
			}
			if !send.Written {
				denied["POST "+path] = err
			}
		}
		for range conns.Load() {
			if err := denied[<-came]; err != nil {
				t.Errorf("%s: a part of a request reported as not written arrived: %v", scheme, err)
			}
		}
		t.Logf("%s: %d of %d not written, %d connections", scheme, len(denied), commits, conns.Load())
	}
}
