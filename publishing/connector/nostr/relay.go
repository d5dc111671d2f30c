package nostr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/coder/websocket"

	"crier/platform/outbound"
	"crier/publishing/connector"
)

const (
	patience    = 20 * time.Second // with all relays together
	grace       = 3 * time.Second  // for the other relays once one is enough
	maxAnswer   = 64 << 10         // bytes of a message that is no event
	maxFrame    = 2 << 20          // bytes of a message with an event: the longest note, escaped
	maxMessages = 1000             // of one connection
	maxEvents   = 10               // of one answer; we ask for one
)

var errRefused = errors.New("the relay refuses the question")

// ask asks all relays at once and returns their answers in order. It ends early once one answer is enough and the
// others had their grace. A panic in one becomes the answer that failed makes of it, and costs only that relay.
func ask[T any](ctx context.Context, relays []string, one func(context.Context, string) T, enough func(T) bool,
	failed func(url string, err error) T) []T {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	type numbered struct {
		i int
		v T
	}
	answers := make(chan numbered)
	safely := func(url string) (answer T) {
		defer func() {
			if v := recover(); v != nil {
				answer = failed(url, connector.Recovered(v))
			}
		}()
		return one(ctx, url)
	}
	for i, url := range relays {
		go func() { answers <- numbered{i, safely(url)} }()
	}
	out := make([]T, len(relays))
	hurried := false
	for range relays {
		a := <-answers
		out[a.i] = a.v
		if !hurried && enough(a.v) {
			hurried = true
			defer time.AfterFunc(grace, cancel).Stop()
		}
	}
	return out
}

// line is an open connection to one relay.
type line struct {
	conn      *websocket.Conn
	cut       context.CancelFunc // resets the connection, unless it is closed already
	pending   bool               // an event was sent whose verdict has not come
	url       string
	who       signer
	env       connector.Env
	messages  int    // received
	challenge string // the last one, NIP-42
	known     bool   // we have answered a challenge
}

// dial opens a line. It is reset when ctx ends, so that nothing of it goes out after that.
func dial(ctx context.Context, env connector.Env, who signer, url string) (*line, error) {
	ctx, cut := context.WithCancel(ctx)
	conn, err := env.HTTP.Websocket(ctx, url)
	if err != nil {
		cut()
		return nil, err
	}
	conn.SetReadLimit(maxAnswer)
	return &line{conn: conn, cut: cut, url: url, who: who, env: env}, nil
}

// close hangs up. While a verdict is missing it resets the connection, so that the kernel sends nothing of the event
// later. There is nothing left to say in either case, so a failure means nothing.
func (l *line) close() {
	if l.pending {
		l.cut()
	}
	_ = l.conn.CloseNow()
	l.cut()
}

func (l *line) send(ctx context.Context, message ...any) error {
	raw, err := encode(message)
	if err != nil {
		return err
	}
	return l.conn.Write(ctx, websocket.MessageText, raw)
}

// next returns the next message whose label means something to us; it keeps challenges and passes over the rest. The error
// is one of the connection, or outbound.ErrTooMuch after maxMessages.
func (l *line) next(ctx context.Context) (label string, rest []json.RawMessage, err error) {
	for {
		if l.messages++; l.messages > maxMessages {
			return "", nil, outbound.ErrTooMuch
		}
		_, r, err := l.conn.Reader(ctx)
		if err != nil {
			return "", nil, err
		}
		label, rest, shape := frame(r)
		if _, err := io.Copy(io.Discard, r); err != nil { // the next message is behind all of this one
			return "", nil, err
		}
		switch {
		case shape != nil:
		case label != "AUTH":
			return label, rest, nil
		case text(rest[0]) != "":
			l.challenge = text(rest[0])
		}
	}
}

// text reads a JSON string; "" for anything else.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// answer is what one relay did with the event.
type answer struct {
	accepted bool
	failure  failure
}

// publish sends the event and waits for the verdict; a relay that wants to know us is told once.
func (l *line) publish(ctx context.Context, e event) answer {
	ok, message, err := l.submit(ctx, "EVENT", e)
	if err == nil && !ok && prefix(message) == "auth-required" && l.introduce(ctx) {
		ok, message, err = l.submit(ctx, "EVENT", e)
	}
	switch {
	case err != nil:
		return answer{failure: unanswered(l.url, err)}
	case ok || prefix(message) == "duplicate":
		return answer{accepted: true}
	}
	return answer{failure: refusal(l.url, message)}
}

// submit sends an event and waits for its OK. After an error the relay may have it.
func (l *line) submit(ctx context.Context, label string, e event) (ok bool, message string, err error) {
	l.pending = true
	if err := l.send(ctx, label, e); err != nil {
		return false, "", err
	}
	for {
		label, rest, err := l.next(ctx)
		if err != nil {
			return false, "", err
		}
		if label != "OK" || len(rest) < 2 || text(rest[0]) != e.ID || json.Unmarshal(rest[1], &ok) != nil {
			continue
		}
		if len(rest) > 2 {
			message = text(rest[2])
		}
		l.pending = false
		return ok, message, nil
	}
}

// introduce answers the relay's challenge, once.
func (l *line) introduce(ctx context.Context) bool {
	if l.challenge == "" || l.known {
		return false
	}
	l.known = true
	e := event{
		CreatedAt: l.env.Clock.Now().Unix(), Kind: kindAuth,
		Tags: [][]string{{"relay", l.url}, {"challenge", l.challenge}},
	}
	e, err := e.signed(l.who.key)
	if err != nil {
		return false
	}
	ok, _, err := l.submit(ctx, "AUTH", e)
	return err == nil && ok
}

// query reads what the relay has stored; without an error that is all it has.
func (l *line) query(ctx context.Context, filter map[string]any) ([]event, error) {
	const name = "q"
	l.conn.SetReadLimit(maxFrame)
	if err := l.send(ctx, "REQ", name, filter); err != nil {
		return nil, err
	}
	var found []event
	for {
		label, rest, err := l.next(ctx)
		if err != nil {
			return found, err
		}
		if text(rest[0]) != name {
			continue
		}
		switch label {
		case "EVENT":
			var e event
			if len(rest) < 2 || json.Unmarshal(rest[1], &e) != nil {
				continue
			}
			if found = append(found, e); len(found) >= maxEvents {
				return found, fmt.Errorf("%w: %d events for one", outbound.ErrTooMuch, maxEvents)
			}
		case "EOSE":
			return found, nil
		case "CLOSED":
			if len(rest) > 1 && prefix(text(rest[1])) == "auth-required" && l.introduce(ctx) {
				return l.query(ctx, filter) // once: introduce says no the second time
			}
			return found, errRefused
		}
	}
}

// asError keeps our own errors and calls every other one a fault of ours: it came before anything was sent.
func asError(err error) error {
	var e *connector.Error
	if errors.As(err, &e) {
		return err
	}
	return &connector.Error{Kind: connector.KindOperator, Public: "The note could not be made.", Err: err}
}
