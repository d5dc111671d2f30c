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

	"crier/platform/text"
)

// Limits on data returned by platforms, in bytes unless another unit is given.
const (
	maxID          = 1024
	maxURL         = 2048
	maxName        = 512
	maxDestination = 255
	maxCode        = 128
	maxPublic      = 1024
	maxRaw         = 4096
	maxCause       = 8 << 10  // an error in the log, which may include a panic's stack trace
	maxDocument    = 8 << 10  // a JSON document: Ref.Data, Account.Data, Step.Handle
	maxCredential  = 16 << 10 // a credential; the schema has room for it once it is sealed
	maxDepth       = 64       // levels of nesting in a JSON document
	maxNumber      = 64       // digits, sign and exponent of a number in a JSON document
)

// cleanURL returns an http or https URL unchanged. It returns "" for any other URL, because a link
// with another scheme might run code on the page that shows it. It also returns "" for a URL that
// text.Line would change, because a truncated URL leads to a different page.
func cleanURL(address string) string {
	if text.Line(address, maxURL) != address {
		return ""
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	return address
}

// CleanRef returns a copy of ref that is safe to store. The ID is at most 1,024 bytes long. The URL
// is either "" or an http or https URL of at most 2,048 bytes. Data is either nil or a JSON
// document of at most 8 KB.
//
// CleanRef never fails, because the post has already been published. If no part of the ID is
// usable, the returned ID is empty.
func CleanRef(ref Ref) Ref {
	ref.ID = text.Line(ref.ID, maxID)
	ref.URL = cleanURL(ref.URL)
	data, err := cleanJSON(ref.Data)
	if err != nil {
		// without Data, a reply to this part will fail
		data = nil
	}
	ref.Data = data
	return ref
}

// cleanError returns a copy of err whose text is safe to store and log. Code is at most 128 bytes
// long, Public 1,024 and Raw 4,096. After is between 0 and 30 days. During a commit, an invalid
// kind becomes KindUnknown. Outside a commit, KindUnknown or an invalid kind becomes KindTransient.
//
// cleanError truncates the text of Err, or the text of an error that is not an *Error, to 8 KB. The
// result wraps the original error.
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
		out.Err = err // keeps the text of the wrapping errors
	}
	switch {
	case out.Kind.valid() && (committing || out.Kind != KindUnknown):
	case committing:
		out.Kind = KindUnknown
	default:
		out.Kind = KindTransient
	}
	out.After = min(max(out.After, 0), maxAfter)
	out.Code = text.Line(out.Code, maxCode)
	out.Public = text.Line(out.Public, maxPublic)
	out.Raw = text.Line(out.Raw, maxRaw)
	out.Err = cleanCause(out.Err)
	return &out
}

// cleanErr wraps an error that may contain text from another party. Its Error method returns a
// cleaned copy of that text.
type cleanErr struct {
	words string
	err   error
}

func cleanCause(err error) error {
	if err == nil {
		return nil
	}
	return &cleanErr{words: text.Line(err.Error(), maxCause), err: err}
}

func (c *cleanErr) Error() string { return c.words }

func (c *cleanErr) Unwrap() error { return c.err }

// cleanAccount returns a copy of an account that is safe to store. Name and Profile are at most 512
// bytes long, Picture 2,048, Destination 255 and Data 8 KB. It returns KindContent if Data is
// invalid or if the ID cannot be stored unchanged, because a changed ID could belong to another
// account.
func cleanAccount(a Account) (Account, error) {
	if a.ID == "" || text.Line(a.ID, maxID) != a.ID {
		const public = "The platform returned an account ID that cannot be stored."
		return Account{}, &Error{Kind: KindContent, Public: public}
	}
	data, err := cleanJSON(a.Data)
	if err != nil {
		const public = "The platform returned details of this account that cannot be stored."
		return Account{}, &Error{Kind: KindContent, Public: public, Err: err}
	}
	a.Name, a.Profile = text.Line(a.Name, maxName), text.Line(a.Profile, maxName)
	a.Picture, a.Data = cleanURL(a.Picture), data
	a.Destination = text.Line(a.Destination, maxDestination)
	return a, nil
}

var (
	errDocument = errors.New("not a JSON document that can be stored")
	errTooLarge = errors.New("a JSON document larger than 8 KB")
)

// cleanJSON returns raw in a form that can be stored in a jsonb column, or nil if raw is empty. It
// removes U+0000 from strings and names, replaces invalid characters with U+FFFD, and replaces
// numbers that jsonb cannot store with null. It keeps other control characters, because JSON
// escapes them and because a Handle may contain text that is hashed later.
//
// cleanJSON returns an error if raw is not JSON, is larger than 8 KB or is nested more than 64
// levels deep.
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

// cleaner records whether a value was changed, because an unchanged document keeps its bytes.
type cleaner struct {
	changed bool
	deep    bool // the document has more than maxDepth levels
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

// text removes U+0000. The decoder has already replaced invalid bytes with U+FFFD.
func (c *cleaner) text(s string) string {
	out := strings.ReplaceAll(s, "\x00", "")
	c.changed = c.changed || out != s
	return out
}

// number returns nil for a number that a numeric column might reject. jsonb keeps every digit, and
// 1e999999 has too many.
func (c *cleaner) number(n json.Number) any {
	f, err := strconv.ParseFloat(n.String(), 64)
	mantissa, _, _ := strings.Cut(strings.ToLower(n.String()), "e")
	if err != nil || len(n) > maxNumber || f == 0 && strings.ContainsAny(mantissa, "123456789") {
		c.changed = true
		return nil
	}
	return n
}

// Quote formats text from a client for use in a sentence: on one line, in quotation marks,
// truncated to 100 characters.
func Quote(sent string) string {
	const longest = 100
	line := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || text.Hidden(r) {
			return ' '
		}
		return r
	}, sent)
	if cut := text.Cut(line, longest); cut != line {
		line = cut + "…"
	}
	return `"` + line + `"`
}
