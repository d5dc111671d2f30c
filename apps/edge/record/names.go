package record

import (
	"errors"
	"strings"

	"crier/platform/fault"
)

// wholeNames maps a field path in a command to its JSON name. It holds the paths that cannot be
// converted segment by segment.
var wholeNames = map[string]string{
	"to": "status", "repeat.days": "inter", "repeat.count": "interCount", "repeat.until": "interUntil",
}

// segmentNames maps a segment of a field path in a command to its JSON name, if the two differ.
var segmentNames = map[string]string{
	"entries": "posts", "channel": "integration.id", "parts": "value", "media": "image",
	"times": "time", "minute": "time",
}

// jsonName converts a field path in a command to the path in the JSON request. Example:
// "entries.0.parts.1.type" becomes "posts.0.value.1.contentType".
func jsonName(member string) string {
	if name, ok := wholeNames[member]; ok {
		return name
	}
	segments := strings.Split(member, ".")
	for i, s := range segments {
		if name, ok := segmentNames[s]; ok {
			segments[i] = name
		}
		if s == "type" && i > 0 {
			segments[i] = "contentType"
		}
	}
	return strings.Join(segments, ".")
}

// WithJSONNames returns a copy of a command's fault in which fields have the names from the JSON
// request. It returns any other error unchanged.
func WithJSONNames(err error) error {
	var f *fault.Error
	if !errors.As(err, &f) || len(f.Fields) == 0 {
		return err
	}
	out := *f
	out.Fields = make([]fault.Field, len(f.Fields))
	for i, field := range f.Fields {
		out.Fields[i] = fault.Field{Name: jsonName(field.Name), Message: field.Message}
	}
	return &out
}
