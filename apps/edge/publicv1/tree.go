package publicv1

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"crier/platform/fault"
	"crier/publishing"
)

// node is one value of a JSON document with its place, read as leniently as the contract says. It is a view of the
// document: nothing is decoded before it is asked for. Faults gather in one list.
type node struct {
	value  gjson.Result
	at     string
	faults *fault.List
}

// parse reads one JSON object and nothing after it. The time is linear in the body, and no part of it is copied but the
// whole, once.
func parse(body []byte, op string) (node, error) {
	bad := func(words string) error {
		return &fault.Error{Kind: fault.Invalid, Op: op, Message: "The body is not valid.", Fields: []fault.Field{{Name: "body", Message: words}}}
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

func (n node) fault(words string) { n.faults.Add(n.at, words) }

func (n node) child(name string, v gjson.Result) node {
	if n.at != "" {
		name = n.at + "." + name
	}
	return node{v, name, n.faults}
}

// null is true of absent members, too.
func (n node) null() bool { return n.value.Type == gjson.Null }

// object is some members of a node.
type object struct {
	node
	names  []string
	values []gjson.Result // of the names
}

// object reads the members with these names, in one pass; of equal names the last one counts. It adds a fault for what is
// no object and not null, and then there are none.
func (n node) object(names ...string) object {
	o := object{n, names, make([]gjson.Result, len(names))}
	switch {
	case n.null():
	case !n.value.IsObject():
		n.fault("must be an object")
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

// get returns a member that was read; absent members, and those of anything that is no object, are null.
func (o object) get(name string) node {
	var value gjson.Result
	if i := slices.Index(o.names, name); i >= 0 {
		value = o.values[i]
	}
	return o.child(name, value)
}

// text is "" for null.
func (n node) text() string {
	if n.null() {
		return ""
	}
	if n.value.Type != gjson.String {
		n.fault("must be a string")
		return ""
	}
	s := n.value.String()
	if !publishing.Storable(s) {
		n.fault("must not hold the character NUL")
	}
	return s
}

// maxName is how many bytes an id or an address may have.
const maxName = 2048

// name is text of an id or an address.
func (n node) name() string {
	s := n.text()
	if len(s) > maxName {
		n.fault("must be at most " + strconv.Itoa(maxName) + " bytes")
		return ""
	}
	return s
}

// flag is false for null and the empty string.
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
	n.fault("must be true or false")
	return false
}

// number is 0 for null and the empty string.
func (n node) number() int {
	switch {
	case n.null(), n.value.Type == gjson.String && n.value.String() == "":
		return 0
	case n.value.Type == gjson.Number:
		if i, err := strconv.Atoi(n.value.Raw); err == nil {
			return i
		}
		if f := n.value.Float(); f == float64(int32(f)) {
			return int(f)
		}
	}
	n.fault("must be a whole number")
	return 0
}

// list is empty for null. Of an array with more than most elements it has one more than most, and no other is read; nor is
// anything when there are more faults than are told.
func (n node) list(most int) (out []node) {
	if n.faults.Full() {
		return nil
	}
	if !n.value.IsArray() {
		if !n.null() {
			n.fault("must be an array")
		}
		return nil
	}
	n.value.ForEach(func(_, v gjson.Result) bool {
		out = append(out, n.child(strconv.Itoa(len(out)), v))
		return len(out) <= most
	})
	return out
}

// raw is the value as JSON, its members sorted by name. A value of more than most bytes stays as it was sent.
func (n node) raw(most int) json.RawMessage {
	sent := json.RawMessage(n.value.Raw)
	if len(sent) > most {
		return sent
	}
	d := json.NewDecoder(bytes.NewReader(sent))
	d.UseNumber()
	var v any
	var b bytes.Buffer
	err := d.Decode(&v)
	if err == nil {
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false) // an escape is six bytes for one, which count
		err = e.Encode(v)
	}
	if err != nil {
		n.fault("must be valid JSON")
		return nil
	}
	return bytes.TrimSpace(b.Bytes())
}
