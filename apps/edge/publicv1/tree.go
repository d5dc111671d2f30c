package publicv1

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"unicode/utf8"

	"crier/platform/fault"
	"crier/publishing"
)

// node is one value of a JSON document with its place, read as leniently as the contract says. Faults gather in one list.
type node struct {
	value any
	at    string
	all   *[]fault.Field
}

// parse reads one JSON object and nothing after it.
func parse(body []byte, op string) (node, error) {
	bad := func(words string) error {
		return &fault.Error{Kind: fault.Invalid, Op: op, Message: "The body is not valid.", Fields: []fault.Field{{Name: "body", Message: words}}}
	}
	if !utf8.Valid(body) {
		return node{}, bad("must be UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return node{}, bad("must be valid JSON")
	}
	if _, err := d.Token(); err != io.EOF {
		return node{}, bad("must be one JSON object")
	}
	if _, ok := v.(map[string]any); !ok {
		return node{}, bad("must be a JSON object")
	}
	return node{value: v, all: &[]fault.Field{}}, nil
}

func (n node) fault(words string) { *n.all = append(*n.all, fault.Field{Name: n.at, Message: words}) }

func (n node) child(name string, v any) node {
	if n.at != "" {
		name = n.at + "." + name
	}
	return node{v, name, n.all}
}

// get finds a member; absent members, and those of anything that is no object, are null.
func (n node) get(name string) node {
	m, _ := n.value.(map[string]any)
	return n.child(name, m[name])
}

// object tells whether the value is an object, and finds fault when it is something else than null.
func (n node) object() bool {
	_, ok := n.value.(map[string]any)
	if !ok && n.value != nil {
		n.fault("must be an object")
	}
	return ok
}

// text is "" for null.
func (n node) text() string {
	s, ok := n.value.(string)
	if !ok && n.value != nil {
		n.fault("must be a string")
	}
	if !publishing.Storable(s) {
		n.fault("must not hold the character NUL")
	}
	return s
}

// flag is false for null and the empty string.
func (n node) flag() bool {
	switch v := n.value.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		if b, err := strconv.ParseBool(v); err == nil || v == "" {
			return b
		}
	}
	n.fault("must be true or false")
	return false
}

// number is 0 for null and the empty string.
func (n node) number() int {
	switch v := n.value.(type) {
	case nil:
		return 0
	case json.Number:
		if i, err := strconv.Atoi(v.String()); err == nil {
			return i
		}
		if f, err := v.Float64(); err == nil && f == float64(int32(f)) {
			return int(f)
		}
	case string:
		if v == "" {
			return 0
		}
	}
	n.fault("must be a whole number")
	return 0
}

// list is empty for null.
func (n node) list() []node {
	items, ok := n.value.([]any)
	if !ok && n.value != nil {
		n.fault("must be an array")
	}
	out := make([]node, len(items))
	for i, v := range items {
		out[i] = n.child(strconv.Itoa(i), v)
	}
	return out
}

// raw is the value as JSON, its members in order.
func (n node) raw() json.RawMessage {
	b, err := json.Marshal(n.value)
	if err != nil {
		n.fault("must be valid JSON")
		return nil
	}
	return b
}
