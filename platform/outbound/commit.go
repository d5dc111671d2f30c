package outbound

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"time"
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

type keptKey struct{}

// OnKeptConnections lets a Commit under ctx use a connection that an earlier one has left open, and leave its own open.
// It is for platforms that de-duplicate by a key. The server may close a kept connection at the very moment at which a
// request is written to it; that is an unknown outcome, which a fresh connection would not have had.
//
// The connection is reset, not kept, after an exchange that did not end with a whole answer, and net/http drops one on
// which something comes that was not asked for. One case remains: a server that sends a second answer directly behind
// the first one. If another Commit takes the connection before net/http has looked, it gets that answer as its own.
func OnKeptConnections(ctx context.Context) context.Context {
	return context.WithValue(ctx, keptKey{}, true)
}

// Commit sends an irreversible request once or not at all: HTTP/1.1, no redirect, no repetition, on a connection of its
// own unless the context is one of OnKeptConnections. HTTP/2 would put other requests on the same connection, and none
// of them could be cut off alone.
//
// Nothing is sent after the limit of WithLimit. Every error, also one of reading the body of the answer, is a
// *SendError. The context bounds the whole exchange, body included. The caller closes the body of the answer; a 3xx is
// an answer like any other, a 101 is an error.
func (c *Client) Commit(req *http.Request) (*http.Response, error) {
	g := &gate{ctx: req.Context()}
	resp, err := c.roundTrip(req, g)
	if err != nil {
		return nil, &SendError{Err: because(req.Context(), err), Written: g.end(false)}
	}
	if resp.Body == http.NoBody {
		g.end(true)
	}
	resp.Body = &answer{resp.Body, g}
	return resp, nil
}

func (c *Client) roundTrip(req *http.Request, g *gate) (*http.Response, error) {
	if req.URL == nil || req.URL.User != nil || req.Header == nil {
		if req.Body != nil {
			_ = req.Body.Close() // unread: nothing was sent
		}
		return nil, errors.New("a commit needs a URL without credentials, and a header")
	}
	attach := func(got httptrace.GotConnInfo) { got.Conn.(*line).gate.Store(g) }
	once := req.Clone(httptrace.WithClientTrace(g.ctx, &httptrace.ClientTrace{GotConn: attach}))
	once.Header.Set("Accept-Encoding", cmp.Or(req.Header.Get("Accept-Encoding"), "identity"))
	if req.Body != nil { // net/http waits for the reader of a body
		defer context.AfterFunc(g.ctx, func() { _ = req.Body.Close() })()
	}
	way := c.fresh
	if g.ctx.Value(keptKey{}) != nil {
		way = c.kept
	}
	// Not http.Client, which gives up an answer whose Location it cannot read.
	return refuseUpgrade{way}.RoundTrip(once)
}

const (
	// idleCommits is shorter than the five seconds after which some servers close an idle connection.
	idleCommits = 3 * time.Second
	// maxIdle is for one host and for all: what a burst has opened to one platform may stay open.
	maxIdle = 1024
)

// commits returns a transport for Commit. Its connections are lines, so that TLS is made here and not by net/http: no
// alert of TLS delays a reset.
func (c *Client) commits(keep bool) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := c.single.dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &line{Conn: conn, raw: conn}, nil
		},
		DialTLSContext:         c.dialTLS,
		DisableKeepAlives:      !keep,
		DisableCompression:     true, // the end of the body must be the end of the answer on the connection; see gate
		IdleConnTimeout:        idleCommits,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdle,
		MaxResponseHeaderBytes: maxHeader,
	}
}

func (c *Client) dialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	raw, err := c.single.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	cfg := c.tls.Clone()
	cfg.ServerName, cfg.NextProtos = host, []string{"http/1.1"}
	conn := tls.Client(raw, cfg)
	ctx, cancel := context.WithTimeout(ctx, tlsTimeout)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return &line{Conn: conn, raw: raw}, nil
}

// because names the end of the context as the cause of what it broke.
func because(ctx context.Context, err error) error {
	if ctx.Err() == nil || errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), err)
}

// answer marks what breaks while the answer is read: the request was written long ago.
type answer struct {
	io.ReadCloser
	gate *gate
}

func (a *answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		a.gate.end(true)
		return n, err
	}
	if err != nil {
		err = &SendError{Err: because(a.gate.ctx, err), Written: true}
	}
	return n, err
}

func (a *answer) Close() error {
	err := a.ReadCloser.Close()
	a.gate.end(false)
	return err
}
