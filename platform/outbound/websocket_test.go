package outbound

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// flooded dials a server that calls send on its websocket until send fails, and reads until reading
// fails. It returns the number of bytes read and the error.
func flooded(t *testing.T, send func(context.Context, *websocket.Conn) error) (int, error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		conn, err := websocket.Accept(w, req, nil)
		if err != nil {
			return // Accept has responded
		}
		ctx := conn.CloseRead(req.Context())
		for send(ctx, conn) == nil {
		}
		_ = conn.CloseNow() // the client has left
	}))
	t.Cleanup(server.Close)
	addr := server.Listener.Addr().String()
	conn, err := newClient(t, Deps{}, addr).DialWebsocket(t.Context(), "ws://"+addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.CloseNow() }() // the test is over
	total := 0
	for {
		_, raw, err := conn.Read(t.Context())
		if err != nil {
			return total, err
		}
		total += len(raw)
	}
}

func TestDialWebsocket_LimitsBytes(t *testing.T) {
	t.Parallel()
	message := make([]byte, 30_000)
	n, err := flooded(t, func(ctx context.Context, conn *websocket.Conn) error {
		return conn.Write(ctx, websocket.MessageBinary, message)
	})
	if !errors.Is(err, ErrTooMuch) || n > maxReceived || n < maxReceived/2 {
		t.Errorf("after %d bytes reading fails with %v, want ErrTooMuch near %d", n, err, maxReceived)
	}
}

func TestDialWebsocket_LimitsPings(t *testing.T) {
	t.Parallel()
	_, err := flooded(t, func(ctx context.Context, conn *websocket.Conn) error {
		return conn.Ping(ctx)
	})
	if !errors.Is(err, ErrTooMuch) {
		t.Errorf("reading fails with %v, want ErrTooMuch", err)
	}
}

func TestDialWebsocket_LimitsWebsocketsOfOwner(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/closed" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if conn, _ := websocket.Accept(w, req, nil); conn != nil {
			<-conn.CloseRead(req.Context()).Done()
		}
	}))
	t.Cleanup(server.Close)
	addr := server.Listener.Addr().String()
	c := newClient(t, Deps{}, addr)
	dial := func(ctx context.Context, path string) (*websocket.Conn, error) {
		return c.DialWebsocket(ctx, "ws://"+addr+path)
	}
	ann := WithOwner(t.Context(), "ann")
	var open []*websocket.Conn
	for range maxWebsockets {
		conn, err := dial(ann, "/")
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
	}
	short, cancel := context.WithTimeout(ann, 50*time.Millisecond)
	defer cancel()
	if _, err := dial(short, "/"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one more of the owner: got %v, want a wait until the deadline", err)
	}
	bob, err := dial(WithOwner(t.Context(), "bob"), "/")
	if err != nil {
		t.Fatalf("another owner: got %v, want a websocket", err)
	}
	for _, conn := range append(open, bob) {
		_ = conn.CloseNow() // frees the place even if it fails
	}
	for range maxWebsockets + 1 {
		if _, err := dial(ann, "/closed"); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a refused handshake: got %v, want an error at once", err)
		}
	}
	leave, err := c.websockets.Take(t.Context(), "ann", maxWebsockets)
	if err != nil {
		t.Fatalf("all places of the owner: got %v, want them free", err)
	}
	leave()
}
