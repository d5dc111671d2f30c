package nostr

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/coder/websocket"

	"crier/platform/outbound"
	"crier/platform/text"
	"crier/publishing/connector"
)

// Prepare builds and signs the event without making network calls. It returns an error if the
// credential cannot be decoded or if the event cannot be built.
func (c *Connector) Prepare(_ context.Context, s *connector.Session, item connector.Item) (connector.Step, error) {
	if item.Handle != nil {
		return connector.Step{Ready: true, Handle: item.Handle}, nil
	}
	who, err := open(s)
	if err != nil {
		return connector.Step{}, err
	}
	raw, err := who.prepare(item)
	if err != nil {
		return connector.Step{}, asError(err)
	}
	return connector.Step{Ready: true, Handle: raw}, nil
}

// Commit sends the event to every relay. It succeeds if at least one relay accepts the event. A
// second Commit is harmless, because it sends an event with the same ID.
//
// If no relay accepts the event, Commit returns an error that combines the failures of all relays.
// The error is KindUnknown if any relay may have the event.
func (c *Connector) Commit(ctx context.Context, s *connector.Session, item connector.Item) (connector.Ref, error) {
	who, err := open(s)
	if err != nil {
		return connector.Ref{}, err
	}
	e, err := who.prepared(item)
	if err != nil {
		return connector.Ref{}, asError(err)
	}
	answers := askAll(ctx, who.relays, func(ctx context.Context, url string) answer {
		l, err := dial(ctx, s.Env, who, url)
		if err != nil {
			return answer{failure: unreached(url, err)}
		}
		defer l.close()
		return l.publish(ctx, e)
	}, func(a answer) bool { return a.accepted }, func(url string, err error) answer {
		return answer{failure: failure{
			relay: host(url), kind: connector.KindUnknown, reason: "could not be tracked", err: err,
		}}
	})
	var have []string
	var failures []failure
	for i, a := range answers {
		if a.accepted {
			have = append(have, who.relays[i])
		} else {
			failures = append(failures, a.failure)
		}
	}
	if len(have) == 0 {
		return connector.Ref{}, combine("No relay accepted the note", failures)
	}
	return ref(e, have)
}

// Reconcile queries every relay for the event. It returns NotPublished only if every relay responds
// that it does not have the event. If no relay is known to have the event and at least one query
// fails, Reconcile returns CannotTell and no error.
func (c *Connector) Reconcile(
	ctx context.Context, s *connector.Session, item connector.Item,
) (connector.Verdict, error) {
	who, err := open(s)
	if err != nil {
		return connector.Verdict{}, err
	}
	e, err := who.prepared(item)
	if err != nil {
		return connector.Verdict{}, asError(err)
	}
	type found struct{ sure, has bool }
	results := askAll(ctx, who.relays, func(ctx context.Context, url string) found {
		l, err := dial(ctx, s.Env, who, url)
		if err != nil {
			return found{}
		}
		defer l.close()
		events, err := l.query(ctx, map[string]any{"ids": []string{e.ID}, "limit": 1})
		for _, f := range events {
			// a forged event does not prove whether the relay has ours
			if f.ID == e.ID {
				return found{sure: f.valid(), has: f.valid()}
			}
		}
		return found{sure: err == nil}
	}, func(w found) bool { return w.has }, func(string, error) found { return found{} })
	outcome := connector.NotPublished
	var have []string
	for i, w := range results {
		if w.has {
			have = append(have, who.relays[i])
		}
		if !w.sure {
			outcome = connector.CannotTell
		}
	}
	if len(have) == 0 {
		return connector.Verdict{Outcome: outcome}, nil
	}
	published, err := ref(e, have)
	return connector.Verdict{Outcome: connector.Published, Ref: published}, err
}

// failure describes why one relay did not accept the event.
type failure struct {
	relay  string // host
	kind   connector.Kind
	reason string
	err    error
}

// unreached returns the failure for a relay that cannot be reached. A blocked host gets the same
// message as any other host, to keep users from probing host names on the private network. Only a
// blocked port is mentioned.
func unreached(relay string, err error) failure {
	kind, reason := connector.FromSend(err, false).Kind, "cannot be reached"
	if errors.Is(err, outbound.ErrPort) {
		reason = "uses a port other than 80 and 443, which are the only ones that can be reached"
	}
	return failure{relay: host(relay), kind: kind, reason: reason, err: err}
}

// unanswered returns the failure for a relay that may have the event but did not respond with a
// verdict.
func unanswered(relay string, err error) failure {
	words := "did not answer"
	if errors.Is(err, outbound.ErrTooMuch) || errors.Is(err, websocket.ErrMessageTooBig) {
		words = "sent too much"
	}
	return failure{relay: host(relay), kind: connector.KindUnknown, reason: words, err: err}
}

// refusal returns the failure for a relay that rejected the event. It determines the kind from the
// machine-readable prefix of the relay's message.
func refusal(relay, message string) failure {
	f := failure{relay: host(relay), kind: connector.KindContent, reason: "answered: " + cleanReason(message)}
	switch reasonPrefix(message) {
	case "error": // the relay may have stored the event before it failed
		f.kind = connector.KindUnknown
	case "rate-limited":
		f.kind = connector.KindTransient
	}
	return f
}

func reasonPrefix(message string) string {
	p, _, _ := strings.Cut(message, ":")
	return strings.TrimSpace(p)
}

// cleanReason returns a relay's message as one line of at most 200 characters, without invisible
// characters.
func cleanReason(message string) string {
	return text.Shorten(text.Line(message, len(message)), 200)
}

// combine returns one error for all relays. The error is KindUnknown if any relay may have the
// event. Otherwise, it is KindTransient if any relay may accept the event later. If neither
// applies, it is KindOperator if any relay is blocked, and KindContent otherwise.
func combine(what string, failures []failure) error {
	order := []connector.Kind{
		connector.KindContent, connector.KindOperator, connector.KindTransient, connector.KindUnknown,
	}
	e := &connector.Error{}
	var words []string
	for _, f := range failures {
		words = append(words, f.relay+" "+f.reason)
		if e.Kind == "" || slices.Index(order, f.kind) > slices.Index(order, e.Kind) {
			e.Kind, e.Err = f.kind, f.err
		}
	}
	if e.Kind == connector.KindUnknown {
		what = "No relay has confirmed the note"
	}
	e.Public = what + ": " + strings.Join(words[:min(len(words), 3)], "; ") + "."
	e.Raw = strings.Join(words, "; ")
	return e
}
