package nostr

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/btcsuite/btcd/btcutil/bech32"

	"crier/tests/relay"
)

// npub and nprofile are examples from NIP-19.
const (
	npub     = "npub10elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg"
	npubKey  = "7e7e9c42a91bfef19fa929e5fda1b72e0ebc1a4c1141673e2794234d86addf4e"
	nprofile = "nprofile1qqsrhuxx8l9ex335q7he0f09aej04zpazpl0ne2cgukyawd24mayt8gpp4mhxue69uhhytnc9e3k7mgpz4mhxue69uhkg6nzv9ejuumpv34kytnrdaksjlyr9p"
	profile1 = "3bf0c63fcb93463407af97a5e5ee64fa883d107ef9e558472c4eb9aaaefa459d"
)

var (
	eventID = strings.Repeat("ab", 32)
	author  = strings.Repeat("cd", 32)
)

// field returns a type-length-value triple in hex; value is in hex too.
func field(kind int, value string) string {
	return fmt.Sprintf("%02x%02x%s", kind, len(value)/2, value)
}

func asHex(s string) string { return hex.EncodeToString([]byte(s)) }

// nip19 encodes fields in hex as an identifier with the prefix.
func nip19(t *testing.T, prefix string, fields ...string) string {
	t.Helper()
	raw, err := hex.DecodeString(strings.Join(fields, ""))
	if err != nil {
		t.Fatal(err)
	}
	out, err := bech32.EncodeFromBase256(prefix, raw)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestReferenceTags_InText(t *testing.T) {
	t.Parallel()
	note := nip19(t, "note", eventID)
	nevent := nip19(t, "nevent", field(0, eventID), field(1, asHex("wss://relay.example")), field(1, asHex("wss://other.example")),
		field(2, author), field(3, "00000001"))
	bare := nip19(t, "nevent", field(0, eventID))
	naddr := nip19(t, "naddr", field(0, asHex("my-article")), field(1, asHex("wss://relay.example")), field(2, author), field(3, "00007537"))
	q := []string{"q", eventID, "wss://relay.example", author}
	p := []string{"p", author}
	for name, tc := range map[string]struct {
		text string
		want [][]string
	}{
		"none":                            {text: "just words", want: nil},
		"a note":                          {text: "see nostr:" + note, want: [][]string{{"q", eventID}}},
		"an event":                        {text: "see nostr:" + nevent + ".", want: [][]string{q, p}},
		"an event without an author":      {text: "nostr:" + bare, want: [][]string{{"q", eventID}}},
		"an address":                      {text: "(nostr:" + naddr + ")", want: [][]string{{"q", "30007:" + author + ":my-article", "wss://relay.example"}, p}},
		"a key":                           {text: "hi nostr:" + npub + "'s", want: [][]string{{"p", npubKey}}},
		"a profile":                       {text: "hi nostr:" + nprofile + "!", want: [][]string{{"p", profile1, "wss://r.x.com"}}},
		"capitals":                        {text: "NOSTR:" + strings.ToUpper(npub) + " Nostr:" + note, want: [][]string{{"p", npubKey}, {"q", eventID}}},
		"each once":                       {text: "nostr:" + nevent + " nostr:" + note + " nostr:" + nevent, want: [][]string{q, p}},
		"after Japanese punctuation":      {text: "見て、nostr:" + npub + "。", want: [][]string{{"p", npubKey}}},
		"without a prefix":                {text: npub + " @" + npub + " " + nevent, want: nil},
		"a wrong checksum":                {text: "nostr:" + npub[:len(npub)-1] + "q nostr:" + note[:20] + " nostr:" + nprofile + "q", want: nil},
		"a private key":                   {text: "nostr:" + nsec, want: nil},
		"inside of a word or a link":      {text: "xnostr:" + npub + " web+nostr:" + npub + " https://a.example/?u=nostr:" + npub, want: nil},
		"after a link":                    {text: "https://a.example/x nostr:" + npub, want: [][]string{{"p", npubKey}}},
		"a short id":                      {text: "nostr:" + nip19(t, "note", eventID[2:]) + " nostr:" + nip19(t, "npub", author+"00"), want: nil},
		"an event without an id":          {text: "nostr:" + nip19(t, "nevent", field(2, author)), want: nil},
		"an event with half an author":    {text: "nostr:" + nip19(t, "nevent", field(0, eventID), field(2, author[:32])), want: nil},
		"a field that ends too early":     {text: "nostr:" + nip19(t, "nevent", field(0, eventID), "0220aa"), want: nil},
		"an unknown field":                {text: "nostr:" + nip19(t, "nevent", field(9, "aa"), field(0, eventID)), want: [][]string{{"q", eventID}}},
		"an address without an author":    {text: "nostr:" + nip19(t, "naddr", field(0, ""), field(3, "00007537")), want: nil},
		"an address without a kind":       {text: "nostr:" + nip19(t, "naddr", field(0, ""), field(2, author)), want: nil},
		"an address of an empty name":     {text: "nostr:" + nip19(t, "naddr", field(0, ""), field(2, author), field(3, "00000000")), want: [][]string{{"q", "0:" + author + ":"}, p}},
		"a name that relays hash unlike":  {text: "nostr:" + nip19(t, "naddr", field(0, "00ff"), field(2, author), field(3, "00007537")), want: nil},
		"a relay that is no relay":        {text: "nostr:" + nip19(t, "nevent", field(0, eventID), field(1, asHex("javascript:alert(1)")), field(1, asHex("ws://b.example"))), want: [][]string{{"q", eventID, "ws://b.example"}}},
		"a relay with a token or a space": {text: "nostr:" + nip19(t, "nevent", field(0, eventID), field(1, asHex("wss://a.example/?t=1")), field(1, asHex("wss://a.example/a b"))), want: [][]string{{"q", eventID}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := referenceTags(tc.text, nil); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("%q:\n got %q\nwant %q", tc.text, got, tc.want)
			}
		})
	}
}

func TestReferenceTags_AreBounded(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 3 * maxReferences {
		many.WriteString("nostr:" + nip19(t, "npub", fmt.Sprintf("%064x", i)) + " ")
	}
	if got := referenceTags(many.String(), nil); len(got) != maxReferences {
		t.Errorf("got %d tags, want %d", len(got), maxReferences)
	}
}

// A reply with a quote has the tags of its thread and of the quote, and names the author only once.
func TestCommit_TagsReferences(t *testing.T) {
	t.Parallel()
	r := relay.Start(t)
	s := session(t, r)
	first := commit(t, s, prepared(t, s, item("first")))
	reply := item("as in nostr:" + strings.TrimPrefix(first.URL, "https://njump.me/") + " by nostr:" + nprofile)
	reply.Root, reply.Parent = &first, &first
	commit(t, s, prepared(t, s, reply))
	me := s.Account.ID
	want := [][]string{{"e", first.ID, r.URL(), "root", me}, {"p", me}, {"q", first.ID, r.URL(), me}, {"p", profile1, "wss://r.x.com"}}
	got := notes(r)[1]
	if !reflect.DeepEqual(got.Tags[:len(got.Tags)-1], want) || got.Content != reply.Text {
		t.Errorf("got the tags %q of %q, want %q", got.Tags, got.Content, want)
	}
}
