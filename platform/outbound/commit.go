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

// SendError reports that a Commit failed. If Written is true, the platform may have acted on the
// request, and the request must not be sent again.
type SendError struct {
	// Err is the cause. It matches ErrTooLate if a write was rejected because the limit set with
	// WithLimit had passed, or because the context had ended before the first write. If the context
	// has ended, Err matches the context's cause.
	Err error
	// Written is false only if it is certain that no byte of the request has left this machine.
	Written bool
}

// Error returns the cause and says whether the request may have been received.
func (e *SendError) Error() string {
	if e.Written {
		return "request may have been received: " + e.Err.Error()
	}
	return "request was not sent: " + e.Err.Error()
}

// Unwrap returns the cause, for errors.Is and errors.As.
func (e *SendError) Unwrap() error { return e.Err }

type keptKey struct{}

// WithKeptConnections returns a context that lets Commit reuse a connection that an earlier Commit
// left open, and leave its own connection open. Use it only for platforms that deduplicate requests
// by a key: if the server closes a kept connection just as a request is written to it, the outcome
// of the request is unknown. On a new connection, this cannot happen.
//
// If an exchange does not end with a complete response, its connection is reset. If unexpected
// bytes arrive on an idle connection, net/http drops the connection. One risk remains: a server may
// send a second response directly after the first. A Commit that takes the connection before
// net/http has read the second response mistakes that response for its own.
func WithKeptConnections(ctx context.Context) context.Context {
	return context.WithValue(ctx, keptKey{}, true)
}

// Commit sends an irreversible request at most once. It uses HTTP/1.1 and follows no redirects. It
// opens a new connection unless the context comes from WithKeptConnections. It does not use HTTP/2,
// because HTTP/2 requests share a connection and cannot be aborted individually.
//
// Nothing is sent after the limit set with WithLimit. The context limits the whole exchange,
// including the body. Every error is a *SendError, including errors from reading the response body.
// A 3xx is a response like any other, but a 101 is an error. The caller must close the response
// body.
func (c *Client) Commit(req *http.Request) (*http.Response, error) {
	g := &gate{ctx: req.Context()}
	resp, err := c.roundTrip(req, g)
	if err != nil {
		return nil, &SendError{Err: g.withRefusal(withCause(req.Context(), err)), Written: g.end(false)}
	}
	if resp.Body == http.NoBody {
		g.end(true)
	}
	resp.Body = &answerBody{ReadCloser: resp.Body, gate: g}
	return resp, nil
}

func (c *Client) roundTrip(req *http.Request, g *gate) (*http.Response, error) {
	if req.URL == nil || req.URL.User != nil || req.Header == nil {
		if req.Body != nil {
			_ = req.Body.Close() // no byte of it was sent
		}
		return nil, errors.New("a commit needs a URL without credentials, and a header")
	}
	attach := func(got httptrace.GotConnInfo) { got.Conn.(*line).gate.Store(g) }
	once := req.Clone(httptrace.WithClientTrace(g.ctx, &httptrace.ClientTrace{GotConn: attach}))
	once.Header.Set("Accept-Encoding", cmp.Or(req.Header.Get("Accept-Encoding"), "identity"))
	if req.Body != nil { // net/http would wait for a body that blocks
		defer context.AfterFunc(g.ctx, func() { _ = req.Body.Close() })()
	}
	transport := c.fresh
	if g.ctx.Value(keptKey{}) != nil {
		transport = c.kept
	}
	// http.Client would discard a response whose Location it cannot parse.
	return refuseUpgrade{RoundTripper: transport}.RoundTrip(once)
}

const (
	// maxCommitIdle is how long an idle kept connection stays open. Some servers close idle
	// connections after five seconds.
	maxCommitIdle = 3 * time.Second
	// maxIdleConns limits the idle connections, per host and in total. It is large so that all
	// connections of a burst to one platform can stay open.
	maxIdleConns = 1024
)

// commitTransport returns a transport for Commit. Its connections are of type line. TLS is set up
// by dialTLS instead of net/http, so that no TLS alert delays a reset.
func (c *Client) commitTransport(keep bool) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := c.commitGuard.dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &line{Conn: conn, raw: conn}, nil
		},
		DialTLSContext:         c.dialTLS,
		DisableKeepAlives:      !keep,
		DisableCompression:     true, // the body must end where the response ends; see gate.end
		IdleConnTimeout:        maxCommitIdle,
		MaxIdleConns:           maxIdleConns,
		MaxIdleConnsPerHost:    maxIdleConns,
		MaxResponseHeaderBytes: maxHeader,
	}
}

func (c *Client) dialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	raw, err := c.commitGuard.dial(ctx, network, addr)
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

// withCause adds the context's cause to err if the context has ended and err does not contain the
// cause yet.
func withCause(ctx context.Context, err error) error {
	if ctx.Err() == nil || errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), err)
}

// answerBody is a response body. Its read errors are SendErrors in which Written is set, because
// the request has already been sent.
type answerBody struct {
	io.ReadCloser
	gate *gate
}

func (a *answerBody) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		a.gate.end(true)
		return n, err
	}
	if err != nil {
		err = &SendError{Err: withCause(a.gate.ctx, err), Written: true}
	}
	return n, err
}

func (a *answerBody) Close() error {
	err := a.ReadCloser.Close()
	a.gate.end(false)
	return err
}
