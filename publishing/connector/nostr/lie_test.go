package nostr

import (
	"testing"

	"github.com/btcsuite/btcd/btcutil/bech32"

	"crier/publishing/connector"
	"crier/tests/relay"
)

// A relay may send anything with our id. Only the event that we signed proves that the relay has
// it; a forged event proves nothing.
func TestReconcile_ForgedEventProvesNothing(t *testing.T) {
	t.Parallel()
	for _, lie := range []relay.Lie{relay.BadSignature, relay.OtherContent} {
		t.Run(string(lie), func(t *testing.T) {
			t.Parallel()
			r := relay.Start(t)
			s := session(t, r)
			it := prepared(t, s, item("hello"))
			commit(t, s, it)
			r.Lie(lie)
			wantOutcome(t, s, it, connector.CannotTell)
			r.Lie(relay.Honest)
			wantOutcome(t, s, it, connector.Published)
		})
	}
}

func TestReconcile_HonestRelayCountsDespiteLiar(t *testing.T) {
	t.Parallel()
	liar, honest := relay.Start(t), relay.Start(t)
	s := session(t, liar, honest)
	it := prepared(t, s, item("hello"))
	commit(t, s, it)
	liar.Lie(relay.OtherContent)
	v := wantOutcome(t, s, it, connector.Published)
	if at := parseRef(v.Ref, ""); len(at.Relays) != 1 || at.Relays[0] != honest.URL() {
		t.Errorf("got the relays %q, want only %s", at.Relays, honest.URL())
	}
}

func TestCommit_OKForAnotherEventIsIgnored(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault relay.Fault
		want  connector.Kind
	}{
		"the connection ends without ours": {fault: relay.Fault{Alien: true, Drop: true}, want: connector.KindUnknown},
		"ours is refused":                  {fault: relay.Fault{Alien: true, Refuse: "blocked: not you"}, want: connector.KindContent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := relay.Start(t)
			s := session(t, r)
			it := prepared(t, s, item("hello"))
			r.Arm(tc.fault)
			_, err := New().Commit(t.Context(), s, it)
			wantKind(t, err, tc.want)
		})
	}
	t.Run("ours is accepted after it", func(t *testing.T) {
		t.Parallel()
		r := relay.Start(t)
		s := session(t, r)
		r.Arm(relay.Fault{Alien: true})
		commit(t, s, prepared(t, s, item("hello")))
	})
}

func TestConnect_ForgedProfileIsNotShown(t *testing.T) {
	t.Parallel()
	for _, lie := range []relay.Lie{relay.BadSignature, relay.OtherContent} {
		t.Run(string(lie), func(t *testing.T) {
			t.Parallel()
			r := relay.Start(t)
			publishRaw(t, r, event{Kind: kindProfile, CreatedAt: 1, Tags: [][]string{}, Content: `{"name":"Ann of Nostr"}`})
			r.Lie(lie)
			bare := form(r)
			bare["name"] = ""
			done, err := New().Connect(t.Context(), envFor(t, r), bare)
			if err != nil || done.Account.Name == "Ann of Nostr" {
				t.Errorf("got the name %q, %v; want that of the key", done.Account.Name, err)
			}
		})
	}
}

// BIP-173 requires zero padding bits. Otherwise several texts would stand for the same key, and a
// mistyped key might be accepted.
func TestParseKey_RefusesNonzeroPadding(t *testing.T) {
	t.Parallel()
	prefix, groups, err := bech32.DecodeNoLimit(nsec)
	if err != nil {
		t.Fatal(err)
	}
	// 32 bytes fill 51 characters and one bit of the 52nd, which leaves four padding bits.
	for bit := range 4 {
		padded := append([]byte{}, groups...)
		padded[len(padded)-1] ^= 1 << bit
		text, err := bech32.Encode(prefix, padded)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseKey(text); err == nil {
			t.Errorf("%s: got no error, want one", text)
		}
	}
}
