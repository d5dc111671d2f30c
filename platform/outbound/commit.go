package outbound

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
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

// Commit sends an irreversible request exactly once or not at all: HTTP/1.1 on a connection of its own, no redirect, no repetition.
// After the limit of WithLimit nothing is sent. Every error, also one of reading the body of the answer, is a *SendError. The context bounds the whole exchange, body included.
// The caller closes the body of the answer; a 3xx is an answer like any other.
func (c *Client) Commit(req *http.Request) (*http.Response, error) {
	if req.URL == nil || req.URL.User != nil {
		closeBody(req.Body)
		return nil, &SendError{Err: errors.New("a commit needs a URL without credentials")}
	}
	g := &gate{ctx: req.Context()}
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { g.ready.Store(true) }} // after a TLS handshake
	once := req.Clone(httptrace.WithClientTrace(context.WithValue(req.Context(), gateKey{}, g), trace))
	once.GetBody = nil
	if once.Header == nil {
		once.Header = http.Header{}
	}
	// The transport itself, not http.Client: that would give up an answer whose Location it cannot read.
	resp, err := c.commit.RoundTrip(once)
	if err != nil {
		return nil, &SendError{Err: err, Written: g.close()}
	}
	resp.Body = &answer{resp.Body}
	return resp, nil
}

func closeBody(body io.ReadCloser) {
	if body != nil {
		_ = body.Close() // unread: nothing was sent
	}
}

// answer marks what breaks while the answer is read: the request was written long ago.
type answer struct{ io.ReadCloser }

func (a *answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &SendError{Err: err, Written: true}
	}
	return n, err
}
