package nostr

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"crier/publishing/connector/links"
)

// maxReferences limits how many references in a note are tagged, because relays reject notes with
// too many tags.
const maxReferences = 50

// reference is the target of a NIP-19 identifier: an event, the address of a replaceable event, or
// a profile. It is a profile if target is empty.
type reference struct {
	// target is an event ID or the address of a replaceable event. An address consists of the
	// event's kind, author and name, separated by colons.
	target string
	// author is the public key, in hex, of the event's author or of the profile; "" if unknown.
	author string
	// relay is the URL of a relay that has the event or profile; "" if unknown.
	relay   string
	address bool
}

// referencePattern matches a NIP-21 URI. It does not match private keys.
var referencePattern = regexp.MustCompile(`(?i)nostr:((?:note|nevent|naddr|npub|nprofile)1[0-9a-z]+)`)

// referenceTags returns tags for the nostr: URIs in the text. It leaves out duplicates and any tag
// listed in present. Events get "q" tags (NIP-18). Profiles and the authors of events get "p" tags
// (NIP-27). A URI stays plain text if it is invalid, or if it is inside a word or a link.
func referenceTags(text string, present [][]string) [][]string {
	seen := map[string]bool{}
	for _, tag := range present {
		seen[tag[0]+tag[1]] = true
	}
	var out [][]string
	add := func(tag ...string) {
		if key := tag[0] + tag[1]; !seen[key] {
			seen[key] = true
			out = append(out, tag)
		}
	}
	for i, r := range references(text) {
		if i == maxReferences {
			break
		}
		switch {
		case r.target == "" && r.relay != "":
			add("p", r.author, r.relay)
			continue
		case r.target == "":
		case r.author != "" && !r.address:
			add("q", r.target, r.relay, r.author)
		case r.relay != "":
			add("q", r.target, r.relay)
		default:
			add("q", r.target)
		}
		if r.author != "" {
			add("p", r.author)
		}
	}
	return out
}

func references(text string) []reference {
	found := referencePattern.FindAllStringSubmatchIndex(text, -1)
	if len(found) == 0 {
		return nil
	}
	var out []reference
	addresses := links.Find(text)
	for _, at := range found {
		for len(addresses) > 0 && addresses[0].End <= at[0] {
			addresses = addresses[1:]
		}
		before, _ := utf8.DecodeLastRuneInString(text[:at[0]])
		inWord := unicode.In(before, unicode.L, unicode.N) || strings.ContainsRune("_+-/", before)
		if inWord && at[0] > 0 || len(addresses) > 0 && addresses[0].Start <= at[0] {
			continue
		}
		if r, err := decodeReference(text[at[2]:at[3]]); err == nil {
			out = append(out, r)
		}
	}
	return out
}

var errReference = errors.New("not valid content for this identifier")

// decodeReference decodes a NIP-19 identifier.
func decodeReference(identifier string) (reference, error) {
	prefix, data, err := decodeBech32(identifier)
	if err != nil {
		return reference{}, err
	}
	if prefix == "note" || prefix == "npub" {
		key, err := hexKey(data)
		if prefix == "note" {
			return reference{target: key}, err
		}
		return reference{author: key}, err
	}
	return decodeFields(prefix, data)
}

// The field types of an identifier.
const (
	fieldSpecial = iota // the event, the profile or an address's name
	fieldRelay
	fieldAuthor
	fieldKind
)

// decodeFields decodes type-length-value triples. It ignores unknown types. If a type occurs more
// than once, decodeFields uses the first value. For relays, it uses the first URL that may be
// published.
func decodeFields(prefix string, data []byte) (reference, error) {
	fields := map[byte][]byte{}
	var r reference
	for len(data) > 0 {
		if len(data) < 2 || len(data) < 2+int(data[1]) {
			return r, errReference
		}
		kind, value := data[0], data[2:2+int(data[1])]
		data = data[2+len(value):]
		if kind == fieldRelay && r.relay == "" {
			r.relay = relayHint(string(value))
		} else if _, known := fields[kind]; !known {
			fields[kind] = value
		}
	}
	special, named := fields[fieldSpecial]
	author, authored := fields[fieldAuthor]
	var err error
	switch prefix {
	case "nprofile":
		r.author, err = hexKey(special)
		return r, err
	case "nevent":
		if r.target, err = hexKey(special); err == nil && authored {
			r.author, err = hexKey(author)
		}
		return r, err
	case "naddr":
		kind := fields[fieldKind]
		if r.author, err = hexKey(author); err != nil {
			return r, err
		}
		if !named || len(kind) != 4 || binary.BigEndian.Uint32(kind) > 0xffff || !publishable(string(special)) {
			return r, errReference
		}
		r.target, r.address = fmt.Sprintf("%d:%s:%s", binary.BigEndian.Uint32(kind), r.author, special), true
		return r, nil
	}
	return r, errReference
}

func hexKey(raw []byte) (string, error) {
	if len(raw) != 32 {
		return "", errReference
	}
	return hex.EncodeToString(raw), nil
}

// relayHint returns a relay URL, or "" if the URL must not be published.
func relayHint(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "wss" && u.Scheme != "ws" || u.Host == "" || u.User != nil ||
		!publishable(address) || strings.ContainsFunc(address, unicode.IsSpace) {
		return ""
	}
	return publicAddress(address)
}

// publishable returns true for text that all relays hash in the same way.
func publishable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}
