package route

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// exactJSON is the JSON of huma, but names of members are compared with regard to case: encoding/json stores "Role" in
// the field role, behind the validation of the member role.
var exactJSON = huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: unmarshalExact}

// unmarshalExact is json.Unmarshal without the members of objects that no field of their struct has exactly the name
// of.
func unmarshalExact(data []byte, v any) error {
	exact, err := dropInexact(data, reflect.TypeOf(v))
	if err != nil {
		return err
	}
	return json.Unmarshal(exact, v)
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// dropInexact returns JSON for a value of a type without the members whose names are not exactly those of its structs.
// JSON that does not fit the type stays as it is. The error is that of JSON that is not valid.
func dropInexact(data json.RawMessage, t reflect.Type) (json.RawMessage, error) {
	for t != nil && t.Kind() == reflect.Pointer && !t.Implements(unmarshaler) {
		t = t.Elem()
	}
	if t == nil || t.Implements(unmarshaler) || reflect.PointerTo(t).Implements(unmarshaler) {
		return data, nil
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
			exact, err := dropInexact(value, field)
			if err != nil {
				return nil, err
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
			exact, err := dropInexact(elements[i], t.Elem())
			if err != nil {
				return nil, err
			}
			elements[i] = exact
		}
		return json.Marshal(elements)
	}
	return data, nil
}

// firstByte returns the first byte of JSON that is no space, 0 for none.
func firstByte(data []byte) byte {
	for _, c := range data {
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
	}
	return 0
}

// jsonFields returns the types of the fields of a struct, and of those embedded in it, by their names in JSON.
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
