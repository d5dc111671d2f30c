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

// counting starts a server that reports how many bytes each connection brought.
func counting(t *testing.T) (addr string, brought <-chan int64) {
	t.Helper()
	out := make(chan int64, 1)
	addr, _ = rawServer(t, func(c net.Conn) {
		n, _ := io.Copy(io.Discard, c) // also ends with a reset
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
		t.Errorf("got the cause %v, want ErrTooLate", err)
	}
	if n := <-brought; n != 0 {
		t.Errorf("the server got %d bytes, want none", n)
	}
}

func TestCommit_SendsNothingWhenLimitPassesInHandshake(t *testing.T) {
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
		t.Errorf("the server got the request: %v, %v; want nothing sent and ErrTooLate", asked, err)
	}
}

func TestGate_PassesOneConnectionUntilEnd(t *testing.T) {
	t.Parallel()
	first, second := &line{}, &line{}
	early, late := &gate{ctx: t.Context()}, &gate{ctx: t.Context()}
	if err := early.pass(first); err != nil || early.pass(second) == nil || !early.end(true) || early.pass(first) != nil {
		t.Errorf("got %v; want a request that passes on one connection only, counts as written, and may be completed", err)
	}
	if late.end(false) || !errors.Is(late.pass(first), ErrTooLate) || late.end(false) {
		t.Error("a request reported as not written can still be written, want ErrTooLate")
	}
}

func TestGate_HoldsRestBackWhenLimitPasses(t *testing.T) {
	t.Parallel()
	l, g := &line{}, &gate{ctx: WithLimit(t.Context(), time.Hour)}
	if err := g.pass(l); err != nil {
		t.Fatal(err)
	}
	g.ctx = WithLimit(t.Context(), -time.Nanosecond)
	if err := g.pass(l); !errors.Is(err, ErrTooLate) || !g.end(true) {
		t.Errorf("the rest of the request after the limit: got %v, want ErrTooLate", err)
	}
}

func TestWithLimit_CountsDown(t *testing.T) {
	t.Parallel()
	before := clock.Boot()
	ctx := WithLimit(t.Context(), time.Hour)
	left, ok := Left(ctx)
	if passed := clock.Boot() - before; !ok || left > time.Hour || left < time.Hour-passed {
		t.Errorf("after at most %s: got %s, %v; want what is left of an hour", passed, left, ok)
	}
	if _, ok := Left(t.Context()); ok {
		t.Error("a context without a limit: got one, want none")
	}
	for before := clock.Boot(); clock.Boot() <= before; {
		time.Sleep(time.Millisecond)
	}
}

// net/http may return the error of its reader instead, because it closed the connection after the
// refused write.
func TestGate_NamesRefusalWhateverNetHTTPReturns(t *testing.T) {
	t.Parallel()
	g := &gate{ctx: WithLimit(t.Context(), -time.Nanosecond)}
	if err := g.withRefusal(net.ErrClosed); errors.Is(err, ErrTooLate) {
		t.Errorf("without a refused write: got %v, want no ErrTooLate", err)
	}
	if err := g.pass(&line{}); !errors.Is(err, ErrTooLate) {
		t.Errorf("got %v, want ErrTooLate", err)
	}
	if err := g.withRefusal(net.ErrClosed); !errors.Is(err, ErrTooLate) || !errors.Is(err, net.ErrClosed) {
		t.Errorf("after a refused write: got %v, want ErrTooLate and the error of net/http", err)
	}
}
