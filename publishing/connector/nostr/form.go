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

// credential is the decoded form of Session.Credential, which the engine stores encrypted.
type credential struct {
	Key    string   `json:"key"` // 64 hex digits
	Relays []string `json:"relays"`
}

// signer holds the key and relays from a credential. pub is the x-only public key in hex.
type signer struct {
	key    *btcec.PrivateKey
	pub    string
	relays []string
}

// open returns the signer for a session, or KindReauth if the credential cannot be used.
func open(s *connector.Session) (signer, error) {
	var c credential
	if err := json.Unmarshal(s.Credential, &c); err != nil {
		const public = "The stored key cannot be read; reconnect the channel."
		return signer{}, &connector.Error{Kind: connector.KindReauth, Public: public}
	}
	key, err := parseKey(c.Key)
	if err != nil || len(c.Relays) == 0 {
		const public = "The stored key or relays cannot be used; reconnect the channel."
		return signer{}, &connector.Error{Kind: connector.KindReauth, Public: public}
	}
	return signer{key: key, pub: publicKey(key), relays: c.Relays}, nil
}

func contentError(public string) error {
	return &connector.Error{Kind: connector.KindContent, Public: public}
}

// parseKey parses a private key in hex or nsec form. Its errors never repeat the input.
func parseKey(typed string) (*btcec.PrivateKey, error) {
	typed = strings.TrimSpace(typed)
	raw, err := hex.DecodeString(typed)
	if strings.HasPrefix(strings.ToLower(typed), "npub1") {
		return nil, contentError("This is a public key (npub); posting needs the private key (nsec).")
	}
	if strings.HasPrefix(strings.ToLower(typed), "nsec1") {
		raw, err = decodeNsec(typed)
	}
	if err != nil || len(raw) != 32 {
		return nil, contentError("The private key must be 64 hexadecimal digits or start with nsec1; " +
			"check it for typing mistakes.")
	}
	var scalar btcec.ModNScalar
	if overflow := scalar.SetByteSlice(raw); overflow || scalar.IsZero() {
		return nil, contentError("This number is not a private key.")
	}
	return btcec.PrivKeyFromScalar(&scalar), nil
}

func decodeNsec(s string) ([]byte, error) {
	prefix, raw, err := decodeBech32(s)
	if err != nil {
		return nil, err
	}
	if prefix != "nsec" {
		return nil, errors.New("the prefix is not nsec")
	}
	return raw, nil
}

// decodeBech32 decodes bech32 (BIP-173) without the 90-character limit, as NIP-19 requires.
func decodeBech32(s string) (prefix string, data []byte, err error) {
	prefix, groups, version, err := bech32.DecodeNoLimitWithVersion(s)
	if err != nil {
		return "", nil, err
	}
	if version != bech32.Version0 {
		return "", nil, errors.New("the checksum is a bech32m checksum")
	}
	data, err = bech32.ConvertBits(groups, 5, 8, false)
	return prefix, data, err
}

// parseRelays parses relay URLs separated by commas, spaces, tabs or line breaks, and removes
// duplicates. If typed is blank, parseRelays returns the default relays.
func parseRelays(typed string) ([]string, error) {
	if strings.TrimSpace(typed) == "" {
		typed = defaultRelays
	}
	var out []string
	for _, word := range strings.FieldsFunc(typed, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }) {
		u, err := url.Parse(word)
		if err != nil || u.Scheme != "wss" && u.Scheme != "ws" || u.Hostname() == "" ||
			u.User != nil || u.Fragment != "" {
			return nil, contentError("Each relay must be an address like wss://relay.example.com.")
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
		return nil, contentError("Enter 1 to 20 relays.")
	}
	return out, nil
}

// publicAddress returns the relay URL if the URL may be published. It returns "" if the URL has a
// query, because a query may contain a token.
func publicAddress(relay string) string {
	if u, err := url.Parse(relay); err != nil || u.RawQuery != "" {
		return ""
	}
	return relay
}

// host returns the part of a relay URL that can be shown in messages. It omits the query, which may
// contain a token.
func host(relay string) string {
	u, err := url.Parse(relay)
	if err != nil {
		return "relay"
	}
	return u.Host
}
