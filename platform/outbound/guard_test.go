package outbound

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

func newClient(t *testing.T, deps Deps, allow ...string) *Client {
	t.Helper()
	c, err := New(Config{Allow: allow}, deps)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func get(t *testing.T, c *Client, url string) (*http.Response, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.HTTP().Do(req)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp, nil
}

func TestGuard_RefusesPrivateHostsAndPorts(t *testing.T) {
	t.Parallel()
	c := newClient(t, Deps{Resolver: fakeDNS(t, func(string, int) [4]byte { return [4]byte{127, 0, 0, 1} })})
	for _, host := range []string{
		"127.0.0.1", "127.255.0.3", "localhost", "localhost.", "LOCALHOST", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]", "[::127.0.0.1]",
		"0.0.0.0", "0.1.2.3", "[::]", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1", "100.127.255.255",
		"192.0.0.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "[fc00::1]", "[fd12::1]", "[fe80::1]", "[fe80::1%25lo]", "[ff02::1]",
		"[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2001::1]", "[2001:db8::1]",
		"2130706433", "0177.0.0.1", "0x7f.0.0.1", "0x7f000001", "127.1", "127.0.0.1.", "017700000001", "1.2.3.4.5", "0x",
		"private.example",
	} {
		t.Run(host+" is blocked", func(t *testing.T) {
			t.Parallel()
			if _, err := get(t, c, "http://"+host+"/"); !errors.Is(err, ErrBlocked) {
				t.Fatalf("got %v, want ErrBlocked", err)
			}
		})
	}
	for _, port := range []string{"22", "25", "6379", "8080", "5432", "65535"} {
		t.Run("port "+port+" is blocked on a public address", func(t *testing.T) {
			t.Parallel()
			if _, err := get(t, c, "http://1.1.1.1:"+port+"/"); !errors.Is(err, ErrBlocked) {
				t.Fatalf("got %v, want ErrBlocked", err)
			}
		})
	}
}

// TestGuard_PortIsRefusedWithoutALookup: a refused port reveals nothing about the host, not even
// through timing.
func TestGuard_PortIsRefusedWithoutALookup(t *testing.T) {
	t.Parallel()
	c := newClient(t, Deps{Resolver: fakeDNS(t, func(name string, _ int) [4]byte {
		t.Errorf("%s was looked up", name)
		return [4]byte{1, 1, 1, 1}
	})})
	for _, host := range []string{"missing.example", "private.example", "127.0.0.1", "2130706433", "1.1.1.1"} {
		for _, url := range []string{"http://" + host + ":8080/", "https://" + host + ":8443/"} {
			if _, err := get(t, c, url); !errors.Is(err, ErrPort) || !errors.Is(err, ErrBlocked) {
				t.Errorf("%s: got %v, want ErrPort and ErrBlocked", url, err)
			}
		}
	}
	if _, err := get(t, c, "http://127.0.0.1/"); errors.Is(err, ErrPort) || !errors.Is(err, ErrBlocked) {
		t.Errorf("got %v for a private host, want ErrBlocked without ErrPort", err)
	}
}

func TestGuard_AllowOpensOneHostAndPort(t *testing.T) {
	t.Parallel()
	opened, closed := hello(t), hello(t)
	port := opened[strings.LastIndex(opened, ":")+1:]
	c := newClient(t, Deps{Resolver: fakeDNS(t, func(string, int) [4]byte { return [4]byte{127, 0, 0, 1} })}, opened, "Named.Example:"+port)

	for _, host := range []string{opened, "named.example:" + port, "NAMED.example:" + port} {
		if _, err := get(t, c, "http://"+host+"/"); err != nil {
			t.Errorf("%s: got %v, want an answer", host, err)
		}
	}
	for _, host := range []string{closed, "other.example:" + port, "localhost:" + port, "[::ffff:127.0.0.1]:" + port, "named.example:80"} {
		if _, err := get(t, c, "http://"+host+"/"); !errors.Is(err, ErrBlocked) {
			t.Errorf("%s: got %v, want ErrBlocked", host, err)
		}
	}
}

func TestTo_OpensAddressForOneClient(t *testing.T) {
	t.Parallel()
	address := hello(t)
	owner, err := To("http://"+address+"/some/path", Deps{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(owner.Close)
	other := newClient(t, Deps{})
	for range 2 { // the second time, the owner has an idle connection
		if _, err := get(t, owner, "http://"+address+"/"); err != nil {
			t.Fatalf("the owner: got %v, want an answer", err)
		}
		if _, err := get(t, other, "http://"+address+"/"); !errors.Is(err, ErrBlocked) {
			t.Fatalf("another client: got %v, want ErrBlocked", err)
		}
	}
	if _, err := get(t, owner, "http://"+hello(t)+"/"); !errors.Is(err, ErrBlocked) {
		t.Fatalf("another address: got %v, want ErrBlocked", err)
	}
}

func TestTo_AddsPortOfScheme(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"http://a.example": "a.example:80", "https://A.example/x": "a.example:443", "http://[::1]:4009": "[::1]:4009",
	} {
		allow, err := hostPort(address)
		if err != nil || allow != want {
			t.Errorf("%s: got %s, %v; want %s", address, allow, err, want)
		}
	}
	for _, address := range []string{"", "a.example:80", "ftp://a.example", "http://", "://"} {
		if _, err := To(address, Deps{}); err == nil {
			t.Errorf("%q: got no error, want one", address)
		}
	}
}

func TestNew_ReportsEveryInvalidAllowEntry(t *testing.T) {
	t.Parallel()
	bad := []string{"localhost", "*:80", ":80", "h:0", "h:70000", "h:http", "http://h:80"}
	_, err := New(Config{Allow: append([]string{"fine:80", "[::1]:3000"}, bad...)}, Deps{})
	if err == nil {
		t.Fatal("got no error, want one for each invalid entry")
	}
	if got := strings.Count(err.Error(), "OUTBOUND_ALLOW: "); got != len(bad) {
		t.Fatalf("got %d errors, want %d: %v", got, len(bad), err)
	}
}

func TestGuard_BlocksRebindingAtConnect(t *testing.T) {
	t.Parallel()
	r := fakeDNS(t, func(_ string, n int) [4]byte {
		if n == 1 {
			return [4]byte{93, 184, 216, 34}
		}
		return [4]byte{127, 0, 0, 1}
	})
	first, err := r.LookupIP(t.Context(), "ip4", "rebind.example")
	if err != nil || first[0].IsLoopback() {
		t.Fatalf("the first look-up: got %v, %v; want a public address", first, err)
	}
	if _, err := get(t, newClient(t, Deps{Resolver: r}), "http://rebind.example/"); !errors.Is(err, ErrBlocked) {
		t.Fatalf("got %v, want ErrBlocked", err)
	}
}

func TestGuard_BlocksRedirectToLoopback(t *testing.T) {
	t.Parallel()
	inner := hello(t)
	srv := httptest.NewServer(http.RedirectHandler("http://"+inner+"/", http.StatusFound))
	t.Cleanup(srv.Close)
	c := newClient(t, Deps{}, srv.Listener.Addr().String())
	if _, err := get(t, c, srv.URL); !errors.Is(err, ErrBlocked) {
		t.Fatalf("got %v, want ErrBlocked", err)
	}
}

func TestDialWebsocket_IsGuarded(t *testing.T) {
	t.Parallel()
	c := newClient(t, Deps{})
	for _, url := range []string{"ws://127.0.0.1/", "wss://[::1]/", "ws://10.1.2.3:443/"} {
		if _, err := c.DialWebsocket(t.Context(), url); !errors.Is(err, ErrBlocked) {
			t.Errorf("%s: got %v, want ErrBlocked", url, err)
		}
	}
}

// hello serves 200 on loopback and returns its host:port.
func hello(t *testing.T) string {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

// fakeDNS returns a resolver whose addresses come from answer; n is the number of address queries
// so far.
func fakeDNS(t *testing.T, answer func(name string, n int) [4]byte) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	var count atomic.Int32
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			reply := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true}, Questions: m.Questions}
			if q.Type == dnsmessage.TypeA {
				a := answer(q.Name.String(), int(count.Add(1)))
				head := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1}
				reply.Answers = []dnsmessage.Resource{{Header: head, Body: &dnsmessage.AResource{A: a}}}
			}
			if out, err := reply.Pack(); err == nil {
				_, _ = conn.WriteTo(out, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}
