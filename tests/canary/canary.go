// Package canary checks that a service makes no request to addresses that are not public.
//
// It has listeners on this machine that count connections, a list of hostile URLs that lead to them
// and to other private addresses, a server that redirects to such URLs, and a name server that
// changes its answers.
package canary

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// Canary is a set of listeners on all addresses of this machine.
type Canary struct {
	// Port is a port of the listeners other than 80 and 443.
	Port int

	mu   sync.Mutex
	seen []string // the addresses of each connection
}

// New returns listeners that run until the test ends: on one free port, and on the ports 80 and 443
// if the test may listen there and no other test does.
func New(t testing.TB) *Canary {
	t.Helper()
	c := &Canary{}
	for _, port := range []string{"80", "443", "0"} {
		ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", ":"+port)
		if err != nil && port != "0" {
			t.Logf("the canary does not listen on port %s: %v", port, err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ln.Close() })
		c.Port = ln.Addr().(*net.TCPAddr).Port
		go c.accept(ln)
	}
	return c
}

func (c *Canary) accept(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the client has gone away before
		}
		c.mu.Lock()
		c.seen = append(c.seen, fmt.Sprintf("%s from %s", conn.LocalAddr(), conn.RemoteAddr()))
		c.mu.Unlock()
		_ = conn.Close()
	}
}

// Connections returns how many connections the listeners have accepted.
func (c *Canary) Connections() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seen)
}

// Silent fails the test if a connection has reached a listener.
func (c *Canary) Silent(t testing.TB) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seen) != 0 {
		t.Errorf("connections have reached the canary, want none: %q", c.seen)
	}
}

// Redirector runs a server on loopback until the test ends. The server redirects /to?u=x to x, with
// the status in the query parameter s or 302.
//
// Redirector returns the server's host:port, which the service under test must be allowed to reach,
// and a function that returns a URL that redirects to target.
func Redirector(t testing.TB) (address string, to func(target string) string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusFound
		if s, err := strconv.Atoi(r.URL.Query().Get("s")); err == nil {
			status = s
		}
		w.Header()["Location"] = []string{r.URL.Query().Get("u")}
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String(), func(target string) string {
		return server.URL + "/to?u=" + url.QueryEscape(target)
	}
}

// NameServer runs a name server on loopback until the test ends. It answers the n-th question for
// an IPv4 address, counted from 1, with answer(n), and gives no other answers.
func NameServer(t testing.TB, answer func(n int) [4]byte) *net.Resolver {
	t.Helper()
	conn, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go serveNames(conn, answer)
	return resolverOf(conn.LocalAddr().String())
}

func serveNames(conn net.PacketConn, answer func(n int) [4]byte) {
	buf, n := make([]byte, 1500), 0
	for {
		size, from, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:size]) != nil || len(m.Questions) != 1 {
			continue
		}
		q := m.Questions[0]
		reply := dnsmessage.Message{
			Header: dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true}, Questions: m.Questions,
		}
		if q.Type == dnsmessage.TypeA {
			n++
			head := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
			reply.Answers = []dnsmessage.Resource{{Header: head, Body: &dnsmessage.AResource{A: answer(n)}}}
		}
		if out, err := reply.Pack(); err == nil {
			_, _ = conn.WriteTo(out, from)
		}
	}
}
