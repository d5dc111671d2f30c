package publicv1

import (
	"bytes"
	"encoding/json"
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

// maxMembers is how many members an object may have.
const maxMembers = 1000

// object is the members of a node.
type object struct {
	node
	members map[string]gjson.Result
}

// object reads the members; of equal names the last one counts. It finds fault with what is no object and not null, and
// then there are none.
func (n node) object() object {
	o := object{n, nil}
	switch {
	case n.null():
	case !n.value.IsObject():
		n.fault("must be an object")
	default:
		o.members = map[string]gjson.Result{}
		n.value.ForEach(func(name, value gjson.Result) bool {
			o.members[name.String()] = value
			return len(o.members) <= maxMembers
		})
	}
	if len(o.members) > maxMembers {
		n.fault("must have at most " + strconv.Itoa(maxMembers) + " members")
		o.members = nil
	}
	return o
}

// get finds a member; absent members, and those of anything that is no object, are null.
func (o object) get(name string) node { return o.child(name, o.members[name]) }

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

// raw is the value as JSON, its members in order. A value of more than most bytes stays as it was sent.
func (n node) raw(most int) json.RawMessage {
	sent := json.RawMessage(n.value.Raw)
	if len(sent) > most {
		return sent
	}
	d := json.NewDecoder(bytes.NewReader(sent))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	if err == nil {
		sent, err = json.Marshal(v)
	}
	if err != nil {
		n.fault("must be valid JSON")
		return nil
	}
	return sent
}
