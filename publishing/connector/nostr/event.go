package nostr

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/btcsuite/btcd/btcec/v2"
	"github.com/btcsuite/btcd/btcec/v2/schnorr"
)

const (
	kindProfile = 0
	kindNote    = 1
	kindAuth    = 22242
)

// event is the event object defined by NIP-01.
type event struct {
	ID        string `json:"id"`
	PubKey    string `json:"pubkey"`
	CreatedAt int64  `json:"created_at"` // Unix seconds
	Kind      int    `json:"kind"`
	Tags      tags   `json:"tags"`
	Content   string `json:"content"`
	Sig       string `json:"sig"`
}

// canonical returns the serialization whose hash is the event ID. NIP-01 requires exactly these
// seven characters to be escaped, which encoding/json does not support.
func (e event) canonical() []byte {
	escape := strings.NewReplacer("\n", `\n`, `"`, `\"`, `\`, `\\`, "\r", `\r`, "\t", `\t`, "\b", `\b`, "\f", `\f`)
	quote := func(s string) string { return `"` + escape.Replace(s) + `"` }
	var b bytes.Buffer
	fmt.Fprintf(&b, "[0,%s,%d,%d,[", quote(e.PubKey), e.CreatedAt, e.Kind)
	for i, tag := range e.Tags {
		if i > 0 {
			b.WriteByte(',')
		}
		quoted := make([]string, len(tag))
		for j, value := range tag {
			quoted[j] = quote(value)
		}
		b.WriteString("[" + strings.Join(quoted, ",") + "]")
	}
	b.WriteString("]," + quote(e.Content) + "]")
	return b.Bytes()
}

func (e event) hash() [32]byte { return sha256.Sum256(e.canonical()) }

// signed returns the event with PubKey, ID and Sig set. Equal events have equal signatures.
func (e event) signed(key *btcec.PrivateKey) (event, error) {
	e.PubKey = publicKey(key)
	hash := e.hash()
	// With fixed auxiliary randomness, the signature depends only on the key and the event. BIP-340
	// signatures are secure even without randomness.
	sig, err := sign(key, hash, [32]byte{})
	if err != nil {
		return event{}, err
	}
	e.ID, e.Sig = hex.EncodeToString(hash[:]), hex.EncodeToString(sig)
	return e, nil
}

// valid returns true if the ID is the event's hash and the author signed the event.
func (e event) valid() bool {
	hash := e.hash()
	if e.ID != hex.EncodeToString(hash[:]) {
		return false
	}
	pub, err1 := hex.DecodeString(e.PubKey)
	sig, err2 := hex.DecodeString(e.Sig)
	if err1 != nil || err2 != nil {
		return false
	}
	author, err1 := schnorr.ParsePubKey(pub)
	signature, err2 := schnorr.ParseSignature(sig)
	return err1 == nil && err2 == nil && signature.Verify(hash[:], author)
}

func sign(key *btcec.PrivateKey, hash, aux [32]byte) ([]byte, error) {
	sig, err := schnorr.Sign(key, hash[:], schnorr.CustomNonce(aux))
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return sig.Serialize(), nil
}

// publicKey returns the x-only public key in hex, which identifies an author.
func publicKey(key *btcec.PrivateKey) string {
	return hex.EncodeToString(schnorr.SerializePubKey(key.PubKey()))
}

// encode returns JSON without the HTML escapes that encoding/json adds.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
