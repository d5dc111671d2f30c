package telemetry

import (
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"unicode/utf8"
)

const hidden = "[redacted]"

var (
	secretName = regexp.MustCompile(`(?i)^(authorization|cookie|set[-_]?cookie|(.*[-_])?(password|passwd|secret|token|api[-_]?key|private[-_]?key|credentials?))$`)
	inQuery    = regexp.MustCompile(`(?i)([?&;](?:[a-z_.-]*(?:token|secret|password|signature|key)|code|state|sig)=)[^&\s"'\\]+`)
	inHeader   = regexp.MustCompile(`(?i)\b(bearer|basic) +[a-z0-9._~+/=-]{8,}`)
	inURL      = regexp.MustCompile(`(://)[^/\s:@"]*:[^/\s@"]+@`)
	// What may be the beginning of a secret that was cut; inQuery finds any length.
	cutHeader = regexp.MustCompile(`(?i)\b(bearer|basic) +[a-z0-9._~+/=-]*$`)
	cutURL    = regexp.MustCompile(`(://)[^/\s:@"]*:[^/\s@"]*$`)
)

// scrub sees every attribute, the message and the members of groups included.
func scrub(_ []string, a slog.Attr) slog.Attr {
	if secretName.MatchString(a.Key) {
		return slog.String(a.Key, hidden)
	}
	switch v := a.Value.Any().(type) {
	case string:
		a.Value = slog.StringValue(short(v))
	case error:
		a.Value = slog.StringValue(short(v.Error()))
	default:
		if a.Value.Kind() == slog.KindAny && room(reflect.ValueOf(v), maxValue) < 0 {
			a.Value = slog.StringValue(fmt.Sprintf("[a %T of more than %d bytes]", v, maxValue))
		}
	}
	return a
}

// Scrub hides tokens in query strings, after Bearer and Basic, and passwords in URLs.
func Scrub(s string) string {
	s = inQuery.ReplaceAllString(s, "${1}"+hidden)
	s = inHeader.ReplaceAllString(s, "${1} "+hidden)
	return inURL.ReplaceAllString(s, "${1}"+hidden+"@")
}

// maxValue bounds a value of a log record, in bytes. Quoting makes at most six of each.
const maxValue = 8 << 10

// short returns s without secrets, and with a mark in place of what is too much. It looks at the beginning only.
func short(s string) string {
	head := cut(s)
	out := Scrub(head)
	if len(head) < len(s) {
		out = cutHeader.ReplaceAllString(out, "${1} "+hidden)
		out = cutURL.ReplaceAllString(out, "${1}"+hidden)
	}
	kept := cut(out) // what hides secrets may be longer than they were
	if left := len(s) - len(head) + len(out) - len(kept); left > 0 {
		return fmt.Sprintf("%s [%d bytes cut]", kept, left)
	}
	return kept
}

// cut returns the first maxValue bytes of s, fewer where a character would be split.
func cut(s string) string {
	if len(s) <= maxValue {
		return s
	}
	for n := maxValue; n > maxValue-utf8.UTFMax; n-- {
		if utf8.RuneStart(s[n]) {
			return s[:n]
		}
	}
	return s[:maxValue]
}

var errorType = reflect.TypeFor[error]()

// room returns what is left of so many bytes beside the texts and elements of v. It goes through v no further than to the
// first that has no room, and not into fields that are not exported: they may be changing.
func room(v reflect.Value, left int) int {
	left-- // so that a list that holds itself ends, too
	switch v.Kind() {
	case reflect.Invalid:
		return left
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return left
		}
	}
	if v.Type().Implements(errorType) && v.CanInterface() {
		return left - len(v.Interface().(error).Error())
	}
	switch v.Kind() {
	case reflect.String:
		return left - v.Len()
	case reflect.Pointer, reflect.Interface:
		return room(v.Elem(), left)
	case reflect.Struct:
		for i := 0; i < v.NumField() && left >= 0; i++ {
			if v.Type().Field(i).IsExported() {
				left = room(v.Field(i), left)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := 0; i < v.Len() && left >= 0; i++ {
			left = room(v.Index(i), left)
		}
	case reflect.Map:
		for i := v.MapRange(); left >= 0 && i.Next(); {
			left = room(i.Value(), room(i.Key(), left))
		}
	}
	return left
}
