package outbound

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// narrow listens with a receive buffer so small that most of a request stays in the kernel of the
// sender.
func narrow(t *testing.T) net.Listener {
	t.Helper()
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) {
			failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 2048)
		})
		return errors.Join(err, failed)
	}}
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	return ln
}

// received is what a server read on one connection, and how the connection ended.
type received struct {
	raw []byte
	err error
}

// late accepts one connection, lets prepare use it, and reads the rest only after resume is closed.
func late(ln net.Listener, resume <-chan struct{}, prepare func(net.Conn) (net.Conn, error)) <-chan received {
	got := make(chan received, 1)
	go func() {
		accepted, err := ln.Accept()
		if err != nil {
			got <- received{err: err}
			return
		}
		defer func() { _ = accepted.Close() }()
		conn, err := prepare(accepted)
		if err != nil {
			got <- received{err: err}
			return
		}
		<-resume
		raw, err := io.ReadAll(conn)
		got <- received{raw: raw, err: err}
	}()
	return got
}

const longBody = 30_000 // bytes: the sender's kernel takes them all, the receiver's does not

func TestCommit_ResetsConnectionWhenAborted(t *testing.T) {
	t.Parallel()
	maker := httptest.NewTLSServer(nil)
	t.Cleanup(maker.Close)
	for name, tc := range map[string]struct {
		scheme  string
		prepare func(net.Conn) (net.Conn, error)
	}{
		"plain": {scheme: "http", prepare: func(c net.Conn) (net.Conn, error) { return c, nil }},
		"TLS": {scheme: "https", prepare: func(c net.Conn) (net.Conn, error) {
			secure := tls.Server(c, maker.TLS)
			return secure, secure.Handshake()
		}},
	} {
		for way, with := range ways {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				ln, resume := narrow(t), make(chan struct{})
				got := late(ln, resume, tc.prepare)
				ctx, cancel := context.WithTimeout(with(t.Context()), 500*time.Millisecond)
				defer cancel()
				body := bytes.NewReader(bytes.Repeat([]byte("x"), longBody))
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, tc.scheme+"://"+ln.Addr().String(), body)
				if err != nil {
					t.Fatal(err)
				}
				_, err = trusting(t, maker, ln.Addr().String()).Commit(req)
				close(resume)
				wantSendError(t, err, true)
				if end := <-got; end.err == nil || len(end.raw) >= longBody {
					t.Errorf("the server received %d bytes and %v later, want a part and a reset", len(end.raw), end.err)
				}
			})
		}
	}
}

func TestCommit_ResetsConnectionWhenAnswerIsNotRead(t *testing.T) {
	t.Parallel()
	const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	for name, tc := range map[string]struct {
		answer string
		reset  bool
	}{
		"a whole answer closes in order":     {answer: "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwell", reset: false},
		"an answer without a body as well":   {answer: "HTTP/1.1 204 No Content\r\n\r\n", reset: false},
		"an answer in chunks as well":        {answer: chunked + "4\r\nwell\r\n0\r\n\r\n", reset: false},
		"an answer that is too large resets": {answer: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nmuch more", reset: true},
		"no answer at all resets":            {answer: "gibberish\r\n\r\n", reset: true},
	} {
		for way, with := range ways {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				ended := make(chan error, 1)
				addr, _ := rawServer(t, func(c net.Conn) {
					if _, err := readRequest(c); err != nil {
						ended <- err
						return
					}
					if _, err := io.WriteString(c, tc.answer); err != nil {
						ended <- err
						return
					}
					_, err := io.Copy(io.Discard, c)
					ended <- err
				})
				c := newClient(t, Deps{}, addr)
				err := commit(c, post(t, with(t.Context()), "http://"+addr), 4)
				if (err != nil) != tc.reset {
					t.Errorf("the commit ended with %v, want an error: %v", err, tc.reset)
				}
				c.Close()
				if err := <-ended; errors.Is(err, syscall.ECONNRESET) != tc.reset {
					t.Errorf("the server's connection ended with %v, want a reset: %v", err, tc.reset)
				}
			})
		}
	}
}

func TestDialWebsocket_ResetsConnectionWhenContextEnds(t *testing.T) {
	t.Parallel()
	ln, resume := narrow(t), make(chan struct{})
	got := late(ln, resume, func(c net.Conn) (net.Conn, error) { return c, upgraded(c) })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	conn, err := newClient(t, Deps{}, ln.Addr().String()).DialWebsocket(ctx, "ws://"+ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Write(t.Context(), websocket.MessageText, bytes.Repeat([]byte("x"), longBody)); err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = conn.CloseNow() // waits until the connection is closed
	close(resume)
	if end := <-got; end.err == nil || len(end.raw) >= longBody {
		t.Errorf("after its context the server received %d bytes and %v, want a part and a reset", len(end.raw), end.err)
	}
}

func TestDialWebsocket_ClosesInOrderBeforeContextEnds(t *testing.T) {
	t.Parallel()
	ln, resume := narrow(t), make(chan struct{})
	got := late(ln, resume, func(c net.Conn) (net.Conn, error) { return c, upgraded(c) })
	conn, err := newClient(t, Deps{}, ln.Addr().String()).DialWebsocket(t.Context(), "ws://"+ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Write(t.Context(), websocket.MessageText, bytes.Repeat([]byte("x"), longBody)); err != nil {
		t.Fatal(err)
	}
	_ = conn.CloseNow()
	close(resume)
	if end := <-got; end.err != nil || len(end.raw) < longBody {
		t.Errorf("the server received %d bytes and %v, want all bytes and an orderly close", len(end.raw), end.err)
	}
}

// upgraded responds to the handshake of a websocket.
func upgraded(c net.Conn) error {
	req, err := readRequest(c)
	if err != nil {
		return err
	}
	const head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
	accept := "Sec-WebSocket-Accept: " + accepted(req.Header.Get("Sec-WebSocket-Key"))
	_, err = io.Copy(c, strings.NewReader(head+accept+"\r\n\r\n"))
	return err
}

// accepted returns the response to the key of a handshake, RFC 6455.
func accepted(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}
