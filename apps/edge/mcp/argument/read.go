package argument

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"crier/apps/edge/record"
	"crier/apps/edge/route"
	"crier/platform/fault"
	"crier/platform/paste"
	"crier/publishing"
)

// Read checks a call's arguments against their schema and returns them in exactly the form that the
// schema describes. It also accepts variations that models often send: null for an absent argument,
// a string for a number or a flag, JSON in a string, and a single value for a list of one.
//
// Read drops null elements from lists and returns the original indices of the remaining elements.
// If the elements may be blank, Read replaces null with an empty string instead.
//
// If any arguments are invalid, Read returns a Failure. Its message lists at most fault.MaxListed
// invalid arguments. Its other fields describe the first of these arguments.
func Read(s *Schema, sent json.RawMessage) (json.RawMessage, Indices, error) {
	var value any = map[string]any{}
	if len(bytes.TrimSpace(sent)) > 0 {
		d := json.NewDecoder(bytes.NewReader(sent))
		d.UseNumber()
		if err := d.Decode(&value); err != nil {
			return nil, nil, &Failure{Code: CodeInvalid, Message: "The arguments must be a JSON object."}
		}
	}
	if value == nil {
		value = map[string]any{}
	}
	r := &reader{indices: Indices{}}
	value = r.read(s, "", value)
	if err := r.err(); err != nil {
		return nil, nil, err
	}
	out, err := json.Marshal(value)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Internal, "argument.Read", "", err)
	}
	return out, r.indices, nil
}

// Indices maps the path of each list from which Read dropped elements to the original indices of
// the remaining elements.
type Indices map[string][]int

// Sent returns the path of an argument in the client's request. Example: if Read dropped the first
// of two posts, Sent("socialPost.0.date") is socialPost.1.date.
func (x Indices) Sent(path string) string {
	out := ""
	for segment := range strings.SplitSeq(path, ".") {
		i, err := strconv.Atoi(segment)
		if sent := x[out]; err == nil && i >= 0 && i < len(sent) {
			segment = strconv.Itoa(sent[i])
		}
		out = Join(out, segment)
	}
	return out
}

// Index returns the index of a list element in the client's request. list is the list's path.
func (x Indices) Index(list string, i int) int {
	if sent := x[x.Sent(list)]; i < len(sent) {
		return sent[i]
	}
	return i
}

// reader collects the faults in a call's arguments.
type reader struct {
	failures []*Failure
	indices  Indices
}

func (r *reader) add(f Failure) {
	if len(r.failures) < fault.MaxListed {
		r.failures = append(r.failures, &f)
	}
}

// err combines all faults into one failure, or returns nil if there are none. The field, the
// allowed values and the next call come from the first fault.
func (r *reader) err() error {
	if len(r.failures) == 0 {
		return nil
	}
	out := *r.failures[0]
	for _, f := range r.failures[1:] {
		out.Message += " " + f.Message
	}
	return &out
}

// read converts a value to the form that s describes. at is the value's path. If the value does not
// match s, read adds a fault.
func (r *reader) read(s *Schema, at string, value any) any {
	value = lenient(s, value)
	ok := true
	switch s.Type {
	case TypeObject:
		if members, is := value.(map[string]any); is {
			return r.readObject(s, at, members)
		}
		ok = false
	case TypeArray:
		if elements, is := value.([]any); is {
			return r.readList(s, at, elements)
		}
		ok = false
	case TypeString:
		if words, is := value.(string); is {
			return r.readText(s, at, words)
		}
		ok = false
	case TypeInteger:
		if n, is := value.(json.Number); is {
			return r.readNumber(s, at, n)
		}
		ok = false
	case TypeBoolean:
		_, ok = value.(bool)
	}
	if !ok {
		r.wrongType(s, at)
	}
	return value
}

// wrongType adds a fault for a value whose type does not match s.
func (r *reader) wrongType(s *Schema, at string) {
	what := map[string]string{
		TypeObject: "an object", TypeArray: "a list", TypeString: "a string", TypeInteger: "a whole number",
		TypeBoolean: "true or false",
	}[s.Type]
	f := Failure{Code: CodeInvalid, Field: at, Message: fmt.Sprintf("%s must be %s.", named(at), what), Allowed: s.Enum}
	if s.Type == TypeBoolean {
		f.Allowed = []any{true, false}
	}
	r.add(f)
}

// named returns the argument's name as it appears in a message.
func named(at string) string {
	if at == "" {
		return "The arguments"
	}
	return at
}

func (r *reader) readObject(s *Schema, at string, members map[string]any) any {
	allowed := slices.Sorted(maps.Keys(s.Properties))
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		value, path := members[name], Join(at, name)
		of := s.Properties[name]
		switch {
		case of == nil:
			r.add(unknownArgument(path, allowed))
		case isAbsent(of, value):
		default:
			out[name] = r.read(of, path, value)
		}
	}
	for _, name := range s.Required {
		if _, sent := out[name]; sent {
			continue
		}
		path, of := Join(at, name), s.Properties[name]
		f := Failure{Code: CodeMissing, Field: path, Message: path + " is missing.", Allowed: of.Enum}
		if of.Next != "" {
			f.Next = &NextCall{Tool: of.Next, Arguments: map[string]any{}}
		}
		r.add(f)
	}
	return out
}

// unknownArgument returns the failure for an argument that does not exist. The message quotes the
// argument's path, which is truncated if it is too long.
func unknownArgument(path string, allowed []string) Failure {
	values := make([]any, len(allowed))
	for i, name := range allowed {
		values[i] = name
	}
	message := "There is no argument " + Quote(path) + "."
	if len(allowed) == 0 {
		message += " This tool takes no arguments."
	}
	return Failure{Code: CodeUnknown, Field: CutName(path), Message: message, Allowed: values}
}

// isAbsent reports whether a value counts as absent. Null counts as absent, and so does a blank
// string unless the schema has Blank set. Neither counts as absent if the schema has no type,
// because null removes a setting.
func isAbsent(s *Schema, value any) bool {
	words, isText := value.(string)
	return value == nil && s.Type != "" || isText && s.Type != "" && !s.Blank && strings.TrimSpace(words) == ""
}

func (r *reader) readList(s *Schema, at string, elements []any) any {
	if s.Items.Blank { // the list is parallel to another one, so its nulls must keep their places
		for i, element := range elements {
			if element == nil {
				elements[i] = ""
			}
		}
	}
	var kept []int
	for i, element := range elements {
		if element != nil {
			kept = append(kept, i)
		}
	}
	if len(kept) < s.MinItems || s.MaxItems > 0 && len(kept) > s.MaxItems {
		r.add(Failure{
			Code: CodeInvalid, Field: at,
			Message: fmt.Sprintf("%s must have %d to %d elements.", at, s.MinItems, s.MaxItems),
		})
		return []any{}
	}
	out := make([]any, 0, len(kept))
	for _, i := range kept {
		out = append(out, r.read(s.Items, Join(at, strconv.Itoa(i)), elements[i]))
	}
	if len(kept) < len(elements) {
		r.indices[at] = kept
	}
	return out
}

func (r *reader) readText(s *Schema, at, words string) any {
	if s.Word || len(s.Enum) > 0 {
		words = paste.Word(words)
	}
	rule := ""
	switch {
	case !publishing.Storable(words):
		rule = "must be valid text without NUL characters"
	case s.MaxLength > 0 && len(words) > s.MaxLength:
		rule = fmt.Sprintf("must have at most %d bytes", s.MaxLength)
	case s.Format == FormatDate:
		return r.readDate(at, words)
	case len(s.Enum) > 0 && !slices.Contains(s.Enum, any(words)):
		rule = "must be one of the values in allowed"
	}
	if rule != "" {
		r.add(Failure{Code: CodeInvalid, Field: at, Message: at + " " + rule + ".", Allowed: s.Enum})
	}
	return words
}

// readDate returns a date in UTC. It rejects a date without an offset, because a model would mean
// local time, whereas the service would interpret the date as UTC.
func (r *reader) readDate(at, words string) any {
	t, rule := record.DateOrRule(words)
	if rule == "" && !record.HasOffset(words) {
		rule = "must be a date and time with an offset, such as 2026-01-02T15:04:05+01:00 or 2026-01-02T15:04:05Z"
	}
	if rule != "" {
		r.add(Failure{Code: CodeInvalid, Field: at, Message: at + " " + rule + "."})
		return nil
	}
	return t
}

func (r *reader) readNumber(s *Schema, at string, n json.Number) any {
	whole, ok := route.ParseWhole(n.String())
	switch {
	case !ok:
		r.wrongType(s, at)
	case s.Minimum != nil && whole < int64(*s.Minimum) || s.Maximum != nil && whole > int64(*s.Maximum):
		r.add(Failure{
			Code: CodeInvalid, Field: at,
			Message: fmt.Sprintf("%s must be a number from %d to %d.", at, *s.Minimum, *s.Maximum),
		})
	}
	return whole
}

// lenient converts a value to s's type if the value has only one possible meaning.
func lenient(s *Schema, value any) any {
	words, isText := value.(string)
	words = strings.TrimSpace(words)
	switch {
	case s.Type == TypeInteger && isText && IsNumber(words):
		return json.Number(words)
	case s.Type == TypeBoolean && isText && (words == "true" || words == "false"):
		return words == "true"
	case s.Type == TypeString && !isText && s.Format == "":
		if n, is := value.(json.Number); is {
			return n.String()
		}
	case s.Type == TypeObject && isText,
		s.Type == TypeArray && isText && (strings.HasPrefix(words, "[") || s.Items.Type == TypeObject):
		value = decodeText(words, value)
	}
	if s.Type != TypeArray {
		return value
	}
	if members, is := value.(map[string]any); is && s.Pairs && !isPair(members) {
		return pairsOf(members)
	}
	if _, is := value.([]any); !is {
		return []any{value}
	}
	return value
}

// IsNumber reports whether a string is a number in JSON syntax.
func IsNumber(words string) bool {
	var n json.Number
	return words != "" && words[0] != '"' && json.Unmarshal([]byte(words), &n) == nil
}

// decodeText returns the JSON object or array in a string. If the string contains neither,
// decodeText returns otherwise.
func decodeText(words string, otherwise any) any {
	d := json.NewDecoder(strings.NewReader(words))
	d.UseNumber()
	var out any
	if d.Decode(&out) != nil || out == nil {
		return otherwise
	}
	if members, is := out.(map[string]any); is {
		return members
	}
	if elements, is := out.([]any); is {
		return elements
	}
	return otherwise
}

// isPair reports whether an object is a single pair, which has the members key and value. The value
// may be missing if there are no other members.
func isPair(members map[string]any) bool {
	_, key := members["key"]
	_, value := members["value"]
	return key && (value || len(members) == 1)
}

// pairsOf converts an object to a list of key-value pairs, sorted by key.
func pairsOf(members map[string]any) any {
	out := []any{}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		out = append(out, map[string]any{"key": name, "value": members[name]})
	}
	return out
}

// Join appends a member's name or an element's index to the path at.
func Join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}
