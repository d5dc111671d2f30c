// Package relay is a Nostr relay on loopback for tests. It checks the events that clients publish,
// and fails on request.
package relay

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
)

const maxFrame = 4 << 20 // in bytes

// Fault is a failure in the response to one EVENT. Its fields take effect in the order of their
// declaration. The zero Fault is no failure.
type Fault struct {
	// Dial refuses the next handshake instead, with the status 503.
	Dial bool
	// Hold delays everything else until it is closed or the client leaves.
	Hold <-chan struct{}
	// Store stores the event before the following failures.
	Store bool
	// Alien first responds with OK true for the id of another event.
	Alien bool
	// Cut responds with half an OK and then drops the connection.
	Cut bool
	// Drop drops the connection without an OK.
	Drop bool
	// Flood is sent repeatedly until the client leaves, without an OK; "" is off.
	Flood string
	// Refuse responds with OK false and this message; "" is off.
	Refuse string
}

// Lie says how a relay forges the events that it returns for a REQ.
type Lie string

// The kinds of forgery.
const (
	Honest       Lie = ""
	BadSignature Lie = "bad signature" // well-formed, but matches no key
	OtherContent Lie = "other content" // with the event's id and signature
)

// forge returns the forged event.
func (l Lie) forge(e Event) Event {
	switch l {
	case BadSignature:
		last := len(e.Sig) - 1
		digit := "0"
		if e.Sig[last:] == digit {
			digit = "1"
		}
		e.Sig = e.Sig[:last] + digit
	case OtherContent:
		e.Content += " (forged)"
	}
	return e
}

// Relay is a relay that stores events in memory. It is safe for concurrent use.
type Relay struct {
	addr   string
	server *httptest.Server

	mu       sync.Mutex
	events   []Event
	received int
	fault    *Fault
	deaf     bool
	lie      Lie
	members  bool
}

// Start runs a relay until the test ends.
func Start(t *testing.T) *Relay {
	t.Helper()
	r := &Relay{}
	r.server = httptest.NewServer(r)
	r.addr = r.server.Listener.Addr().String()
	t.Cleanup(r.Stop)
	return r
}

// Stop makes the relay unreachable. What it stores stays readable.
func (r *Relay) Stop() {
	r.server.CloseClientConnections()
	r.server.Close()
}

// Addr returns the relay's host:port.
func (r *Relay) Addr() string { return r.addr }

// URL returns the address that clients dial.
func (r *Relay) URL() string { return "ws://" + r.addr }

// Events returns the stored events in the order of arrival.
func (r *Relay) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Received returns the number of EVENT messages that arrived, whether accepted or not.
func (r *Relay) Received() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.received
}

// Arm makes the next EVENT, or the next handshake, fail once.
func (r *Relay) Arm(f Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = &f
}

// Deafen makes the relay drop the connection on every REQ, until it is called with false.
func (r *Relay) Deafen(deaf bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deaf = deaf
}

// Lie makes the relay forge every event that it returns for a REQ, until it is called with Honest.
func (r *Relay) Lie(l Lie) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lie = l
}

// MembersOnly requires NIP-42 authentication on every connection, until it is called with false.
func (r *Relay) MembersOnly(members bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.members = members
}

// take removes and returns the armed fault if it applies to this step.
func (r *Relay) take(dialing bool) Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !dialing {
		r.received++
	}
	if r.fault == nil || r.fault.Dial != dialing {
		return Fault{}
	}
	f := *r.fault
	r.fault = nil
	return f
}

// store stores an event and reports whether it was already stored.
func (r *Relay) store(e Event) (known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.events, func(old Event) bool { return old.ID == e.ID }) {
		return true
	}
	r.events = append(r.events, e)
	return false
}

// find returns the matching events, newest first, as NIP-01 requires.
func (r *Relay) find(filters []Filter) []Event {
	var out []Event
	for _, f := range filters {
		left := len(r.Events())
		if f.Limit != nil {
			left = *f.Limit
		}
		for _, e := range slices.Backward(r.Events()) {
			if left > 0 && f.matches(e) && !slices.ContainsFunc(out, func(o Event) bool { return o.ID == e.ID }) {
				out, left = append(out, e), left-1
			}
		}
	}
	return out
}

// ServeHTTP serves one WebSocket connection.
func (r *Relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if r.take(true).Dial {
		http.Error(w, "closed", http.StatusServiceUnavailable)
		return
	}
	conn, err := websocket.Accept(w, req, nil)
	if err != nil {
		return // Accept has responded
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(maxFrame)
	c := &client{relay: r, conn: conn, challenge: "challenge of " + req.RemoteAddr}
	if r.exclusive() {
		c.send(req.Context(), "AUTH", c.challenge)
	}
	for {
		_, raw, err := conn.Read(req.Context())
		if err != nil || !c.handle(req.Context(), raw) {
			return
		}
	}
}

func (r *Relay) exclusive() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.members
}

// client is one connection. challenge is sent when it opens. member is true after a valid AUTH
// event for the challenge.
type client struct {
	relay     *Relay
	conn      *websocket.Conn
	challenge string
	member    bool
}

// send sends a message. The next read detects that a client has left.
func (c *client) send(ctx context.Context, message ...any) {
	raw, err := json.Marshal(message)
	if err != nil {
		return
	}
	_ = c.conn.Write(ctx, websocket.MessageText, raw)
}

// handle handles one message. It returns false to drop the connection.
func (c *client) handle(ctx context.Context, raw []byte) bool {
	var parts []json.RawMessage
	var label string
	if json.Unmarshal(raw, &parts) != nil || len(parts) < 2 || json.Unmarshal(parts[0], &label) != nil {
		c.send(ctx, "NOTICE", "not a message")
		return true
	}
	switch label {
	case "EVENT":
		return c.event(ctx, parts[1])
	case "REQ":
		return c.request(ctx, parts[1], parts[2:])
	case "AUTH":
		c.auth(ctx, parts[1])
	case "CLOSE": // subscriptions end with the stored events anyway
	default:
		c.send(ctx, "NOTICE", "unknown message "+label)
	}
	return true
}

func (c *client) event(ctx context.Context, raw json.RawMessage) bool {
	var e Event
	if err := json.Unmarshal(raw, &e); err != nil {
		c.send(ctx, "NOTICE", "not an event")
		return true
	}
	if c.relay.exclusive() && !c.member {
		c.send(ctx, "OK", e.ID, false, "auth-required: members only")
		return true
	}
	f := c.relay.take(false)
	if f.Hold != nil {
		gone := c.conn.CloseRead(ctx) // its context ends when the client leaves
		select {
		case <-f.Hold:
		case <-gone.Done():
		}
		if gone.Err() != nil {
			return false
		}
	}
	if fault := e.Check(); fault != "" {
		c.send(ctx, "OK", e.ID, false, "invalid: "+fault)
		return true
	}
	if f.Store {
		c.relay.store(e)
	}
	if f.Alien {
		c.send(ctx, "OK", strings.Repeat("0", len(e.ID)), true, "")
	}
	switch {
	case f.Cut:
		_ = c.conn.Write(ctx, websocket.MessageText, []byte(`["OK","`+e.ID[:32]))
		return false
	case f.Drop:
		return false
	case f.Flood != "":
		for c.conn.Write(ctx, websocket.MessageText, []byte(f.Flood)) == nil {
		}
		return false
	case f.Refuse != "":
		c.send(ctx, "OK", e.ID, false, f.Refuse)
	case c.relay.store(e):
		c.send(ctx, "OK", e.ID, true, "duplicate: already have this event")
	default:
		c.send(ctx, "OK", e.ID, true, "")
	}
	return f.Hold == nil // after Hold, CloseRead does the reading
}

func (c *client) request(ctx context.Context, name json.RawMessage, raw []json.RawMessage) bool {
	c.relay.mu.Lock()
	deaf, lie := c.relay.deaf, c.relay.lie
	c.relay.mu.Unlock()
	if deaf {
		return false
	}
	if c.relay.exclusive() && !c.member {
		c.send(ctx, "CLOSED", name, "auth-required: members only")
		return true
	}
	filters := make([]Filter, len(raw))
	for i := range raw {
		if json.Unmarshal(raw[i], &filters[i]) != nil {
			c.send(ctx, "CLOSED", name, "invalid: not a filter")
			return true
		}
	}
	for _, e := range c.relay.find(filters) {
		c.send(ctx, "EVENT", name, lie.forge(e))
	}
	c.send(ctx, "EOSE", name)
	return true
}

func (c *client) auth(ctx context.Context, raw json.RawMessage) {
	var e Event
	if json.Unmarshal(raw, &e) != nil {
		c.send(ctx, "NOTICE", "not an event")
		return
	}
	c.member = e.Check() == "" && e.Kind == 22242 && e.Tag("challenge") == c.challenge &&
		strings.TrimSuffix(e.Tag("relay"), "/") == c.relay.URL()
	message := ""
	if !c.member {
		message = "invalid: not an answer to the challenge"
	}
	c.send(ctx, "OK", e.ID, c.member, message)
}
