package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/coder/websocket"
)

// DialWebsocket opens a websocket through the guard, on a connection of its own, and follows no redirect.
//
// The context bounds the life of the connection, not only the handshake: when it ends, the connection is reset, and
// what the kernel has not sent yet is never sent. A caller that has its answer closes the connection before it ends the
// context: that close is orderly. After the limit of WithLimit nothing is sent.
func (c *Client) DialWebsocket(ctx context.Context, url string) (*websocket.Conn, error) {
	client := &http.Client{Transport: c.upgrade(ctx), CheckRedirect: noRedirect}
	conn, resp, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPClient: client})
	if err != nil {
		if resp != nil && resp.Body != nil {
			err = errors.Join(err, resp.Body.Close())
		}
		return nil, fmt.Errorf("websocket: %w", err)
	}
	return conn, nil
}

// upgrade returns the transport of one websocket: HTTP/1.1, used once. A transport of its own is needed because only a
// dialer can tie a connection to ctx.
func (c *Client) upgrade(ctx context.Context) *http.Transport {
	t := newTransport(c.guarded)
	t.TLSClientConfig = c.tls.Clone()
	t.DisableKeepAlives = true
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.DialContext = func(dial context.Context, network, addr string) (net.Conn, error) {
		conn, err := c.guarded.dial(dial, network, addr)
		if err != nil {
			return nil, err
		}
		return bind(ctx, conn), nil
	}
	return t
}

// bound is a connection that is reset when its context ends, and that sends nothing after the limit of its context.
type bound struct {
	net.Conn
	ctx  context.Context
	stop func() bool
}

func bind(ctx context.Context, conn net.Conn) *bound {
	b := &bound{Conn: conn, ctx: ctx}
	b.stop = context.AfterFunc(ctx, func() { reset(conn) })
	return b
}

// Write fails with ErrTooLate after the limit of the context, by a clock that runs while the machine is stopped.
func (b *bound) Write(p []byte) (int, error) {
	if left, ok := Left(b.ctx); ok && left <= 0 {
		return 0, ErrTooLate
	}
	return b.Conn.Write(p)
}

// Close resets the connection if its context is over, and closes it in order otherwise.
func (b *bound) Close() error {
	b.stop()
	if b.ctx.Err() == nil {
		return b.Conn.Close()
	}
	reset(b.Conn)
	return nil
}
