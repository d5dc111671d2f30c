package edge

import (
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"crier/tests/syncbuffer"
)

func TestTransferLimit_IsMinimumRateAfterGrace(t *testing.T) {
	t.Parallel()
	begun := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		rate, moved int64
		want        time.Duration
	}{
		"nothing has moved":        {rate: 100, moved: 0, want: 30 * time.Second},
		"less than a second":       {rate: 100, moved: 99, want: 30 * time.Second},
		"ten seconds' worth":       {rate: 100, moved: 1000, want: 40 * time.Second},
		"more than there is time":  {rate: 100, moved: 1 << 40, want: time.Hour},
		"more than can be counted": {rate: 1, moved: 1<<63 - 1, want: time.Hour},
	} {
		p := transferLimit{begun: begun, end: begun.Add(time.Hour), grace: 30 * time.Second, rate: c.rate, moved: c.moved}
		if got := p.deadline().Sub(begun); got != c.want {
			t.Errorf("%s: the next byte has until %s, want %s", name, got, c.want)
		}
	}
}

// limited listens on loopback with the given rules and accepts connections until the test ends.
func limited(t *testing.T, rules connRules) (address string, accepted chan net.Conn, log *syncbuffer.Buffer) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log = &syncbuffer.Buffer{}
	rules.log = slog.New(slog.NewTextHandler(log, nil))
	l := listenOn(ln, rules)
	accepted = make(chan net.Conn, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		<-done
	})
	return ln.Addr().String(), accepted, log
}

// next returns the next accepted connection.
func next(t *testing.T, accepted chan net.Conn) net.Conn {
	t.Helper()
	select {
	case c := <-accepted:
		return c
	case <-time.After(20 * time.Second):
		t.Fatal("the connection was not accepted")
		return nil
	}
}

// dialOne connects to address. closed reports whether the server closes the connection without
// sending a byte.
func dialOne(t *testing.T, address string) (closed func() bool) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // the server may have closed it
	return func() bool {
		if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := c.Read(make([]byte, 1))
		return n == 0 && (err == io.EOF || err != nil && strings.Contains(err.Error(), "reset"))
	}
}

func exemptNone(netip.Addr) bool { return false }

func exemptAll(netip.Addr) bool { return true }

// filled returns a listener whose rules allow two connections, with both of them open. It checks
// that three more are closed and that the log has one line about them, which contains words. first
// is the first of the two connections.
func filled(t *testing.T, rules connRules, words string) (address string, accepted chan net.Conn, first net.Conn) {
	t.Helper()
	address, accepted, log := limited(t, rules)
	dialOne(t, address)
	first = next(t, accepted)
	dialOne(t, address)
	next(t, accepted)
	for range 3 {
		if closed := dialOne(t, address); !closed() {
			t.Error("a third connection stays open, want it closed")
		}
	}
	if n := strings.Count(log.String(), "too many connections"); n != 1 || !strings.Contains(log.String(), words) {
		t.Errorf("%d lines in the log, want one with %q: %s", n, words, log)
	}
	return address, accepted, first
}

func TestListener_ClosesConnectionBeyondLimitOfClient(t *testing.T) {
	t.Parallel()
	address, accepted, first := filled(t, connRules{total: 100, perClient: 2, exempt: exemptNone}, "client=127.0.0.1")
	for range 2 { // only the first close counts
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
	}
	dialOne(t, address)
	next(t, accepted)
	if closed := dialOne(t, address); !closed() || len(accepted) != 0 {
		t.Error("a third connection stays open after another was closed, want it closed")
	}
}

func TestListener_ClosesConnectionBeyondLimitOfAll(t *testing.T) {
	t.Parallel()
	address, accepted, first := filled(t, connRules{total: 2, perClient: 100, exempt: exemptAll}, "MAX_CONNECTIONS")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	dialOne(t, address)
	next(t, accepted)
}

func TestListener_ExemptsProxiesAndLoopback(t *testing.T) {
	t.Parallel()
	trusted, err := parseProxies([]string{"10.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	rules := (&clients{trusted: trusted}).connRules(Config{MaxConns: 100, ClientConns: 1})
	for address, free := range map[string]bool{"127.0.0.1": true, "::1": true, "10.1.2.3": true, "192.168.0.1": false, "203.0.113.9": false, "2001:db8::1": false} {
		if got := rules.exempt(netip.MustParseAddr(address)); got != free {
			t.Errorf("%s: unlimited %t, want %t", address, got, free)
		}
	}
	if rules.perClient != 1 || rules.total != 100 {
		t.Errorf("a client may have %d connections and all %d, want 1 and 100", rules.perClient, rules.total)
	}
	address, accepted, _ := limited(t, rules)
	for range 3 {
		dialOne(t, address)
		next(t, accepted)
	}
}

func TestListener_CountsNetworksOfClient(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		most int
		from []string
		open int // connections that stay open after one attempt from each address
	}{
		"one address":                      {most: 2, from: []string{"203.0.113.9", "203.0.113.9", "203.0.113.9"}, open: 2},
		"two addresses":                    {most: 1, from: []string{"203.0.113.8", "203.0.113.9", "203.0.113.8"}, open: 2},
		"addresses of one /64":             {most: 2, from: []string{"2001:db8::1", "2001:db8::2", "2001:db8::3"}, open: 2},
		"networks of one /48":              {most: 1, from: []string{"2001:db8:0:1::1", "2001:db8:0:2::1", "2001:db8:0:3::1", "2001:db8:0:4::1", "2001:db8:0:5::1"}, open: 4},
		"networks of two":                  {most: 1, from: []string{"2001:db8:0:1::1", "2001:db8:0:2::1", "2001:db8:0:3::1", "2001:db8:1:4::1", "2001:db8:1:5::1"}, open: 5},
		"IPv4 in the form of IPv6 is IPv4": {most: 1, from: []string{"::ffff:1.1.1.1", "::ffff:1.1.1.2", "::ffff:1.1.1.3", "::ffff:1.1.1.4", "::ffff:1.1.1.5", "1.1.1.1"}, open: 5},
		"no limit of a client":             {most: 0, from: []string{"203.0.113.9", "203.0.113.9", "203.0.113.9"}, open: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := listenOn(nil, connRules{total: 100, perClient: c.most, exempt: exemptNone})
			var open []*conn
			for _, from := range c.from {
				own := &conn{quotas: l.quotas(&net.TCPAddr{IP: net.ParseIP(from)})}
				if _, ok := l.add(own); ok {
					open = append(open, own)
				}
			}
			if len(open) != c.open {
				t.Errorf("%d connections are open, want %d", len(open), c.open)
			}
			for _, own := range open {
				l.remove(own)
				l.uncount(own)
			}
			if len(l.counts) != 0 || len(l.open) != 0 {
				t.Errorf("after all were closed %v is counted, want nothing", l.counts)
			}
		})
	}
}
