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
	askTimeout  = 20 * time.Second // for all relays together
	grace       = 3 * time.Second  // for the other relays, once one result is enough
	maxAnswer   = 64 << 10         // bytes of a message without an event
	maxFrame    = 2 << 20          // bytes of a message with an event: the longest note, escaped
	maxMessages = 1000             // on one connection
	maxEvents   = 10               // per response; queries request one
)

var errRefused = errors.New("the relay refused the query")

// askAll queries all relays concurrently and returns the results in the order of relays. The
// function one queries a single relay. Once enough returns true for any result, the remaining calls
// get a grace period, after which their context is canceled. If a call panics, askAll uses the
// value returned by failed as that call's result. A panic does not affect the other calls.
func askAll[T any](ctx context.Context, relays []string, one func(context.Context, string) T, enough func(T) bool,
	failed func(url string, err error) T) []T {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
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
		go func() { answers <- numbered{i: i, v: safely(url)} }()
	}
	out := make([]T, len(relays))
	ending := false
	for range relays {
		a := <-answers
		out[a.i] = a.v
		if !ending && enough(a.v) {
			ending = true
			defer time.AfterFunc(grace, cancel).Stop()
		}
	}
	return out
}

// line is an open connection to one relay. It is not safe for concurrent use.
type line struct {
	conn          *websocket.Conn
	reset         context.CancelFunc // resets the connection if it is open
	pending       bool               // an event was sent and its verdict has not arrived
	url           string
	who           signer
	env           connector.Env
	messages      int    // received so far
	challenge     string // the last one received (NIP-42)
	authenticated bool   // a challenge was answered
}

// dial connects to a relay. When ctx is done, the connection is reset, so that nothing more is
// sent.
func dial(ctx context.Context, env connector.Env, who signer, url string) (*line, error) {
	ctx, reset := context.WithCancel(ctx)
	conn, err := env.HTTP.Websocket(ctx, url)
	if err != nil {
		reset()
		return nil, err
	}
	conn.SetReadLimit(maxAnswer)
	return &line{conn: conn, reset: reset, url: url, who: who, env: env}, nil
}

// close closes the connection. If the relay has not responded to an event yet, close resets the
// connection instead, to keep the kernel from sending the rest of the event. Errors are ignored,
// because the connection is no longer needed.
func (l *line) close() {
	if l.pending {
		l.reset()
	}
	_ = l.conn.CloseNow()
	l.reset()
}

func (l *line) send(ctx context.Context, message ...any) error {
	raw, err := encode(message)
	if err != nil {
		return err
	}
	return l.conn.Write(ctx, websocket.MessageText, raw)
}

// next returns the next message with a known label. It stores authentication challenges and skips
// other messages. It returns any connection error, and outbound.ErrTooMuch after maxMessages
// messages.
func (l *line) next(ctx context.Context) (label string, rest []json.RawMessage, err error) {
	for {
		l.messages++
		if l.messages > maxMessages {
			return "", nil, outbound.ErrTooMuch
		}
		_, r, err := l.conn.Reader(ctx)
		if err != nil {
			return "", nil, err
		}
		label, rest, shape := frame(r)
		if _, err := io.Copy(io.Discard, r); err != nil { // the next message begins after this one
			return "", nil, err
		}
		switch {
		case shape != nil:
		case label != "AUTH":
			return label, rest, nil
		case jsonString(rest[0]) != "":
			l.challenge = jsonString(rest[0])
		}
	}
}

// jsonString returns the value of a JSON string, or "" for any other value.
func jsonString(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// answer is the result of sending the event to one relay. failure is set only if accepted is false.
type answer struct {
	accepted bool
	failure  failure
}

// publish sends the event and waits for the relay's verdict. If the relay requires authentication,
// publish authenticates and sends the event again.
func (l *line) publish(ctx context.Context, e event) answer {
	ok, message, err := l.submit(ctx, "EVENT", e)
	if err != nil {
		return answer{failure: unanswered(l.url, err)}
	}
	if !ok && reasonPrefix(message) == "auth-required" && l.authenticate(ctx) {
		ok, message, err = l.submit(ctx, "EVENT", e)
		if err != nil {
			return answer{failure: unanswered(l.url, err)}
		}
	}
	if ok || reasonPrefix(message) == "duplicate" {
		return answer{accepted: true}
	}
	return answer{failure: refusal(l.url, message)}
}

// submit sends an event and waits for the relay's OK message. If submit returns an error, the relay
// may still have received the event.
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
		if label != "OK" || len(rest) < 2 || jsonString(rest[0]) != e.ID || json.Unmarshal(rest[1], &ok) != nil {
			continue
		}
		if len(rest) > 2 {
			message = jsonString(rest[2])
		}
		l.pending = false
		return ok, message, nil
	}
}

// authenticate responds to the relay's challenge (NIP-42) and returns true if the relay accepts the
// response. It tries only once per connection.
func (l *line) authenticate(ctx context.Context) bool {
	if l.challenge == "" || l.authenticated {
		return false
	}
	l.authenticated = true
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

// query returns the stored events that match the filter. If it returns no error, the relay has no
// other matching events.
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
		if jsonString(rest[0]) != name {
			continue
		}
		switch label {
		case "EVENT":
			var e event
			if len(rest) < 2 || json.Unmarshal(rest[1], &e) != nil {
				continue
			}
			found = append(found, e)
			if len(found) >= maxEvents {
				return found, fmt.Errorf("%w: %d events instead of one", outbound.ErrTooMuch, maxEvents)
			}
		case "EOSE":
			return found, nil
		case "CLOSED":
			if len(rest) > 1 && reasonPrefix(jsonString(rest[1])) == "auth-required" && l.authenticate(ctx) {
				return l.query(ctx, filter) // once: authenticate fails the second time
			}
			return found, errRefused
		}
	}
}

// asError returns a *connector.Error unchanged. It wraps any other error as KindOperator, because
// nothing has been sent yet.
func asError(err error) error {
	var e *connector.Error
	if errors.As(err, &e) {
		return err
	}
	return &connector.Error{Kind: connector.KindOperator, Public: "The note could not be created.", Err: err}
}
