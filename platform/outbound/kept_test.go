package outbound

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

func TestCommit_KeepsConnectionsOnlyWhereAllowed(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.RemoteAddr)
	}))
	t.Cleanup(server.Close)
	c := newClient(t, Deps{}, server.Listener.Addr().String())
	for way, want := range map[string]int{"on a fresh connection": 10, "on a kept connection": 1} {
		connections := map[string]bool{}
		for range 10 {
			ctx, cancel := context.WithCancel(ways[way](t.Context()))
			resp, err := c.Commit(post(t, ctx, server.URL))
			if err != nil {
				t.Fatal(err)
			}
			from, err := ReadAll(resp, 100)
			if err != nil {
				t.Fatal(err)
			}
			connections[string(from)] = true
			cancel() // must not close the kept connection
		}
		if len(connections) != want {
			t.Errorf("10 commits, each %s: %d connections, want %d", way, len(connections), want)
		}
	}
}

// The server reads the second request on a kept connection and closes it without a response.
// net/http may then send the request again; the response to that copy does not show whether the
// server acted on the first.
func TestCommit_LostOnKeptConnectionIsUnknown(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*http.Request){
		"a body and a key":  func(*http.Request) {},
		"no body but a key": func(r *http.Request) { r.Body, r.GetBody, r.ContentLength = nil, nil, 0 },
		"a body of PUT":     func(r *http.Request) { r.Method = http.MethodPut },
		"a safe method":     func(r *http.Request) { r.Method, r.Body, r.GetBody, r.ContentLength = "GET", nil, nil, 0 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			addr, _ := rawServer(t, func(c net.Conn) {
				r := bufio.NewReader(c)
				for {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					switch requests.Add(1) {
					case 1:
						_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
					case 2:
						return
					default:
						_, _ = io.WriteString(c, "HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n")
					}
				}
			})
			c, ctx := newClient(t, Deps{}, addr), WithKeptConnections(t.Context())
			resp, err := c.Commit(post(t, ctx, "http://"+addr))
			if err != nil {
				t.Fatal(err)
			}
			if err := resp.Body.Close(); err != nil {
				t.Fatal(err)
			}
			req := post(t, ctx, "http://"+addr)
			change(req)
			resp, err = c.Commit(req)
			if err == nil {
				t.Fatalf("the lost request is answered with %s, want a SendError", resp.Status)
			}
			wantSendError(t, err, true)
			if n := requests.Load(); n != 2 {
				t.Errorf("%d requests were received, want 2", n)
			}
		})
	}
}

// A response that arrives on an idle connection belongs to no request.
func TestCommit_DropsUnsolicitedAnswers(t *testing.T) {
	t.Parallel()
	surplus, gone := make(chan struct{}), make(chan struct{})
	var requests atomic.Int32
	addr, _ := rawServer(t, func(c net.Conn) {
		_, _ = readRequest(c)
		if requests.Add(1) > 1 {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nown")
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst")
		<-surplus
		_, _ = io.WriteString(c, "HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nwrong")
		_, _ = io.Copy(io.Discard, c) // until the client closes
		close(gone)
	})
	c := newClient(t, Deps{}, addr)
	for _, want := range []string{"first", "own"} {
		resp, err := c.Commit(post(t, WithKeptConnections(t.Context()), "http://"+addr))
		if err != nil {
			t.Fatal(err)
		}
		if body, err := ReadAll(resp, 10); err != nil || string(body) != want {
			t.Fatalf("the answer is %q, %v; want %q", body, err, want)
		}
		if want == "first" {
			close(surplus)
			select {
			case <-gone:
			case <-time.After(20 * time.Second):
				t.Fatal("the connection stays open, want it dropped")
			}
		}
	}
}
