package route

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"crier/apps/edge/problem"
)

// exactJSON is huma's JSON format with three differences. Member names are case-sensitive;
// otherwise, encoding/json would store "Role" in the field for role, and role would not be
// validated. A whole number may be written as 1000.0 or 1e3. Errors name the member.
var exactJSON = huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: unmarshalExact}

// unmarshalExact is like json.Unmarshal, but ignores members whose names do not exactly match a
// struct field. Its errors are of type problem.DecodeError. If v is a *any, unmarshalExact keeps
// all members; huma passes a *any to validate a body.
func unmarshalExact(data []byte, v any) error {
	if !utf8.Valid(data) {
		return problem.DecodeError{Rule: "must be UTF-8"}
	}
	exact := json.RawMessage(data)
	if _, untyped := v.(*any); !untyped {
		var err error
		if exact, err = toExact(data, reflect.TypeOf(v)); err != nil {
			return decodeError(data, err)
		}
	}
	if err := json.Unmarshal(exact, v); err != nil {
		return decodeError(data, err)
	}
	return nil
}

// decodeError converts a decoder error to a message for the client.
func decodeError(data []byte, err error) error {
	var known problem.DecodeError
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &syntax):
		return problem.DecodeError{Rule: "must be valid JSON: " + syntax.Error()}
	case !errors.As(err, &wrong):
		return problem.DecodeError{Rule: "must be valid JSON"}
	}
	if field, found := findHuge(data); found {
		return problem.DecodeError{Field: field, Rule: "must be a number of at most 64 bits"}
	}
	return problem.DecodeError{Field: wrong.Field, Rule: "must not be of the type " + strings.Fields(wrong.Value)[0]}
}

// findHuge returns the path of a number that does not fit in a float64.
func findHuge(data []byte) (path string, found bool) {
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return "", false
	}
	return hugeIn(v)
}

func hugeIn(v any) (path string, found bool) {
	switch v := v.(type) {
	case json.Number:
		_, err := v.Float64()
		return "", err != nil
	case map[string]any:
		for name, member := range v {
			if path, found := hugeIn(member); found {
				return joinPath(name, path), true
			}
		}
	case []any:
		for i, element := range v {
			if path, found := hugeIn(element); found {
				return joinPath(strconv.Itoa(i), path), true
			}
		}
	}
	return "", false
}

func joinPath(name, rest string) string { return strings.TrimSuffix(name+"."+rest, ".") }

// within prepends the name of a member, or the index of an element, to an error's field.
func within(name string, err error) error {
	var known problem.DecodeError
	if errors.As(err, &known) {
		known.Field = joinPath(name, known.Field)
		return known
	}
	return err
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// toExact adapts JSON to a value of type t. It drops members whose names do not exactly match a
// struct field, and writes whole numbers in digits. JSON that does not fit the type is returned
// unchanged.
//
// toExact returns the error from encoding/json if the JSON is invalid. It returns a
// problem.DecodeError if the JSON contains half a character or a number that an integer field
// cannot hold.
func toExact(data json.RawMessage, t reflect.Type) (json.RawMessage, error) {
	for t != nil && t.Kind() == reflect.Pointer && !t.Implements(unmarshaler) {
		t = t.Elem()
	}
	if t == nil || t.Implements(unmarshaler) || reflect.PointerTo(t).Implements(unmarshaler) {
		return data, checkWhole(data)
	}
	switch first := firstByte(data); {
	case t.Kind() == reflect.Struct && first == '{':
		var members map[string]json.RawMessage
		if err := json.Unmarshal(data, &members); err != nil {
			return nil, err
		}
		fields := jsonFields(t)
		for name, value := range members {
			field, ok := fields[name]
			if !ok {
				delete(members, name)
				continue
			}
			exact, err := toExact(value, field)
			if err != nil {
				return nil, within(name, err)
			}
			members[name] = exact
		}
		return json.Marshal(members)
	case t.Kind() == reflect.Slice && first == '[':
		var elements []json.RawMessage
		if err := json.Unmarshal(data, &elements); err != nil {
			return nil, err
		}
		for i := range elements {
			exact, err := toExact(elements[i], t.Elem())
			if err != nil {
				return nil, within(strconv.Itoa(i), err)
			}
			elements[i] = exact
		}
		return json.Marshal(elements)
	case t.Kind() == reflect.Int || t.Kind() == reflect.Int64:
		return toDigits(data)
	}
	return data, checkWhole(data)
}

// HalfCharacter is the rule that JSON breaks if HasHalfCharacter returns true.
const HalfCharacter = "must not contain half a character: the text was cut inside an emoji or another character that " +
	"JSON escapes as a pair"

func checkWhole(data []byte) error {
	if HasHalfCharacter(string(data)) {
		return problem.DecodeError{Rule: HalfCharacter}
	}
	return nil
}

// HasHalfCharacter reports whether JSON contains only one half of a surrogate pair, such as the
// escape \ud83d alone. Languages with UTF-16 strings produce such JSON when text is cut in the
// middle of a character. Go would decode the half to U+FFFD.
func HasHalfCharacter(data string) bool {
	for {
		i := strings.IndexByte(data, '\\')
		if i < 0 {
			return false
		}
		data = data[i:]
		r := escaped(data)
		switch {
		case !utf16.IsSurrogate(r):
			data = data[min(2, len(data)):] // the digits of an escape contain no backslash
		case utf16.DecodeRune(r, escaped(data[6:])) == utf8.RuneError:
			return true
		default:
			data = data[12:]
		}
	}
}

// escaped returns the value of the \uXXXX escape at the start of data, or -1 if there is none.
func escaped(data string) rune {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(data[2:6], 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

// toDigits rewrites a whole number in digits. It returns JSON other than numbers unchanged. If
// ParseWhole does not accept a number, toDigits returns a problem.DecodeError.
func toDigits(data json.RawMessage) (json.RawMessage, error) {
	var number json.Number
	if firstByte(data) == '"' || json.Unmarshal(data, &number) != nil || number == "" {
		return data, nil
	}
	n, ok := ParseWhole(number.String())
	if !ok {
		return nil, problem.DecodeError{
			Rule: "must be a whole number from -9223372036854775808 to 9223372036854775807",
		}
	}
	return strconv.AppendInt(nil, n, 10), nil
}

// maxExact is 2^53. A float64 can represent every whole number up to maxExact.
const maxExact = 1 << 53

// ParseWhole returns the value of a whole JSON number in any form: 1000, 1000.0 or 1e3. ok is false
// if the number is a fraction or needs more than 64 bits. A number with an exponent must not exceed
// 2^53.
func ParseWhole(number string) (n int64, ok bool) {
	digits, fraction, _ := strings.Cut(number, ".")
	if strings.Trim(fraction, "0") == "" {
		if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
			return n, true
		}
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > maxExact {
		return 0, false
	}
	return int64(f), true
}

// firstByte returns the first byte of JSON that is not white space, or 0 if there is none.
func firstByte(data []byte) byte {
	for _, c := range data {
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
	}
	return 0
}

// jsonFields returns the types of a struct's fields, by JSON name. It includes the fields of
// embedded structs.
func jsonFields(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported() || name == "-" || f.Anonymous && name == "":
		case name == "":
			out[f.Name] = f.Type
		default:
			out[name] = f.Type
		}
	}
	return out
}
