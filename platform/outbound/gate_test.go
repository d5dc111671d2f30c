package outbound

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"crier/platform/clock"
)

// counting is a server that tells how many bytes a connection brought until it ended.
func counting(t *testing.T) (addr string, brought <-chan int64) {
	t.Helper()
	out := make(chan int64, 1)
	addr, _ = rawServer(t, func(c net.Conn) {
		n, _ := io.Copy(io.Discard, c) // a reset ends it as well
		out <- n
	})
	return addr, out
}

func TestCommit_SendsNothingAfterItsLimit(t *testing.T) {
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

func TestCommit_LimitPassesInTheHandshake(t *testing.T) {
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
	_, err := trusting(t, server, server.Listener.Addr().String()).Commit(post(t, ctx, server.URL))
	wantSendError(t, err, false)
	server.Close() // waits for its handlers
	if asked || !errors.Is(err, ErrTooLate) {
		t.Errorf("asked: %v, %v", asked, err)
	}
}

func TestGate(t *testing.T) {
	t.Parallel()
	first, second := &line{}, &line{}
	early, late := &gate{ctx: t.Context()}, &gate{ctx: t.Context()}
	if err := early.pass(first); err != nil || early.pass(second) == nil || !early.end(true) || early.pass(first) != nil {
		t.Errorf("what passed is told as not written, goes over two connections, or its rest is refused: %v", err)
	}
	if late.end(false) || !errors.Is(late.pass(first), ErrTooLate) || late.end(false) {
		t.Error("what was told as not written can still be written")
	}
}

func TestGate_LimitThatPassesInARequestKeepsItsRestBack(t *testing.T) {
	t.Parallel()
	l, g := &line{}, &gate{ctx: WithLimit(t.Context(), time.Hour)}
	if err := g.pass(l); err != nil {
		t.Fatal(err)
	}
	g.ctx = WithLimit(t.Context(), -time.Nanosecond)
	if err := g.pass(l); !errors.Is(err, ErrTooLate) || !g.end(true) {
		t.Errorf("the rest of the request may be sent after its limit: %v", err)
	}
}

func TestWithLimit(t *testing.T) {
	t.Parallel()
	before := clock.Boot()
	ctx := WithLimit(t.Context(), time.Hour)
	left, ok := Left(ctx)
	if passed := clock.Boot() - before; !ok || left > time.Hour || left < time.Hour-passed {
		t.Errorf("%s are left after at most %s, %v", left, passed, ok)
	}
	if _, ok := Left(t.Context()); ok {
		t.Error("there is a limit that nobody set")
	}
	for before := clock.Boot(); clock.Boot() <= before; {
		time.Sleep(time.Millisecond)
	}
}
