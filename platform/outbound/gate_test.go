package outbound

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"crier/platform/clock"
)

// counting is a server that tells how many bytes each connection brought until its end.
func counting(t *testing.T) (addr string, brought <-chan int64) {
	t.Helper()
	out := make(chan int64, 1)
	addr, _ = rawServer(t, func(c net.Conn) {
		n, _ := io.Copy(io.Discard, c) // a reset ends it as well
		out <- n
	})
	return addr, out
}

func TestAfterItsLimitNothingIsSent(t *testing.T) {
	t.Parallel()
	addr, brought := counting(t)
	c := newClient(t, Deps{}, addr)
	_, err := c.Commit(post(t, WithLimit(t.Context(), -time.Nanosecond), "http://"+addr))
	wantSendError(t, err, false)
	if !errors.Is(err, ErrTooLate) {
		t.Errorf("the cause is %v", err)
	}
	if n := <-brought; n != 0 {
		t.Errorf("the server got %d bytes", n)
	}
}

func TestALimitThatPassesInTheHandshakeLetsNothingOut(t *testing.T) {
	t.Parallel()
	asked := false
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	ctx := WithLimit(t.Context(), 300*time.Millisecond)
	server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		for {
			if left, _ := Left(ctx); left < 0 {
				return nil, nil
			}
			time.Sleep(time.Millisecond)
		}
	}}
	server.StartTLS()
	c := newClient(t, Deps{}, server.Listener.Addr().String())
	c.tls.RootCAs = x509.NewCertPool()
	c.tls.RootCAs.AddCert(server.Certificate())
	_, err := c.Commit(post(t, ctx, server.URL))
	wantSendError(t, err, false)
	server.Close() // waits for its handlers
	if asked || !errors.Is(err, ErrTooLate) {
		t.Errorf("asked: %v, %v", asked, err)
	}
}

// TestWhatWasNotWrittenNeverIs cuts requests off at all moments of their sending; each names itself in its first line.
func TestWhatWasNotWrittenNeverIs(t *testing.T) {
	t.Parallel()
	came := make(chan string, 1000)
	addr, _ := rawServer(t, func(c net.Conn) {
		method, _ := bufio.NewReader(c).ReadString(' ') // less when it was cut off there
		came <- strings.TrimSpace(method)
	})
	c := newClient(t, Deps{}, addr)
	written := map[string]bool{}
	for n := range 400 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n)*2*time.Microsecond)
		req := post(t, ctx, "http://"+addr)
		req.Method = fmt.Sprintf("N%d", n)
		_, err := c.Commit(req)
		cancel()
		var send *SendError
		if !errors.As(err, &send) {
			t.Fatal(err)
		}
		written[req.Method] = send.Written
	}
	last := post(t, t.Context(), "http://"+addr)
	last.Method = "LAST"
	_, err := c.Commit(last)
	wantSendError(t, err, true)
	written["LAST"] = true
	for name := range came { // the server takes connections in their order
		if name != "" && !written[name] {
			t.Errorf("%q came, which was told as not sent", name)
		}
		if name == "LAST" {
			return
		}
	}
}

func TestAGateStaysAsItWasSaidToBe(t *testing.T) {
	t.Parallel()
	early, late := &gate{ctx: t.Context()}, &gate{ctx: t.Context()}
	if err := early.pass(); err != nil {
		t.Errorf("the handshake is refused: %v", err)
	}
	early.ready.Store(true)
	late.ready.Store(true)
	if err := early.pass(); err != nil || !early.close() || early.pass() != nil {
		t.Errorf("what passed is told as not written, or its rest is refused: %v", err)
	}
	first, again := late.close(), late.close()
	if first || again || !errors.Is(late.pass(), ErrTooLate) {
		t.Error("what was told as not written can still be written")
	}
}

func TestALimitThatPassesInARequestKeepsItsRestBack(t *testing.T) {
	t.Parallel()
	g := &gate{ctx: WithLimit(t.Context(), time.Hour)}
	g.ready.Store(true)
	if err := g.pass(); err != nil {
		t.Fatal(err)
	}
	g.ctx = WithLimit(t.Context(), -time.Nanosecond)
	if err := g.pass(); !errors.Is(err, ErrTooLate) || !g.close() {
		t.Errorf("the rest of the request may be sent after its limit: %v", err)
	}
}

func TestTheBootClockGoesOn(t *testing.T) {
	t.Parallel()
	ctx := WithLimit(t.Context(), time.Hour)
	if left, ok := Left(ctx); !ok || left > time.Hour || left < time.Hour-time.Minute {
		t.Errorf("%s are left, %v", left, ok)
	}
	if _, ok := Left(t.Context()); ok {
		t.Error("there is a limit that nobody set")
	}
	for before := clock.Boot(); clock.Boot() <= before; {
		time.Sleep(time.Millisecond)
	}
}
