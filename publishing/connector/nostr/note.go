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
	maxHandle = 7 << 10 // bytes; the engine stores at most 8 KB
	maxHints  = 2       // relays in a nevent
)

// content returns the text followed by the media URLs, one per line.
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

// textProblem returns a sentence for users if the text, or a text that belongs to a medium,
// contains characters that relays hash in different ways. Some relays would reject the resulting
// event ID. textProblem returns "" if there is no problem.
func textProblem(text string, media []connector.Media) string {
	all := []string{text}
	for _, m := range media {
		all = append(all, m.Alt, m.URL, m.ContentType)
	}
	for _, s := range all {
		if !utf8.ValidString(s) {
			return "The text is not valid UTF-8."
		}
		if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\n\r\t\b\f", r) }) {
			return "The text contains control characters that relays handle differently; remove them."
		}
	}
	return ""
}

// note returns the signed event for an item. For the same item, it always returns the same event.
func (w signer) note(item connector.Item) (event, error) {
	if unclear := textProblem(item.Text, item.Media); unclear != "" {
		return event{}, contentError(unclear)
	}
	tags := thread(item, w.pub)
	tags = append(tags, referenceTags(item.Text, tags)...)
	for _, m := range item.Media {
		if m.URL == "" {
			const public = "The files of this instance have no public address."
			return event{}, &connector.Error{Kind: connector.KindOperator, Public: public}
		}
		tags = append(tags, imeta(m))
	}
	tags = append(append(tags, hashtags(item.Text)...), nonce(item))
	e := event{CreatedAt: w.createdAt(item), Kind: kindNote, Tags: tags, Content: content(item.Text, item.Media)}
	return e.signed(w.key)
}

// createdAt returns a note's creation time in Unix seconds. It makes each part later than the
// previous part, because clients show notes from the same second in any order. The inputs never
// change between retries, so the event ID stays the same.
func (w signer) createdAt(item connector.Item) int64 {
	at := item.CreatedAt.Unix()
	if item.Parent == nil {
		return at
	}
	return max(at, parseRef(*item.Parent, w.pub).CreatedAt+1)
}

// nonce returns a tag that distinguishes two notes with the same text and the same second. Without
// the tag, they would be a single event. The tag is the NIP-13 nonce tag, whose number exists to
// change the event ID. Clients do not show it, and its target of 0 claims no proof of work. The
// number is a hash, so that it does not reveal our identifiers.
func nonce(item connector.Item) []string {
	sum := sha256.Sum256([]byte("crier publication " + item.Publication.String()))
	return []string{"nonce", strconv.FormatUint(binary.BigEndian.Uint64(sum[:8]), 10), "0"}
}

// thread returns the NIP-10 tags for a reply. If the item replies to the first part, there is only
// one "e" tag, marked "root".
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
	return append(tags, []string{"p", parseRef(*item.Parent, self).PubKey})
}

// refData is the content of Ref.Data.
type refData struct {
	ID     string `json:"id"`
	PubKey string `json:"pubkey"`
	// CreatedAt is the creation time in Unix seconds; 0 if unknown.
	CreatedAt int64 `json:"created_at,omitempty"`
	// Relays are the URLs of the relays that have the event. URLs that must not be published are
	// left out.
	Relays []string `json:"relays"`
}

// parseRef returns a Ref's data. If the Ref has no data, parseRef assumes that the event is our own
// and that its relays are unknown.
func parseRef(ref connector.Ref, self string) refData {
	var p refData
	if json.Unmarshal(ref.Data, &p) != nil || p.PubKey == "" {
		return refData{ID: ref.ID, PubKey: self}
	}
	return p
}

// link returns a NIP-10 "e" tag. The tag contains the event ID, a relay hint, the marker and the
// author.
func link(ref connector.Ref, marker, self string) []string {
	at := parseRef(ref, self)
	relay := ""
	if len(at.Relays) > 0 {
		relay = at.Relays[0]
	}
	return []string{"e", ref.ID, relay, marker, at.PubKey}
}

// imeta returns the NIP-92 tag for a medium.
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

// ref returns the Ref for a published event. relays are the relays that have the event.
func ref(e event, relays []string) (connector.Ref, error) {
	known := slices.DeleteFunc(slices.Clone(relays), func(r string) bool { return publicAddress(r) == "" })
	data, err := json.Marshal(refData{ID: e.ID, PubKey: e.PubKey, CreatedAt: e.CreatedAt, Relays: known})
	if err != nil {
		return connector.Ref{}, err
	}
	name, err := nevent(e, known)
	return connector.Ref{ID: e.ID, URL: "https://njump.me/" + name, Data: data}, err
}

// nevent returns an event's NIP-19 nevent identifier, with hints for up to maxHints relays.
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

// handle holds the prepared event. If the event is too large to be stored, handle holds only the
// event's ID. In that case, the event is built again and must have this ID.
type handle struct {
	ID    string `json:"id"`
	Event *event `json:"event,omitempty"`
}

// prepare returns an item's handle, which is at most maxHandle bytes long.
func (w signer) prepare(item connector.Item) (json.RawMessage, error) {
	e, err := w.note(item)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(handle{ID: e.ID, Event: &e})
	if err != nil {
		return nil, err
	}
	if len(raw) > maxHandle {
		return json.Marshal(handle{ID: e.ID})
	}
	return raw, nil
}

// prepared returns the event that Prepare built. It returns KindContent if the item has changed
// since Prepare was called, and KindOperator if the item was not prepared.
func (w signer) prepared(item connector.Item) (event, error) {
	var h handle
	if err := json.Unmarshal(item.Handle, &h); err != nil {
		const public = "This post was not prepared."
		return event{}, &connector.Error{Kind: connector.KindOperator, Public: public, Err: err}
	}
	if h.Event != nil {
		return *h.Event, nil
	}
	e, err := w.note(item)
	if err != nil {
		return event{}, err
	}
	if e.ID != h.ID {
		return event{}, contentError("This post has changed since it was prepared; nothing was sent.")
	}
	return e, nil
}
