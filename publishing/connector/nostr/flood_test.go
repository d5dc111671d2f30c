package nostr

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"crier/platform/outbound"
	"crier/publishing/connector"
	"crier/tests/relay"
)

// floods returns messages that a relay sends over and over instead of an OK.
func floods() map[string]string {
	return map[string]string{
		"small notices": `["NOTICE","hello"]`,
		"alien answers": `["OK","` + strings.Repeat("0", 64) + `",true,""]`,
		"large notices": `["NOTICE","` + strings.Repeat("x", maxAnswer/2) + `"]`,
		"a bomb":        bomb("NOTICE"),
	}
}

// After too many bytes or messages, the connection is closed. The outcome is unknown, because the
// relay has the event.
func TestCommit_RelayThatSendsTooMuchIsUnknown(t *testing.T) {
	t.Parallel()
	for name, message := range floods() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := relay.Start(t)
			s := session(t, r)
			it := prepared(t, s, item("hello"))
			r.Arm(relay.Fault{Store: true, Flood: message})
			_, err := New().Commit(t.Context(), s, it)
			if e := wantKind(t, err, connector.KindUnknown); !strings.Contains(e.Public, "sent too much") {
				t.Errorf("got the public text %q, want that the relay sent too much", e.Public)
			}
			wantOutcome(t, s, it, connector.Published)
		})
	}
}

func TestCommit_HonestRelayCountsDespiteFlood(t *testing.T) {
	t.Parallel()
	for name, message := range floods() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			noisy, honest := relay.Start(t), relay.Start(t)
			s := session(t, noisy, honest)
			noisy.Arm(relay.Fault{Flood: message})
			ref := commit(t, s, prepared(t, s, item("hello")))
			if at := parseRef(ref, ""); !slices.Equal(at.Relays, []string{honest.URL()}) {
				t.Errorf("got the relays %q, want only %s", at.Relays, honest.URL())
			}
		})
	}
}

func TestSubmit_EndsAfterManyMessages(t *testing.T) {
	t.Parallel()
	r := relay.Start(t)
	key, err := parseKey(nsec)
	if err != nil {
		t.Fatal(err)
	}
	e, err := event{Kind: kindNote, Tags: tags{}}.signed(key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := dial(t.Context(), envFor(t, r), signer{key: key, pub: e.PubKey}, r.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	r.Arm(relay.Fault{Flood: `["NOTICE","hello"]`})
	_, _, err = l.submit(t.Context(), "EVENT", e)
	if !errors.Is(err, outbound.ErrTooMuch) || l.messages != maxMessages+1 {
		t.Errorf("got %v at message %d, want ErrTooMuch at message %d", err, l.messages, maxMessages+1)
	}
}

// A message that contains an event may be larger than any response to one.
func TestReconcile_FindsLongestNote(t *testing.T) {
	t.Parallel()
	r := relay.Start(t)
	s := session(t, r)
	it := prepared(t, s, item(strings.Repeat("😀", maxLength)))
	commit(t, s, it)
	wantOutcome(t, s, it, connector.Published)
}
