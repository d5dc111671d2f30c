package outbound

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/http/httpguts"
)

// SendError is the failure of a Commit. Written is false only when provably no byte of the request left this machine;
// true means that the platform may have acted, and nobody may send the request again.
type SendError struct {
	Err     error
	Written bool
}

func (e *SendError) Error() string {
	if e.Written {
		return "request may have been received: " + e.Err.Error()
	}
	return "request was not sent: " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *SendError) Unwrap() error { return e.Err }

const (
	commitBuffer = 2048     // bytes; the request of a text goes out in one piece
	answerBuffer = 4096     // bytes; no line between chunks and no trailer may be longer
	fitsSocket   = 32 << 10 // bytes of a body that the machine takes whoever reads them
)

// Commit sends an irreversible request exactly once or not at all: HTTP/1.1 on a connection of its own, no redirect, no repetition.
// After the limit of WithLimit nothing is sent. Every error, also one of reading the body of the answer, is a *SendError. The context bounds the whole exchange, body included.
// The caller closes the body of the answer; a 3xx is an answer like any other.
//
// It does without http.Transport, which is made for connections that are used again and may itself send a request again: the one who calls writes the request and reads the answer.
func (c *Client) Commit(req *http.Request) (*http.Response, error) {
	g := &gate{ctx: req.Context()}
	resp, err := c.exchange(req, g)
	if err != nil {
		return nil, &SendError{Err: because(req.Context(), err), Written: g.close()}
	}
	return resp, nil
}

func (c *Client) exchange(req *http.Request, g *gate) (*http.Response, error) {
	x, err := c.connect(req, g)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // unread: nothing was sent
		}
		return nil, err
	}
	resp, err := x.roundTrip(req)
	if err != nil {
		x.end()
	}
	return resp, err
}

// exchange is the connection of one Commit, and what ends it.
type exchange struct {
	net.Conn
	raw  net.Conn
	gate *gate
	ctx  context.Context
	stop func() bool // the end of the context ends the connection no more
	once sync.Once
	// answered is set when the answer was read to its end. A connection that is closed without it is reset.
	answered atomic.Bool
}

// connect opens the way to the host of a request, for https through TLS. From then on the gate is asked before anything is written.
func (c *Client) connect(req *http.Request, g *gate) (*exchange, error) {
	host, address, err := target(req.URL)
	if err == nil {
		err = writable(req)
	}
	if err != nil {
		return nil, err
	}
	raw, err := c.single.dial(req.Context(), "tcp", address)
	if err != nil {
		return nil, err
	}
	x := &exchange{Conn: gated{raw, g}, raw: raw, gate: g, ctx: req.Context()}
	x.stop = context.AfterFunc(x.ctx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) }) // wakes whoever reads or writes
	if req.URL.Scheme == "https" {
		if err := x.secure(c.tls, host); err != nil {
			x.end()
			return nil, err
		}
	}
	g.ready.Store(true)
	return x, nil
}

func target(u *url.URL) (host, address string, err error) {
	switch {
	case u == nil || u.Hostname() == "" || ports[u.Scheme] == "":
		return "", "", errors.New("a commit needs an http or https URL")
	case u.User != nil:
		return "", "", errors.New("a commit needs a URL without credentials")
	}
	if host, err = httpguts.PunycodeHostPort(u.Hostname()); err != nil {
		return "", "", err
	}
	return host, net.JoinHostPort(host, cmp.Or(u.Port(), ports[u.Scheme])), nil
}

// writable tells what http.Request.Write would change, leave out or write as it is.
func writable(req *http.Request) error {
	if req.Method != "" && !httpguts.ValidHeaderFieldName(req.Method) { // both are tokens
		return fmt.Errorf("invalid method %q", req.Method)
	}
	for _, fields := range []http.Header{req.Header, req.Trailer} {
		for name, values := range fields {
			if !httpguts.ValidHeaderFieldName(name) {
				return fmt.Errorf("invalid header name %q", name)
			}
			for _, v := range values {
				if !httpguts.ValidHeaderFieldValue(v) {
					return fmt.Errorf("invalid value of the header %s", name) // it may be a secret
				}
			}
		}
	}
	return nil
}

func (x *exchange) secure(cfg *tls.Config, host string) error {
	ctx, cancel := context.WithTimeout(x.ctx, tlsTimeout)
	defer cancel()
	cfg = cfg.Clone()
	cfg.ServerName, cfg.NextProtos = host, []string{"http/1.1"}
	conn := tls.Client(x.Conn, cfg)
	x.Conn = conn
	return conn.HandshakeContext(ctx)
}

// roundTrip writes the request and reads the head of the answer. Of a large request both at once: a server may answer and close before it has read it.
func (x *exchange) roundTrip(req *http.Request) (*http.Response, error) {
	wrote := make(chan error, 1)
	write := func() {
		err := x.write(req)
		if err != nil && !hungUp(err) {
			x.end() // nobody waits for an answer to half a request
		}
		wrote <- err
	}
	if swift(req) {
		write()
	} else {
		go write()
	}
	head := &io.LimitedReader{R: x.Conn, N: maxHeader}
	resp, err := answered(bufio.NewReaderSize(head, answerBuffer), req)
	if err != nil {
		x.end()
		return nil, x.cause(wrote, err)
	}
	head.N = math.MaxInt64
	x.answered.Store(resp.Body == http.NoBody)
	resp.Body = &answer{resp.Body, x}
	return resp, nil
}

// swift tells a request that is written without waiting for anybody: small, and its body in memory, for which alone net/http knows how to begin again.
func swift(req *http.Request) bool {
	if req.Body == nil || req.Body == http.NoBody {
		return true
	}
	return req.GetBody != nil && req.ContentLength > 0 && req.ContentLength <= fitsSocket
}

// hungUp tells that the server has closed the connection: it may have answered before, and what came is still there to be read.
func hungUp(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// cause is what broke the writing, if that did, else err. A body that is being waited for is not waited for longer than the context allows.
func (x *exchange) cause(wrote <-chan error, err error) error {
	select {
	case first := <-wrote:
		return cmp.Or(first, err)
	case <-x.ctx.Done():
		return err
	}
}

func (x *exchange) write(req *http.Request) error {
	once := req.WithContext(x.ctx) // a copy
	once.Close, once.Header = true, req.Header.Clone()
	if once.Header == nil {
		once.Header = http.Header{}
	}
	if len(once.Header["Accept-Encoding"]) == 0 {
		once.Header["Accept-Encoding"] = []string{"identity"} // without it a server may compress as it likes
	}
	w := bufio.NewWriterSize(x.Conn, commitBuffer)
	err := once.Write(w)
	if err == nil {
		return w.Flush()
	}
	_, broken := w.Write(nil) // net/http hides what broke the connection in an error of the body
	return cmp.Or(broken, err)
}

// answered reads the head of the answer, past the interim ones; what bounds it bounds them all together.
func answered(r *bufio.Reader, req *http.Request) (*http.Response, error) {
	for {
		resp, err := http.ReadResponse(r, req)
		if err != nil || resp.StatusCode/100 != 1 || resp.StatusCode == http.StatusSwitchingProtocols {
			return resp, err
		}
	}
}

// end closes the connection. Without a whole answer it resets it: an orderly close would leave the rest of the
// request to the kernel, which goes on sending it for minutes, and the platform would act long after the commit had
// failed. After a whole answer the close is orderly, because a reset could destroy what the server has not read yet.
// What Close returns is of no use: the answer was read, or given up.
func (x *exchange) end() {
	x.once.Do(func() {
		x.stop()
		x.gate.close() // closing TLS writes an alert, which is not the request
		switch {
		case !x.answered.Load():
			reset(x.raw) // before the close of TLS, whose alert would wait until the server takes it
		case x.ctx.Err() != nil:
			_ = x.raw.Close() // there is no time for that wait
		}
		_ = x.Close()
	})
}

// reset closes a connection so that the kernel drops what it has not sent yet. SetLinger fails only on a connection
// that is closed already.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// because names the end of the context as the cause of what it broke.
func because(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), err)
}

// answer marks what breaks while the answer is read: the request was written long ago.
type answer struct {
	io.Reader
	x *exchange
}

func (a *answer) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		a.x.answered.Store(true)
		return n, err
	}
	if err != nil {
		err = &SendError{Err: because(a.x.ctx, err), Written: true}
	}
	return n, err
}

func (a *answer) Close() error {
	a.x.end()
	return nil
}
