package edge

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"crier/tests/syncbuffer"
)

// failing is a listener whose first accepts fail, as they do when file descriptors run out.
type failing struct {
	net.Listener
	err   error
	times atomic.Int64
}

func (s *failing) Accept() (net.Conn, error) {
	if s.times.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", s.err)}
	}
	return s.Listener.Accept()
}

// listenFailing listens on loopback and makes the first accepts fail with err.
func listenFailing(t *testing.T, err error, times int64) (*listener, *syncbuffer.Buffer) {
	t.Helper()
	ln, e := net.Listen("tcp", "127.0.0.1:0")
	if e != nil {
		t.Fatal(e)
	}
	inner := &failing{Listener: ln, err: err}
	inner.times.Store(times)
	log := &syncbuffer.Buffer{}
	l := listenOn(inner, connRules{total: 1, perClient: 1, exempt: exemptNone, log: slog.New(slog.NewTextHandler(log, nil))})
	t.Cleanup(func() { _ = l.Close() }) // some tests close it earlier
	return l, log
}

func TestAccept_RetriesAfterShortage(t *testing.T) {
	t.Parallel()
	for _, err := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ECONNABORTED} {
		t.Run(err.Error(), func(t *testing.T) {
			t.Parallel()
			l, log := listenFailing(t, err, 4)
			dialOne(t, l.Addr().String())
			c, got := l.Accept()
			if got != nil {
				t.Fatalf("the listener ended: %v", got)
			}
			if e := c.Close(); e != nil {
				t.Error(e)
			}
			if n := strings.Count(log.String(), "cannot accept connections"); n != 1 || !strings.Contains(log.String(), err.Error()) {
				t.Errorf("%d lines in the log, want one with the cause: %s", n, log)
			}
		})
	}
}

func TestAccept_EndsWithListener(t *testing.T) {
	t.Parallel()
	for name, times := range map[string]int64{"waiting for a connection": 0, "waiting in a shortage": 1 << 60} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := listenFailing(t, syscall.EMFILE, times)
			ended := make(chan error, 1)
			go func() {
				_, err := l.Accept()
				ended <- err
			}()
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; !errors.Is(err, net.ErrClosed) {
				t.Errorf("got %v, want net.ErrClosed", err)
			}
		})
	}
}
