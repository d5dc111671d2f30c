package relay

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/btcsuite/btcd/btcec/v2"
	"github.com/btcsuite/btcd/btcec/v2/schnorr"
	"github.com/coder/websocket"
)

// signedEvent returns an event signed with the private key 1, 2, 3 and so on.
func signedEvent(t *testing.T, key byte, content string) Event {
	t.Helper()
	private, public := btcec.PrivKeyFromBytes([]byte{key})
	e := Event{
		PubKey: hex.EncodeToString(schnorr.SerializePubKey(public)), CreatedAt: int64(key), Kind: 1,
		Tags: [][]string{{"t", "x\n"}}, Content: content,
	}
	sum := sha256.Sum256(e.serialize())
	sig, err := schnorr.Sign(private, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	e.ID, e.Sig = hex.EncodeToString(sum[:]), hex.EncodeToString(sig.Serialize())
	return e
}

type session struct {
	t    *testing.T
	conn *websocket.Conn
}

func dial(t *testing.T, r *Relay) session {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), r.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	return session{t: t, conn: conn}
}

func (k session) send(message ...any) {
	k.t.Helper()
	raw, err := json.Marshal(message)
	if err != nil {
		k.t.Fatal(err)
	}
	if err := k.conn.Write(k.t.Context(), websocket.MessageText, raw); err != nil {
		k.t.Fatal(err)
	}
}

// expect checks that the next message starts with this prefix.
func (k session) expect(start string) {
	k.t.Helper()
	_, raw, err := k.conn.Read(k.t.Context())
	if err != nil || !strings.HasPrefix(string(raw), start) {
		k.t.Fatalf("got message %s, %v, want %s", raw, err, start)
	}
}

func (k session) expectClosed() {
	k.t.Helper()
	if _, raw, err := k.conn.Read(k.t.Context()); err == nil {
		k.t.Fatalf("got message %s, want a dropped connection", raw)
	}
}

func TestRelay_ChecksEvents(t *testing.T) {
	t.Parallel()
	r := Start(t)
	k := dial(t, r)
	good, forged, altered := signedEvent(t, 1, "a\t\"b\" <é>"), signedEvent(t, 2, "b"), signedEvent(t, 3, "c")
	forged.Sig = good.Sig
	altered.Content += "!"
	k.send("EVENT", good)
	k.expect(`["OK","` + good.ID + `",true,""]`)
	k.send("EVENT", good)
	k.expect(`["OK","` + good.ID + `",true,"duplicate: `)
	k.send("EVENT", forged)
	k.expect(`["OK","` + forged.ID + `",false,"invalid: the signature`)
	k.send("EVENT", altered)
	k.expect(`["OK","` + altered.ID + `",false,"invalid: the id`)
	k.send("EVENT", 7)
	k.expect(`["NOTICE"`)
	k.send("DANCE", 7)
	k.expect(`["NOTICE"`)
	if got := r.Events(); len(got) != 1 || got[0].ID != good.ID || r.Received() != 4 {
		t.Errorf("got %d received and stored %+v, want 4 received and only the valid one stored", r.Received(), got)
	}
}

func TestRelay_FiltersEvents(t *testing.T) {
	t.Parallel()
	r := Start(t)
	k := dial(t, r)
	one, two := signedEvent(t, 1, "one"), signedEvent(t, 2, "two")
	for _, e := range []Event{one, two} {
		k.send("EVENT", e)
		k.expect(`["OK"`)
	}
	for name, tc := range map[string]struct {
		filter map[string]any
		want   []Event
	}{
		"everything, newest first": {filter: map[string]any{}, want: []Event{two, one}},
		"by id":                    {filter: map[string]any{"ids": []string{one.ID}}, want: []Event{one}},
		"by author":                {filter: map[string]any{"authors": []string{two.PubKey}}, want: []Event{two}},
		"by kind":                  {filter: map[string]any{"kinds": []int{0}}, want: nil},
		"at most one":              {filter: map[string]any{"limit": 1}, want: []Event{two}},
	} {
		k.send("REQ", name, tc.filter)
		for _, e := range tc.want {
			k.expect(`["EVENT","` + name + `",{"id":"` + e.ID)
		}
		k.expect(`["EOSE","` + name + `"]`)
		k.send("CLOSE", name)
	}
	k.send("REQ", "bad", 7)
	k.expect(`["CLOSED","bad"`)
}

func TestFault_AppliesOnce(t *testing.T) {
	t.Parallel()
	open := make(chan struct{})
	close(open)
	for name, tc := range map[string]struct {
		fault  Fault
		answer string // "" means that the connection is dropped
		stored int
	}{
		"dropped before storing": {fault: Fault{Drop: true}, answer: "", stored: 0},
		"dropped after storing":  {fault: Fault{Store: true, Drop: true}, answer: "", stored: 1},
		"refused":                {fault: Fault{Refuse: "pow: more"}, answer: `,false,"pow: more"]`, stored: 0},
		"refused after storing":  {fault: Fault{Store: true, Refuse: "error: x"}, answer: `,false,"error: x"]`, stored: 1},
		"held, then stored":      {fault: Fault{Hold: open}, answer: `,true,""]`, stored: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := Start(t)
			e := signedEvent(t, 1, name)
			r.Arm(tc.fault)
			k := dial(t, r)
			k.send("EVENT", e)
			if tc.answer == "" {
				k.expectClosed()
			} else {
				k.expect(`["OK","` + e.ID + `"` + tc.answer)
			}
			if n := len(r.Events()); n != tc.stored {
				t.Errorf("got %d stored events, want %d", n, tc.stored)
			}
			k = dial(t, r)
			k.send("EVENT", e)
			k.expect(`["OK","` + e.ID + `",true`)
		})
	}
	t.Run("half an answer", func(t *testing.T) {
		t.Parallel()
		r := Start(t)
		r.Arm(Fault{Cut: true})
		k := dial(t, r)
		e := signedEvent(t, 1, "x")
		k.send("EVENT", e)
		k.expect(`["OK","` + e.ID[:32])
		k.expectClosed()
	})
	t.Run("a refused handshake", func(t *testing.T) {
		t.Parallel()
		r := Start(t)
		r.Arm(Fault{Dial: true})
		if conn, _, err := websocket.Dial(t.Context(), r.URL(), nil); err == nil {
			t.Errorf("got a connection, want a refused handshake: %v", conn.CloseNow())
		}
		dial(t, r)
	})
	t.Run("a relay that drops requests", func(t *testing.T) {
		t.Parallel()
		r := Start(t)
		r.Deafen(true)
		k := dial(t, r)
		k.send("REQ", "q", map[string]any{})
		k.expectClosed()
	})
	t.Run("a relay for members refuses other clients", func(t *testing.T) {
		t.Parallel()
		r := Start(t)
		r.MembersOnly(true)
		k := dial(t, r)
		k.expect(`["AUTH","challenge`)
		e := signedEvent(t, 1, "x")
		k.send("EVENT", e)
		k.expect(`["OK","` + e.ID + `",false,"auth-required`)
		k.send("AUTH", e)
		k.expect(`["OK","` + e.ID + `",false,"invalid`)
	})
}
