package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A server that refuses by the head of a request and hangs up has said no: that is no doubtful outcome.
func TestCommitReadsTheRefusalOfOneWhoHungUp(t *testing.T) {
	t.Parallel()
	addr, _ := rawServer(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 100)) // the rest unread: closing resets the connection
		_, _ = io.WriteString(c, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno")
	})
	c := newClient(t, Deps{}, addr)
	for range 50 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr, strings.NewReader(strings.Repeat("x", 20_000)))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Commit(req)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := ReadAll(resp, 10); err != nil || resp.StatusCode != 401 || string(body) != "no" {
			t.Fatalf("%d %q, %v", resp.StatusCode, body, err)
		}
	}
}

// What net/http can read must not become a doubtful outcome here.
func TestCommitReadsOddAnswers(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3000)
	for name, tc := range map[string]struct {
		answer string
		status int
	}{
		"many interim answers are passed over": {strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 30) + "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok", 201},
		"a long trailer is read":               {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2\r\nok\r\n0\r\nX: " + long + "\r\n\r\n", 200},
		"a long chunk extension is read":       {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;" + long + "\r\nok\r\n0\r\n\r\n", 200},
		"no length ends with the connection":   {"HTTP/1.0 200 OK\r\n\r\nok", 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr, _ := rawServer(t, func(c net.Conn) {
				_, _ = readRequest(c)
				_, _ = io.WriteString(c, tc.answer)
			})
			resp, err := newClient(t, Deps{}, addr).Commit(post(t, t.Context(), "http://"+addr))
			if err != nil {
				t.Fatal(err)
			}
			if body, err := ReadAll(resp, 10); err != nil || resp.StatusCode != tc.status || string(body) != "ok" {
				t.Errorf("%d %q, %v", resp.StatusCode, body, err)
			}
		})
	}
}

// What http.Request.Write would mend, leave out or pass on as it is, is refused before anything is opened.
func TestCommitRefusesWhatIsNoRequest(t *testing.T) {
	t.Parallel()
	addr, conns := rawServer(t, func(c net.Conn) { _, _ = readRequest(c) })
	c := newClient(t, Deps{}, addr)
	for name, spoil := range map[string]func(*http.Request){
		"a line break in a value":   func(r *http.Request) { r.Header.Set("Authorization", "Bearer a\r\nEvil: 1") },
		"a zero byte in a value":    func(r *http.Request) { r.Header.Set("Authorization", "Bearer a\x00") },
		"a line break in a name":    func(r *http.Request) { r.Header["X\r\nEvil"] = []string{"1"} },
		"a line break in a trailer": func(r *http.Request) { r.ContentLength, r.Trailer = -1, http.Header{"X": {"a\r\nEvil: 1"}} },
		"a request in the method":   func(r *http.Request) { r.Method = "POST /evil HTTP/1.1\r\n\r\nPOST" },
	} {
		req := post(t, t.Context(), "http://"+addr)
		spoil(req)
		_, err := c.Commit(req)
		wantSendError(t, err, false)
		if strings.Contains(err.Error(), "Bearer") || conns.Load() != 0 {
			t.Errorf("%s: %d connections, %v", name, conns.Load(), err)
		}
	}
}

func TestCommitDoesNotWaitForABodyLongerThanItsContext(t *testing.T) {
	t.Parallel()
	addr, _ := rawServer(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	c := newClient(t, Deps{}, addr)
	for _, length := range []int64{10, 1 << 20, -1} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		body, never := io.Pipe()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr, body)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = length
		if _, err = c.Commit(req); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%d: %v", length, err)
		}
		cancel()
		_ = never.Close()
	}
}

// Contexts end and servers hang up at any moment, with TLS and without: what is told as not written never came.
func TestCommitNeverDeniesWhatCame(t *testing.T) {
	t.Parallel()
	maker := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(maker.Close)
	for scheme, span := range map[string]int{"http": 4, "https": 30} { // milliseconds
		const commits = 100
		moment := func() time.Duration { return time.Duration(rand.IntN(span*1000)) * time.Microsecond }
		came := make(chan string, commits)
		addr, conns := rawServer(t, func(raw net.Conn) {
			_ = raw.SetDeadline(time.Now().Add(moment())) // then it hangs up
			c := raw
			if scheme == "https" {
				c = tls.Server(raw, maker.TLS)
			}
			got, _ := io.ReadAll(c)
			came <- string(got[:min(len(got), len("POST /000"))])
		})
		c := newClient(t, Deps{}, addr)
		c.tls.RootCAs = x509.NewCertPool()
		c.tls.RootCAs.AddCert(maker.Certificate())
		denied := map[string]error{}
		for n := range commits {
			path := fmt.Sprintf("/%03d", n)
			ctx, cancel := context.WithTimeout(WithLimit(t.Context(), moment()), moment())
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
				t.Errorf("%s: some of it came: %v", scheme, err)
			}
		}
		t.Logf("%s: %d of %d not written, %d connections", scheme, len(denied), commits, conns.Load())
	}
}
