package pg_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
)

// lateCancel is a proxy in front of a server. It delays requests to cancel a statement by delay.
type lateCancel struct {
	server string
	delay  time.Duration
	// received and passed count the requests to cancel that arrived and that were forwarded.
	received, passed atomic.Int32
}

// cancelCode is the second word of a request to cancel a statement.
const cancelCode = 80877102

// start returns the server's URL with the proxy's address.
func (l *lateCancel) start(t *testing.T, server string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	l.server = u.Host
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go l.serve(c)
		}
	}()
	u.Host = ln.Addr().String()
	return u.String()
}

// serve forwards one connection. On an error it closes the connection, which the client sees.
func (l *lateCancel) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	head := make([]byte, 8)
	if _, err := io.ReadFull(client, head); err != nil {
		return
	}
	server, err := net.Dial("tcp", l.server)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	cancel := binary.BigEndian.Uint32(head[4:]) == cancelCode
	if cancel {
		l.received.Add(1)
		time.Sleep(l.delay) // the delay decides which of the two cases is tested
	}
	if _, err := server.Write(head); err != nil {
		return
	}
	go func() { _, _ = io.Copy(server, client) }() // ends with either connection
	_, _ = io.Copy(client, server)
	if cancel {
		l.passed.Add(1)
	}
}

// A request to cancel a statement names only the connection, so a late one would end the next
// borrower's statement.
func TestCancel_NeverEndsTheStatementOfTheNextBorrower(t *testing.T) {
	t.Parallel()
	for name, delay := range map[string]time.Duration{
		"after the statement":                  400 * time.Millisecond,
		"after the client has stopped waiting": 1300 * time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			late := &lateCancel{delay: delay}
			d := open(t, late.start(t, blank(t)), "")
			sleep := func(ctx context.Context, seconds string) error {
				return d.WriteRole(ctx, pg.Retention, func(b *pgx.Batch) { b.Queue("select pg_sleep(" + seconds + ")") })
			}
			if err := sleep(t.Context(), "0"); err != nil { // connects
				t.Fatal(err)
			}
			patience, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			// A statement may start too late to be cancelled.
			for late.received.Load() == 0 && patience.Err() == nil {
				short, cancel := context.WithTimeout(patience, 50*time.Millisecond)
				_ = sleep(short, "0.1") // ends before its cancellation arrives
				cancel()
			}
			for late.passed.Load() == 0 {
				if err := sleep(patience, "0.5"); err != nil {
					t.Fatalf("the next borrower's statement: got %v, want no error", err)
				}
			}
		})
	}
}
