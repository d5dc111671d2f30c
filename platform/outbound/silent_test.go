package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// Many calls share one HTTP/2 connection. When packets stop arriving on it, later calls must not
// wait on it too.
func TestHTTP_LeavesSilentConnection(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	var silent, made atomic.Int32 // connections numbered up to silent drop everything
	addr := silenceable(t, server.Listener.Addr().String(), &made, &silent)
	c := newClient(t, Deps{}, addr)
	t.Cleanup(c.Close)
	if c.read.HTTP2.SendPingTimeout != pingAfter || c.read.HTTP2.PingTimeout != pingLimit {
		t.Fatalf("got the probes %+v, want %s and %s", c.read.HTTP2, pingAfter, pingLimit)
	}
	c.read.HTTP2 = &http.HTTP2Config{SendPingTimeout: 200 * time.Millisecond, PingTimeout: 200 * time.Millisecond}
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	c.read.TLSClientConfig = &tls.Config{RootCAs: pool, ServerName: "example.com"}
	get := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+addr, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.HTTP().Do(req)
		if err != nil {
			return err
		}
		if raw, err := ReadAll(resp, 100); err != nil || string(raw) != "HTTP/2.0" {
			t.Errorf("got %q, %v; want HTTP/2.0", raw, err)
		}
		return nil
	}
	if err := get(20 * time.Second); err != nil {
		t.Fatal(err)
	}
	silent.Store(made.Load())
	for end := time.Now().Add(20 * time.Second); get(100*time.Millisecond) != nil; {
		if time.Now().After(end) {
			t.Fatal("every call waits on the silent connection, want a new one")
		}
	}
}

// silenceable returns the address of a proxy to server. The proxy drops all data on the connections
// numbered up to silent.
func silenceable(t *testing.T, server string, made, silent *atomic.Int32) string {
	addr, _ := rawServer(t, func(near net.Conn) {
		n := made.Add(1)
		far, err := net.Dial("tcp", server)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = far.Close() }()
		carry := func(to, from net.Conn) {
			buf := make([]byte, 32<<10)
			for {
				k, err := from.Read(buf)
				if err != nil {
					_ = to.Close()
					return
				}
				if n > silent.Load() {
					_, _ = to.Write(buf[:k]) // the other direction reports the error
				}
			}
		}
		go carry(near, far)
		carry(far, near)
	})
	return addr
}

// Idle connections to a host may fail together without being closed, for example behind a NAT that
// forgets them. One call may wait for its deadline on such a connection; later calls must find
// none.
func TestClient_LeavesSilentIdleConnections(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		transport func(*Client) *http.Transport
		call      func(*Client, *http.Request) (*http.Response, error)
	}{
		"HTTP": {
			transport: func(c *Client) *http.Transport { return c.read },
			call:      func(c *Client, r *http.Request) (*http.Response, error) { return c.HTTP().Do(r) },
		},
		"Commit": {transport: func(c *Client) *http.Transport { return c.kept }, call: (*Client).Commit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const kept = 6
			var arrived atomic.Int32
			all := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if arrived.Add(1) == kept {
					close(all)
				}
				<-all // each call needs its own connection
			}))
			t.Cleanup(server.Close)
			var silent, made atomic.Int32
			addr := silenceable(t, server.Listener.Addr().String(), &made, &silent)
			c := newClient(t, Deps{}, addr)
			if limit := tc.transport(c).IdleConnTimeout; limit <= 0 || limit > 10*time.Second {
				t.Fatalf("an idle connection is kept for %s, want at most 10s", limit)
			}
			tc.transport(c).IdleConnTimeout = 200 * time.Millisecond
			call := func(limit time.Duration) error {
				ctx, cancel := context.WithTimeout(WithKeptConnections(t.Context()), limit)
				defer cancel()
				resp, err := tc.call(c, post(t, ctx, "http://"+addr))
				if err != nil {
					return err
				}
				return resp.Body.Close()
			}
			var calls sync.WaitGroup
			for range kept {
				calls.Go(func() {
					if err := call(20 * time.Second); err != nil {
						t.Error(err)
					}
				})
			}
			calls.Wait()
			silent.Store(made.Load())
			failed := 0
			for call(500*time.Millisecond) != nil {
				// On a slow machine, a call on a working connection may also be late.
				if failed++; failed == kept {
					t.Fatal("every call waits on another silent connection, want a new one")
				}
			}
		})
	}
}

func TestDialWebsocket_SendsNothingAfterItsLimit(t *testing.T) {
	t.Parallel()
	addr, brought := counting(t)
	c := newClient(t, Deps{}, addr)
	_, err := c.DialWebsocket(WithLimit(t.Context(), -time.Nanosecond), "ws://"+addr)
	if n := <-brought; !errors.Is(err, ErrTooLate) || n != 0 {
		t.Errorf("a handshake after the limit sends %d bytes, %v; want none and ErrTooLate", n, err)
	}

	more := make(chan int64, 1)
	addr, _ = rawServer(t, func(c net.Conn) {
		if err := upgraded(c); err != nil {
			t.Error(err)
		}
		n, _ := io.Copy(io.Discard, c) // also ends with a reset
		more <- n
	})
	c = newClient(t, Deps{}, addr)
	ctx, cancel := context.WithCancel(WithLimit(t.Context(), 300*time.Millisecond))
	defer cancel()
	conn, err := c.DialWebsocket(ctx, "ws://"+addr)
	if err != nil {
		t.Fatal(err)
	}
	for left, _ := Left(ctx); left > 0; left, _ = Left(ctx) {
		time.Sleep(left)
	}
	err = conn.Write(t.Context(), websocket.MessageText, []byte(`["EVENT",{}]`))
	cancel()
	_ = conn.CloseNow()
	if n := <-more; !errors.Is(err, ErrTooLate) || n != 0 {
		t.Errorf("a message after the limit sends %d bytes, %v; want none and ErrTooLate", n, err)
	}
}

// net/http hands the connection to the caller after a 101, and no context ends a read of it.
func TestHTTP_RefusesUnrequestedUpgrade(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{})
	addr, _ := rawServer(t, func(c net.Conn) {
		if err := upgraded(c); err != nil {
			t.Error(err)
		}
		_, _ = io.Copy(io.Discard, c) // until the client closes
		close(closed)
	})
	c := newClient(t, Deps{}, addr)
	t.Cleanup(c.Close)
	if _, err := c.HTTP().Do(post(t, t.Context(), "http://"+addr)); !errors.Is(err, errUpgrade) {
		t.Fatalf("the answer 101: got %v, want errUpgrade", err)
	}
	select {
	case <-closed:
	case <-time.After(20 * time.Second):
		t.Error("the connection stays open, want it closed")
	}
}
