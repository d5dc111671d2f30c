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

// maxWebsockets is how many websockets one owner may have open in this process. It is twice the
// number needed for a post that is sent to the maximum number of relays.
const maxWebsockets = 40

type ownerKey struct{}

// WithOwner returns a context that names the owner of the websockets opened with it, such as an
// organization. Websockets without an owner share one limit.
func WithOwner(ctx context.Context, owner string) context.Context {
	return context.WithValue(ctx, ownerKey{}, owner)
}

// Owner returns the owner set by WithOwner, or "" if there is none.
func Owner(ctx context.Context) string {
	owner, _ := ctx.Value(ownerKey{}).(string)
	return owner
}

// These limits apply to what a server may send over one websocket. maxReceived is in bytes and
// includes the handshake and TLS.
const (
	maxReceived = 4 << 20
	maxPings    = 100
)

// ErrTooMuch is returned by reads from a websocket whose server has sent more than the limits
// allow. The caller must close the websocket.
var ErrTooMuch = errors.New("the server sent too much")

// DialWebsocket opens a websocket through the guard, over a new connection. It follows no
// redirects.
//
// The context limits the connection's lifetime, not only the handshake. When the context ends, the
// connection is reset and the kernel drops unsent data. For a graceful close, close the websocket
// before the context ends. Nothing is sent after the limit set with WithLimit.
//
// Reads return ErrTooMuch after 4 MB or 100 pings from the server. An owner (see WithOwner) can
// have at most 40 websockets open at once. A further call waits until one is closed or ctx ends.
// Errors contain the URL without the query, which may include a token.
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

// upgrade returns an HTTP/1.1 transport for one websocket. leave is called when the connection is
// closed. Each websocket has its own transport, because only a transport's dialer can tie a
// connection to ctx.
func (c *Client) upgrade(ctx context.Context, got *incoming, leave func()) *http.Transport {
	t := newTransport(c.readGuard)
	t.TLSClientConfig = c.tls.Clone()
	t.DisableKeepAlives = true
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.DialContext = func(dial context.Context, network, addr string) (net.Conn, error) {
		conn, err := c.readGuard.dial(dial, network, addr)
		if err != nil {
			return nil, err
		}
		return newWebsocketConn(ctx, conn, got, leave), nil
	}
	return t
}

// incoming counts what the server has sent on one websocket. The connection counts the bytes, and
// the websocket library's callback counts the pings.
type incoming struct{ bytes, pings atomic.Int64 }

// ping is called for every ping. If it returns true, the websocket library replies with a pong.
func (r *incoming) ping(context.Context, []byte) bool { return r.pings.Add(1) <= maxPings }

// left returns how many bytes the server may still send. It returns 0 after too many pings.
func (r *incoming) left() int64 {
	if r.pings.Load() > maxPings {
		return 0
	}
	return maxReceived - r.bytes.Load()
}

// websocketConn is the connection of one websocket. It is reset when its context ends, sends
// nothing after the context's limit, and receives at most maxReceived bytes.
type websocketConn struct {
	net.Conn
	ctx   context.Context
	got   *incoming
	leave func() // frees the owner's slot
	stop  func() bool
}

func newWebsocketConn(ctx context.Context, conn net.Conn, got *incoming, leave func()) *websocketConn {
	b := &websocketConn{Conn: conn, ctx: ctx, got: got, leave: leave}
	b.stop = context.AfterFunc(ctx, func() { reset(conn) })
	return b
}

// Read returns ErrTooMuch once the server has sent more than the limits allow.
func (b *websocketConn) Read(p []byte) (int, error) {
	left := b.got.left()
	if left <= 0 {
		return 0, ErrTooMuch
	}
	n, err := b.Conn.Read(p[:min(int64(len(p)), left)])
	b.got.bytes.Add(int64(n))
	return n, err
}

// Write returns ErrTooLate after the context's limit. Time during which the machine is suspended
// counts toward the limit.
func (b *websocketConn) Write(p []byte) (int, error) {
	if left, ok := Left(b.ctx); ok && left <= 0 {
		return 0, ErrTooLate
	}
	return b.Conn.Write(p)
}

// Close closes the connection gracefully, or resets it if its context has ended.
func (b *websocketConn) Close() error {
	defer b.leave()
	b.stop()
	if b.ctx.Err() == nil {
		return b.Conn.Close()
	}
	reset(b.Conn)
	return nil
}
