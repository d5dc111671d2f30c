package nostr

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode"

	"github.com/coder/websocket"

	"crier/platform/outbound"
	"crier/publishing/connector"
)

// Prepare fixes the event and its signature. It calls nobody.
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

// Commit sends the event to every relay; one that has it is enough. Sending it again is harmless: the id is its hash.
func (c *Connector) Commit(ctx context.Context, s *connector.Session, item connector.Item) (connector.Ref, error) {
	who, err := open(s)
	if err != nil {
		return connector.Ref{}, err
	}
	e, err := who.prepared(item)
	if err != nil {
		return connector.Ref{}, asError(err)
	}
	answers := ask(ctx, who.relays, func(ctx context.Context, url string) answer {
		l, err := dial(ctx, s.Env, who, url)
		if err != nil {
			return answer{failure: unreached(url, err)}
		}
		defer l.close()
		return l.publish(ctx, e)
	}, func(a answer) bool { return a.accepted }, func(url string, err error) answer {
		return answer{failure: failure{host(url), connector.KindUnknown, "could not be followed", err}}
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
		return connector.Ref{}, gather("No relay has taken the note", failures)
	}
	return ref(e, have)
}

// Reconcile looks for the event. Only the word of every relay proves that it is nowhere.
func (c *Connector) Reconcile(ctx context.Context, s *connector.Session, item connector.Item) (connector.Verdict, error) {
	who, err := open(s)
	if err != nil {
		return connector.Verdict{}, err
	}
	e, err := who.prepared(item)
	if err != nil {
		return connector.Verdict{}, asError(err)
	}
	type word struct{ sure, has bool }
	words := ask(ctx, who.relays, func(ctx context.Context, url string) word {
		l, err := dial(ctx, s.Env, who, url)
		if err != nil {
			return word{}
		}
		defer l.close()
		found, err := l.query(ctx, map[string]any{"ids": []string{e.ID}, "limit": 1})
		for _, f := range found {
			if f.ID == e.ID { // what a relay forges proves neither that the event is there nor that it is not
				return word{sure: f.valid(), has: f.valid()}
			}
		}
		return word{sure: err == nil}
	}, func(w word) bool { return w.has }, func(string, error) word { return word{} })
	outcome := connector.NotPublished
	var have []string
	for i, w := range words {
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
	found, err := ref(e, have)
	return connector.Verdict{Outcome: connector.Published, Ref: found}, err
}

// failure is why one relay has not taken the event.
type failure struct {
	relay string // host
	kind  connector.Kind
	words string
	err   error
}

func unreached(relay string, err error) failure {
	// In the same words for an address that is not allowed, so that nobody learns which names of the private network exist.
	return failure{host(relay), connector.FromSend(err, false).Kind, "cannot be reached", err}
}

// unanswered is a relay that may have the event and whose verdict is missing.
func unanswered(relay string, err error) failure {
	words := "gave no answer"
	if errors.Is(err, outbound.ErrTooMuch) || errors.Is(err, websocket.ErrMessageTooBig) {
		words = "sends too much"
	}
	return failure{host(relay), connector.KindUnknown, words, err}
}

// refusal reads the machine-readable prefix of a refused event.
func refusal(relay, message string) failure {
	f := failure{relay: host(relay), kind: connector.KindContent, words: "answers: " + brief(message)}
	switch prefix(message) {
	case "error": // the relay failed, perhaps half-way
		f.kind = connector.KindUnknown
	case "rate-limited":
		f.kind = connector.KindTransient
	}
	return f
}

func prefix(message string) string {
	p, _, _ := strings.Cut(message, ":")
	return strings.TrimSpace(p)
}

// brief makes a relay's words fit for people and logs.
func brief(message string) string {
	printable := func(r rune) rune {
		if unicode.IsGraphic(r) || unicode.IsSpace(r) {
			return r
		}
		return -1
	}
	words := []rune(strings.Join(strings.Fields(strings.Map(printable, message)), " "))
	if len(words) > 200 {
		words = append(words[:199], '…')
	}
	return string(words)
}

// gather makes one error of all relays: unknown if any may have acted; else worth another try if any relay may change its mind or may not be called;
// else final. A relay that may not be called has the effect of one that is not there: see unreached.
func gather(what string, failures []failure) error {
	order := []connector.Kind{connector.KindContent, connector.KindOperator, connector.KindTransient, connector.KindUnknown}
	e := &connector.Error{}
	var words []string
	for _, f := range failures {
		words = append(words, f.relay+" "+f.words)
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
