package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/coder/websocket"
)

// websocketsAtOnce is how many websockets one owner may have in this process: twice those of a post to the most relays.
const websocketsAtOnce = 40

type ownerKey struct{}

// For names the owner of the websockets that are opened under ctx, such as an organization. Those without an owner have
// one together.
func For(ctx context.Context, owner string) context.Context {
	return context.WithValue(ctx, ownerKey{}, owner)
}

// Owner returns the owner that For has named, or "".
func Owner(ctx context.Context) string {
	owner, _ := ctx.Value(ownerKey{}).(string)
	return owner
}

// What a server may send on one websocket.
const (
	maxReceived = 4 << 20 // bytes, with those of the handshake and of TLS
	maxPings    = 100
)

// ErrTooMuch is the error of a read on a websocket whose server has sent more than it may: the caller closes it.
var ErrTooMuch = errors.New("the server sends too much")

// DialWebsocket opens a websocket through the guard, on a connection of its own, and follows no redirect.
//
// The context bounds the life of the connection, not only the handshake: when it ends, the connection is reset, and
// what the kernel has not sent yet is never sent. A caller that has its answer closes the connection before it ends the
// context: that close is orderly. After the limit of WithLimit nothing is sent. Of a server that sends more than 4 MB or
// 100 pings, reads return ErrTooMuch. An owner has at most 40 at once: one more waits until another is closed or ctx ends.
// Errors name the URL without its query, which may hold a token.
func (c *Client) DialWebsocket(ctx context.Context, url string) (*websocket.Conn, error) {
	leave, err := c.websockets.Enter(ctx, Owner(ctx))
	if err != nil {
		return nil, fmt.Errorf("websocket: %w", err)
	}
	leave = sync.OnceFunc(leave)
	got := &incoming{}
	client := &http.Client{Transport: c.upgrade(ctx, got, leave), CheckRedirect: noRedirect}
	conn, resp, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPClient: client, OnPingReceived: got.ping})
	if err != nil {
		leave()
		err = withoutQuery(err)
		if resp != nil && resp.Body != nil {
			err = errors.Join(err, resp.Body.Close())
		}
		return nil, fmt.Errorf("websocket: %w", err)
	}
	return conn, nil
}

// upgrade returns the transport of one websocket: HTTP/1.1, used once. leave is called when its connection is closed. A transport of its own is needed because only a
// dialer can tie a connection to ctx.
func (c *Client) upgrade(ctx context.Context, got *incoming, leave func()) *http.Transport {
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
		return bind(ctx, conn, got, leave), nil
	}
	return t
}

// incoming counts what a server has sent.
type incoming struct{ bytes, pings atomic.Int64 }

// ping counts a ping and reports whether it is answered.
func (r *incoming) ping(context.Context, []byte) bool { return r.pings.Add(1) <= maxPings }

// left returns how many bytes the server may still send.
func (r *incoming) left() int64 {
	if r.pings.Load() > maxPings {
		return 0
	}
	return maxReceived - r.bytes.Load()
}

// bound is a connection that is reset when its context ends, that sends nothing after the limit of its context, and that
// receives no more than its server may send.
type bound struct {
	net.Conn
	ctx   context.Context
	got   *incoming
	leave func() // gives back its place among those of its owner
	stop  func() bool
}

func bind(ctx context.Context, conn net.Conn, got *incoming, leave func()) *bound {
	b := &bound{Conn: conn, ctx: ctx, got: got, leave: leave}
	b.stop = context.AfterFunc(ctx, func() { reset(conn) })
	return b
}

// Read fails with ErrTooMuch once the server has sent more than it may.
func (b *bound) Read(p []byte) (int, error) {
	left := b.got.left()
	if left <= 0 {
		return 0, ErrTooMuch
	}
	n, err := b.Conn.Read(p[:min(int64(len(p)), left)])
	b.got.bytes.Add(int64(n))
	return n, err
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
	defer b.leave()
	b.stop()
	if b.ctx.Err() == nil {
		return b.Conn.Close()
	}
	reset(b.Conn)
	return nil
}
