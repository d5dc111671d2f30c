package record

import (
	"errors"
	"strings"

	"crier/platform/fault"
)

// wholeNames has the members of commands whose JSON name is not made of the names of their segments.
var wholeNames = map[string]string{
	"to": "status", "repeat.days": "inter", "repeat.count": "interCount", "repeat.until": "interUntil",
}

// segmentNames has the JSON name of a segment of a path in a command, when it is another.
var segmentNames = map[string]string{
	"entries": "posts", "channel": "integration.id", "parts": "value", "media": "image",
	"times": "time", "minute": "time",
}

// jsonName returns the path in the JSON of a request of a member of a command: "posts.0.value.1.contentType" for
// "entries.0.parts.1.type".
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

// WithJSONNames returns a copy of a fault of a command whose fields have the names of the request's JSON. It returns
// every other error as it is.
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
