package post

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"crier/apps/edge/route"
	"crier/platform/fault"
	"crier/platform/paste"
	"crier/publishing"
)

// node is a value in a JSON document, together with its path. Its methods decode the value when
// they are called, and convert it as leniently as the API contract requires. All nodes of a
// document share one list of faults.
type node struct {
	value  gjson.Result
	at     string // the path, such as posts.0.value; "" for the document
	faults *fault.List
}

// parse returns the root node of a body, or Invalid if the body is not a single JSON object. It
// copies the body once and takes time proportional to the body's size.
func parse(body []byte, op string) (node, error) {
	bad := func(rule string) error {
		return &fault.Error{
			Kind: fault.Invalid, Op: op, Message: "The body is not valid.",
			Fields: []fault.Field{{Name: "body", Message: rule}},
		}
	}
	if len(body) == 0 {
		return node{}, bad("is required")
	}
	if !utf8.Valid(body) {
		return node{}, bad("must be UTF-8")
	}
	if !json.Valid(body) {
		return node{}, bad("must be one value of valid JSON")
	}
	v := gjson.ParseBytes(body)
	if !v.IsObject() {
		return node{}, bad("must be a JSON object")
	}
	return node{value: v, faults: &fault.List{}}, nil
}

func (n node) addFault(rule string) { n.faults.Add(n.at, rule) }

func (n node) child(name string, v gjson.Result) node {
	if n.at != "" {
		name = n.at + "." + name
	}
	return node{value: v, at: name, faults: n.faults}
}

// null reports whether the value is null or absent.
func (n node) null() bool { return n.value.Type == gjson.Null }

// object is a node with the members that were read from it.
type object struct {
	node
	names  []string
	values []gjson.Result // in the order of names
}

// object reads the members with the given names in one pass. If a name occurs more than once, the
// last value wins. If the value is neither an object nor null, object adds a fault and reads no
// members.
func (n node) object(names ...string) object {
	o := object{node: n, names: names, values: make([]gjson.Result, len(names))}
	switch {
	case n.null():
	case !n.value.IsObject():
		n.addFault("must be an object")
	default:
		n.value.ForEach(func(name, value gjson.Result) bool {
			if i := slices.Index(names, name.String()); i >= 0 {
				o.values[i] = value
			}
			return true
		})
	}
	return o
}

// get returns the member with the given name. An absent member is null.
func (o object) get(name string) node {
	var value gjson.Result
	if i := slices.Index(o.names, name); i >= 0 {
		value = o.values[i]
	}
	return o.child(name, value)
}

// text returns the string in n, or "" if n is null. It adds a fault for any other value, and for a
// string that contains NUL or half a character (see route.HasHalfCharacter).
func (n node) text() string {
	if n.null() {
		return ""
	}
	if n.value.Type != gjson.String {
		n.addFault("must be a string")
		return ""
	}
	s := n.value.String()
	if route.HasHalfCharacter(n.value.Raw) {
		n.addFault(route.HalfCharacter)
	}
	if !publishing.Storable(s) {
		n.addFault("must not hold the character NUL")
	}
	return s
}

// maxName is the maximum length of an id or a URL, in bytes.
const maxName = 2048

// name returns the string in n, such as an id or a URL. If the string is longer than maxName bytes,
// name adds a fault and returns "".
func (n node) name() string {
	s := n.text()
	if len(s) > maxName {
		n.addFault("must be at most " + strconv.Itoa(maxName) + " bytes")
		return ""
	}
	return s
}

// reference is like name, but removes white space and hidden characters that were pasted before or
// after the text.
func (n node) reference() string { return paste.Trim(n.name()) }

// flag returns the boolean in n, or false if n is null or an empty string. It also accepts a
// boolean written as a string. It adds a fault for any other value.
func (n node) flag() bool {
	switch n.value.Type {
	case gjson.Null:
		return false
	case gjson.True, gjson.False:
		return n.value.Bool()
	case gjson.String:
		if b, err := strconv.ParseBool(n.value.String()); err == nil || n.value.String() == "" {
			return b
		}
	}
	n.addFault("must be true or false")
	return false
}

// number returns the whole number in n, or 0 if n is null or an empty string. It adds a fault for
// any other value.
func (n node) number() int {
	switch {
	case n.null(), n.value.Type == gjson.String && n.value.String() == "":
		return 0
	case n.value.Type == gjson.Number:
		if i, ok := route.ParseWhole(n.value.Raw); ok {
			return int(i)
		}
		if f := n.value.Float(); f == math.Trunc(f) {
			n.addFault("must be a whole number of at most 64 bits")
			return 0
		}
	}
	n.addFault("must be a whole number")
	return 0
}

// list returns the elements of an array, or none if n is null. It adds a fault for any other value.
// If the array has more than most elements, list returns the first most+1, so that the caller can
// tell that there are too many. If the list of faults is full, list returns no elements.
func (n node) list(most int) (out []node) {
	if n.faults.Full() {
		return nil
	}
	if !n.value.IsArray() {
		if !n.null() {
			n.addFault("must be an array")
		}
		return nil
	}
	n.value.ForEach(func(_, v gjson.Result) bool {
		out = append(out, n.child(strconv.Itoa(len(out)), v))
		return len(out) <= most
	})
	return out
}

// raw returns the value as JSON with its members sorted. If the value is larger than most bytes,
// raw returns it unchanged. It adds a fault if the value contains half a character.
func (n node) raw(most int) json.RawMessage {
	sent := json.RawMessage(n.value.Raw)
	if route.HasHalfCharacter(n.value.Raw) {
		n.addFault(route.HalfCharacter)
	}
	if len(sent) > most {
		return sent
	}
	sorted, err := sortMembers(sent)
	if err != nil {
		n.addFault("must be valid JSON")
		return nil
	}
	return sorted
}

// sortMembers returns a JSON value with its object members sorted and its numbers unchanged. If
// sent is not valid JSON, it returns the error from encoding/json.
func sortMembers(sent json.RawMessage) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(sent))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // escaping would turn one byte into six that count toward the limit
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
