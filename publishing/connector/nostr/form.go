package nostr

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/btcsuite/btcd/btcec/v2"
	"github.com/btcsuite/btcd/btcutil/bech32"

	"crier/publishing/connector"
)

const (
	maxRelays     = 20
	defaultRelays = "wss://relay.damus.io, wss://nos.lol, wss://relay.primal.net, wss://nostr.mom, wss://offchain.pub"
)

// credential is what a channel keeps sealed.
type credential struct {
	Key    string   `json:"key"` // 64 hex digits
	Relays []string `json:"relays"`
}

// signer is a credential, read.
type signer struct {
	key    *btcec.PrivateKey
	pub    string
	relays []string
}

func open(s *connector.Session) (signer, error) {
	var c credential
	if err := json.Unmarshal(s.Credential, &c); err != nil {
		return signer{}, &connector.Error{Kind: connector.KindReauth, Public: "The stored key cannot be read; reconnect the channel."}
	}
	key, err := parseKey(c.Key)
	if err != nil || len(c.Relays) == 0 {
		return signer{}, &connector.Error{Kind: connector.KindReauth, Public: "The stored key or relays cannot be used; reconnect the channel."}
	}
	return signer{key, publicKey(key), c.Relays}, nil
}

func refuse(words string) error { return &connector.Error{Kind: connector.KindContent, Public: words} }

// parseKey reads a private key as hex or nsec. Its errors never repeat what was typed.
func parseKey(typed string) (*btcec.PrivateKey, error) {
	typed = strings.TrimSpace(typed)
	raw, err := hex.DecodeString(typed)
	if strings.HasPrefix(strings.ToLower(typed), "npub1") {
		return nil, refuse("This is a public key (npub); posting needs the private key (nsec).")
	}
	if strings.HasPrefix(strings.ToLower(typed), "nsec1") {
		var prefix string
		if prefix, raw, err = decodeBech32(typed); prefix != "nsec" {
			raw = nil
		}
	}
	if err != nil || len(raw) != 32 {
		return nil, refuse("The private key must be 64 hexadecimal digits or start with nsec1; please check for typing mistakes.")
	}
	var scalar btcec.ModNScalar
	if overflow := scalar.SetByteSlice(raw); overflow || scalar.IsZero() {
		return nil, refuse("This number is not a private key.")
	}
	return btcec.PrivKeyFromScalar(&scalar), nil
}

// decodeBech32 reads the bech32 of BIP-173 without its limit of 90 characters, as NIP-19 uses it.
func decodeBech32(s string) (prefix string, data []byte, err error) {
	prefix, groups, version, err := bech32.DecodeNoLimitWithVersion(s)
	if err != nil {
		return "", nil, err
	}
	if version != bech32.Version0 {
		return "", nil, errors.New("the checksum is one of bech32m")
	}
	data, err = bech32.ConvertBits(groups, 5, 8, false)
	return prefix, data, err
}

// parseRelays reads addresses with commas, spaces or line breaks between them, each kept once.
func parseRelays(typed string) ([]string, error) {
	if strings.TrimSpace(typed) == "" {
		typed = defaultRelays
	}
	var out []string
	for _, word := range strings.FieldsFunc(typed, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }) {
		u, err := url.Parse(word)
		if err != nil || u.Scheme != "wss" && u.Scheme != "ws" || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
			return nil, refuse("Each relay must be an address like wss://relay.example.com.")
		}
		u.Host = strings.ToLower(u.Host)
		if u.Path == "/" {
			u.Path = ""
		}
		if address := u.String(); !slices.Contains(out, address) {
			out = append(out, address)
		}
	}
	if len(out) == 0 || len(out) > maxRelays {
		return nil, refuse("Name 1 to 20 relays.")
	}
	return out, nil
}

// hint is a relay's address as the public may see it: a query can hold a member's token.
func hint(relay string) string {
	if u, err := url.Parse(relay); err != nil || u.RawQuery != "" {
		return ""
	}
	return relay
}

// host names a relay in messages.
func host(relay string) string {
	if u, err := url.Parse(relay); err == nil {
		return u.Host
	}
	return "relay"
}
