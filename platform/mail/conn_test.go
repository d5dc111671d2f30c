package mail

import (
	"io"
	"net"
	"sync/atomic"
	"testing"

	"crier/platform/fault"
)

// TestSend_EndsWhenServerSendsTooMuch: an endless response would fill the memory until the
// deadline.
func TestSend_EndsWhenServerSendsTooMuch(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	var sent atomic.Int64
	done := make(chan error, 1)
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			done <- err
			return
		}
		n, _ := io.Copy(conn, endless{})
		sent.Store(n)
		done <- conn.Close()
	}()
	err = open(t, "smtp://"+ln.Addr().String()+"?tls=none", nil).Send(t.Context(), hello())
	if !fault.Is(err, fault.Unavailable) || t.Context().Err() != nil {
		t.Errorf("got %v, want a fault of kind unavailable", err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if sent.Load() < maxAnswers {
		t.Errorf("the server sent %d bytes, want at least %d before the end", sent.Load(), maxAnswers)
	}
}

// endless is a line that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '2'
	}
	return len(p), nil
}
