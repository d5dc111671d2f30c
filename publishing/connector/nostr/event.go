package nostr

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/btcsuite/btcd/btcec/v2"
	"github.com/btcsuite/btcd/btcec/v2/schnorr"
)

const (
	kindProfile = 0
	kindNote    = 1
	kindAuth    = 22242
)

// event is NIP-01's only object.
type event struct {
	ID        string `json:"id"`
	PubKey    string `json:"pubkey"`
	CreatedAt int64  `json:"created_at"` // seconds
	Kind      int    `json:"kind"`
	Tags      tags   `json:"tags"`
	Content   string `json:"content"`
	Sig       string `json:"sig"`
}

// canonical is what the id is the hash of. NIP-01 names these seven escapes and wants all other characters as they are, which encoding/json does not do.
func (e event) canonical() []byte {
	escape := strings.NewReplacer("\n", `\n`, `"`, `\"`, `\`, `\\`, "\r", `\r`, "\t", `\t`, "\b", `\b`, "\f", `\f`)
	quote := func(s string) string { return `"` + escape.Replace(s) + `"` }
	var b bytes.Buffer
	b.WriteString("[0," + quote(e.PubKey) + "," + strconv.FormatInt(e.CreatedAt, 10) + "," + strconv.Itoa(e.Kind) + ",[")
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

// signed fills in who, id and signature.
func (e event) signed(key *btcec.PrivateKey) (event, error) {
	e.PubKey = publicKey(key)
	hash := e.hash()
	// Fixed auxiliary randomness makes the signature a function of key and event; BIP-340 stays secure without randomness.
	sig, err := sign(key, hash, [32]byte{})
	if err != nil {
		return event{}, err
	}
	e.ID, e.Sig = hex.EncodeToString(hash[:]), hex.EncodeToString(sig)
	return e, nil
}

// valid tells whether the id is the hash of the rest and the signature is its author's.
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

// publicKey is the x-only key in hex, which is who somebody is.
func publicKey(key *btcec.PrivateKey) string {
	return hex.EncodeToString(schnorr.SerializePubKey(key.PubKey()))
}

// encode writes JSON without the HTML escapes, which only make it longer.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
