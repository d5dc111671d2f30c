package relay

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/btcsuite/btcd/btcec/v2/schnorr"
)

// Event is an event as NIP-01 defines it.
type Event struct {
	ID     string `json:"id"`
	PubKey string `json:"pubkey"`
	// CreatedAt is in seconds since the Unix epoch.
	CreatedAt int64 `json:"created_at"`
	// Kind is 1 for a note.
	Kind    int        `json:"kind"`
	Tags    [][]string `json:"tags"`
	Content string     `json:"content"`
	Sig     string     `json:"sig"`
}

// Tag returns the first value of the first tag with this name, or "".
func (e Event) Tag(name string) string {
	for _, tag := range e.Tags {
		if len(tag) > 1 && tag[0] == name {
			return tag[1]
		}
	}
	return ""
}

// Check returns why the event is invalid, or "". It does not share code with the connector, so that
// each checks the other.
func (e Event) Check() string {
	sum := sha256.Sum256(e.serialize())
	if e.ID != hex.EncodeToString(sum[:]) {
		return "the id is not the hash"
	}
	if e.Tags == nil || slices.ContainsFunc(e.Tags, func(tag []string) bool { return len(tag) == 0 }) {
		return "a tag is missing or empty"
	}
	pub, err := hex.DecodeString(e.PubKey)
	if err != nil {
		return "the public key is not hex"
	}
	key, err := schnorr.ParsePubKey(pub)
	if err != nil {
		return "the public key is invalid"
	}
	raw, err := hex.DecodeString(e.Sig)
	if err != nil {
		return "the signature is not hex"
	}
	sig, err := schnorr.ParseSignature(raw)
	if err != nil || !sig.Verify(sum[:], key) {
		return "the signature is wrong"
	}
	return ""
}

func (e Event) serialize() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `[0,"%s",%d,%d,[`, e.PubKey, e.CreatedAt, e.Kind)
	for i, tag := range e.Tags {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('[')
		for j, value := range tag {
			if j > 0 {
				b.WriteByte(',')
			}
			writeString(&b, value)
		}
		b.WriteByte(']')
	}
	b.WriteString("],")
	writeString(&b, e.Content)
	b.WriteByte(']')
	return b.Bytes()
}

func writeString(b *bytes.Buffer, s string) {
	const escaped, letters = "\b\t\n\f\r\"\\", `btnfr"\`
	b.WriteByte('"')
	for _, c := range []byte(s) {
		if i := bytes.IndexByte([]byte(escaped), c); i >= 0 {
			b.WriteByte('\\')
			c = letters[i]
		}
		b.WriteByte(c)
	}
	b.WriteByte('"')
}

// Filter has the supported fields of a NIP-01 filter. Other fields are ignored.
type Filter struct {
	IDs     []string `json:"ids"`
	Authors []string `json:"authors"`
	Kinds   []int    `json:"kinds"`
	// Limit is the largest number of stored events to return. nil means no limit.
	Limit *int `json:"limit"`
}

func (f Filter) matches(e Event) bool {
	return (f.IDs == nil || slices.Contains(f.IDs, e.ID)) &&
		(f.Authors == nil || slices.Contains(f.Authors, e.PubKey)) &&
		(f.Kinds == nil || slices.Contains(f.Kinds, e.Kind))
}
