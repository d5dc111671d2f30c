package nostr

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/btcsuite/btcd/btcutil/bech32"

	"crier/publishing/connector"
)

const (
	maxHandle = 7 << 10 // bytes; the engine keeps at most 8 KB
	maxHints  = 2       // relays named in an address
)

// content is the text with the address of each medium on a line of its own.
func content(text string, media []connector.Media) string {
	lines := make([]string, 0, len(media))
	for _, m := range media {
		lines = append(lines, m.URL)
	}
	if text != "" && len(lines) > 0 {
		text += "\n\n"
	}
	return text + strings.Join(lines, "\n")
}

// unclearText finds what relays hash in different ways, so that some would call the id wrong: "" = nothing.
func unclearText(text string, media []connector.Media) string {
	all := []string{text}
	for _, m := range media {
		all = append(all, m.Alt, m.URL, m.ContentType)
	}
	for _, s := range all {
		if !utf8.ValidString(s) {
			return "The text is not valid UTF-8."
		}
		if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\n\r\t\b\f", r) }) {
			return "The text holds control characters that relays do not agree about; remove them."
		}
	}
	return ""
}

// note makes the signed event of an item. The same item gives the same bytes.
func (w signer) note(item connector.Item) (event, error) {
	if unclear := unclearText(item.Text, item.Media); unclear != "" {
		return event{}, refuse(unclear)
	}
	tags := thread(item, w.pub)
	for _, m := range item.Media {
		if m.URL == "" {
			return event{}, &connector.Error{Kind: connector.KindOperator, Public: "The files of this instance have no public address."}
		}
		tags = append(tags, imeta(m))
	}
	tags = append(append(tags, hashtags(item.Text)...), nonce(item))
	e := event{CreatedAt: item.CreatedAt.Unix(), Kind: kindNote, Tags: tags, Content: content(item.Text, item.Media)}
	return e.signed(w.key)
}

// nonce keeps equal texts of one second apart: without it they would hash to one event and the second publication would
// vanish. It is the tag of NIP-13, whose number exists to change the id. Clients do not show it, its target of 0 claims no
// proof of work, and the number is a hash that tells nothing about our identifiers.
func nonce(item connector.Item) []string {
	sum := sha256.Sum256([]byte("crier publication " + item.Publication.String()))
	return []string{"nonce", strconv.FormatUint(binary.BigEndian.Uint64(sum[:8]), 10), "0"}
}

// thread is NIP-10: an answer to the first part is marked "root" only.
func thread(item connector.Item, self string) [][]string {
	if item.Parent == nil {
		return [][]string{}
	}
	root := item.Root
	if root == nil {
		root = item.Parent
	}
	tags := [][]string{link(*root, "root", self)}
	if item.Parent.ID != root.ID {
		tags = append(tags, link(*item.Parent, "reply", self))
	}
	return append(tags, []string{"p", about(*item.Parent, self).PubKey})
}

// place is Ref.Data.
type place struct {
	ID     string   `json:"id"`
	PubKey string   `json:"pubkey"`
	Relays []string `json:"relays"` // that have it, as the public may see them
}

// about reads Ref.Data; without it the part is our own and may be anywhere.
func about(ref connector.Ref, self string) place {
	var p place
	if json.Unmarshal(ref.Data, &p) != nil || p.PubKey == "" {
		return place{ID: ref.ID, PubKey: self}
	}
	return p
}

func link(ref connector.Ref, marker, self string) []string {
	at := about(ref, self)
	relay := ""
	if len(at.Relays) > 0 {
		relay = at.Relays[0]
	}
	return []string{"e", ref.ID, relay, marker, at.PubKey}
}

// imeta is NIP-92.
func imeta(m connector.Media) []string {
	tag := []string{"imeta", "url " + m.URL, "m " + m.ContentType}
	if m.Alt != "" {
		tag = append(tag, "alt "+m.Alt)
	}
	if m.Width > 0 && m.Height > 0 {
		tag = append(tag, fmt.Sprintf("dim %dx%d", m.Width, m.Height))
	}
	if m.Size > 0 {
		tag = append(tag, fmt.Sprintf("size %d", m.Size))
	}
	return tag
}

// ref names a published event; relays are those that have it.
func ref(e event, relays []string) (connector.Ref, error) {
	known := slices.DeleteFunc(slices.Clone(relays), func(r string) bool { return hint(r) == "" })
	data, err := json.Marshal(place{e.ID, e.PubKey, known})
	if err != nil {
		return connector.Ref{}, err
	}
	name, err := nevent(e, known)
	return connector.Ref{ID: e.ID, URL: "https://njump.me/" + name, Data: data}, err
}

// nevent is NIP-19's name of an event: type, length, value.
func nevent(e event, relays []string) (string, error) {
	id, err := hex.DecodeString(e.ID)
	if err != nil {
		return "", err
	}
	author, err := hex.DecodeString(e.PubKey)
	if err != nil {
		return "", err
	}
	var b []byte
	add := func(kind byte, value []byte) { b = append(append(b, kind, byte(len(value))), value...) }
	add(0, id)
	for _, r := range relays[:min(len(relays), maxHints)] {
		if len(r) <= 255 {
			add(1, []byte(r))
		}
	}
	add(2, author)
	add(3, binary.BigEndian.AppendUint32(nil, uint32(e.Kind)))
	return bech32.EncodeFromBase256("nevent", b)
}

// handle is the prepared event: whole where it fits, else its id, by which the same event made again is recognised.
type handle struct {
	ID    string `json:"id"`
	Event *event `json:"event,omitempty"`
}

func (w signer) prepare(item connector.Item) (json.RawMessage, error) {
	e, err := w.note(item)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(handle{e.ID, &e})
	if err == nil && len(raw) > maxHandle {
		raw, err = json.Marshal(handle{ID: e.ID})
	}
	return raw, err
}

// prepared gives the very event that Prepare decided on.
func (w signer) prepared(item connector.Item) (event, error) {
	var h handle
	if err := json.Unmarshal(item.Handle, &h); err != nil {
		return event{}, &connector.Error{Kind: connector.KindOperator, Public: "This post was not prepared.", Err: err}
	}
	if h.Event != nil {
		return *h.Event, nil
	}
	e, err := w.note(item)
	if err == nil && e.ID != h.ID {
		return event{}, refuse("This post has changed since it was prepared; nothing was sent.")
	}
	return e, err
}
