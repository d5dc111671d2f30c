package connector

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The bounds of what a platform says, in bytes.
const (
	maxID          = 1024
	maxURL         = 2048
	maxName        = 512
	maxDestination = 255
	maxCode        = 128
	maxPublic      = 1024
	maxRaw         = 4096
	maxCause       = 8 << 10  // of an error in the log, which may have the stack of a panic
	maxDocument    = 8 << 10  // of a JSON document: Ref.Data, Account.Data, Step.Handle
	maxCredential  = 16 << 10 // of the access; the schema has room for it sealed
	maxDepth       = 64       // levels of nesting in such a document
	maxNumber      = 64       // digits, sign and exponent of a number in it
)

// Clean returns words of another party as one line that any store can hold: valid UTF-8 without U+0000, other
// control characters and what is Hidden, of at most limit bytes. White space of any kind and length becomes one space, none at the ends;
// what is not valid is left out; a cut never splits a character.
func Clean(words string, limit int) string {
	var b strings.Builder
	space := false
	for i, r := range words {
		switch {
		case unicode.IsSpace(r):
			space = b.Len() > 0
			continue
		case unicode.IsControl(r), Hidden(r), r == utf8.RuneError && !strings.HasPrefix(words[i:], "\uFFFD"):
			continue
		}
		size := utf8.RuneLen(r)
		if space {
			size++
		}
		if b.Len()+size > limit {
			break
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Hidden returns whether a character is not seen and changes how others are: it turns the direction of writing, or has no
// width. Those that join letters and emoji are not meant.
func Hidden(r rune) bool {
	return unicode.Is(unicode.Bidi_Control, r) || r == '\u200B' || r == '\u2060' || r == '\uFEFF'
}

// cleanURL returns an http or https address, or "" when it is none or cannot be kept as it is: a cut address leads
// elsewhere, and one of another scheme may run code in the page that shows it.
func cleanURL(address string) string {
	if Clean(address, maxURL) != address {
		return ""
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	return address
}

// CleanRef returns a reference that any store can hold: an ID of at most 1,024 bytes, an http or https URL of at most
// 2,048 or none, and Data that is a JSON document of at most 8 KB or absent. It never fails: whatever the reference
// says, the post is out. Where the platform gave no usable ID, the ID is empty.
func CleanRef(ref Ref) Ref {
	ref.ID = Clean(ref.ID, maxID)
	ref.URL = cleanURL(ref.URL)
	data, err := cleanJSON(ref.Data)
	if err != nil {
		data = nil // a reply says then that it cannot refer to this part
	}
	ref.Data = data
	return ref
}

// cleanError returns a copy of what err says, with words that any store and log can hold: a Code of at most 128 bytes,
// Public of at most 1,024, Raw of at most 4,096, and a wait from 0 to 30 days. A kind that is none, or that no call but
// a commit may have, becomes unknown in a commit and transient elsewhere. Err, and an error of another type, says at most
// 8 KB, and wraps what it was.
func cleanError(err error, committing bool) error {
	var e *Error
	if !errors.As(err, &e) {
		return cleanCause(err)
	}
	if e == nil {
		return errors.New("the connector failed without saying why")
	}
	out := *e
	if err != error(e) {
		out.Err = err // the wrapping has words of its own
	}
	switch {
	case out.Kind.valid() && (committing || out.Kind != KindUnknown):
	case committing:
		out.Kind = KindUnknown
	default:
		out.Kind = KindTransient
	}
	out.After = min(max(out.After, 0), maxAfter)
	out.Code = Clean(out.Code, maxCode)
	out.Public = Clean(out.Public, maxPublic)
	out.Raw = Clean(out.Raw, maxRaw)
	out.Err = cleanCause(out.Err)
	return &out
}

// cause is an error whose words may hold another party's, in words that a log can hold.
type cause struct {
	words string
	err   error
}

// cleanCause returns nil for nil.
func cleanCause(err error) error {
	if err == nil {
		return nil
	}
	return &cause{Clean(err.Error(), maxCause), err}
}

// Error returns the clean words.
func (c *cause) Error() string { return c.words }

// Unwrap returns the error as it was, for errors.Is and errors.As.
func (c *cause) Unwrap() error { return c.err }

// cleanAccount returns an account with words that any store can hold: Name and Profile of at most 512 bytes, a Picture
// of at most 2,048 or none, a Destination of at most 255, and Data that is a JSON document of at most 8 KB or absent.
// An ID is kept as it is or refused, since a changed one could be another account's.
func cleanAccount(a Account) (Account, error) {
	if a.ID == "" || Clean(a.ID, maxID) != a.ID {
		const public = "The platform gives this account an ID that cannot be stored."
		return Account{}, &Error{Kind: KindContent, Public: public}
	}
	data, err := cleanJSON(a.Data)
	if err != nil {
		const public = "The platform describes this account in a way that cannot be stored."
		return Account{}, &Error{Kind: KindContent, Public: public, Err: err}
	}
	a.Name, a.Profile = Clean(a.Name, maxName), Clean(a.Profile, maxName)
	a.Picture, a.Data = cleanURL(a.Picture), data
	a.Destination = Clean(a.Destination, maxDestination)
	return a, nil
}

var (
	errDocument = errors.New("not a JSON document that can be stored")
	errTooLarge = errors.New("a JSON document of more than 8 KB")
)

// cleanJSON returns a document that a jsonb column holds, nil for an empty one. U+0000 is left out of strings and
// names, what is no character becomes U+FFFD, and numbers that jsonb has no room for become null. Other control
// characters stay: JSON escapes them, and a Handle may hold a text whose hash counts. A document that is not JSON,
// larger than 8 KB or nested in more than 64 levels is an error.
func cleanJSON(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if len(raw) > maxDocument {
		return nil, errTooLarge
	}
	if !json.Valid(raw) {
		return nil, errDocument
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var doc any
	if err := dec.Decode(&doc); err != nil {
		return nil, errors.Join(errDocument, err)
	}
	c := cleaner{}
	doc = c.value(doc, 0)
	if c.deep {
		return nil, errDocument
	}
	if !c.changed && utf8.Valid(raw) && !bytes.Contains(raw, []byte(`\u`)) {
		return raw, nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(doc); err != nil {
		return nil, errors.Join(errDocument, err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// cleaner walks through a document.
type cleaner struct {
	changed bool
	deep    bool
}

func (c *cleaner) value(v any, depth int) any {
	if depth > maxDepth {
		c.deep = true
		return nil
	}
	switch v := v.(type) {
	case string:
		return c.text(v)
	case json.Number:
		return c.number(v)
	case []any:
		for i := range v {
			v[i] = c.value(v[i], depth+1)
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[c.text(name)] = c.value(member, depth+1)
		}
		return out
	}
	return v
}

// text leaves U+0000 out. The decoder has replaced by U+FFFD whatever is not valid.
func (c *cleaner) text(s string) string {
	out := strings.ReplaceAll(s, "\x00", "")
	c.changed = c.changed || out != s
	return out
}

// number returns nil for what a numeric column may refuse: jsonb keeps every digit, and 1e999999 has too many for it.
func (c *cleaner) number(n json.Number) any {
	f, err := strconv.ParseFloat(n.String(), 64)
	mantissa, _, _ := strings.Cut(strings.ToLower(n.String()), "e")
	if err != nil || len(n) > maxNumber || f == 0 && strings.ContainsAny(mantissa, "123456789") {
		c.changed = true
		return nil
	}
	return n
}
