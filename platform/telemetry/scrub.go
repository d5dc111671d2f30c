package telemetry

import (
	"fmt"
	"log/slog"
	"reflect"
	"regexp"

	"crier/platform/text"
)

const redacted = "[redacted]"

var (
	secretName = regexp.MustCompile(`(?i)^(authorization|cookie|set[-_]?cookie|` +
		`(.*[-_])?(password|passwd|secret|token|api[-_]?key|private[-_]?key|credentials?))$`)
	inQuery = regexp.MustCompile(`(?i)([?&;](?:[a-z_.-]*` +
		`(?:token|secret|password|signature|key)|code|state|sig)=)[^&\s"'\\]+`)
	inHeader = regexp.MustCompile(`(?i)\b(bearer|basic) +[a-z0-9._~+/=-]{8,}`)
	inURL    = regexp.MustCompile(`(://)[^/\s:@"]*:[^/\s@"]+@`)
	// These patterns match a secret whose end was cut off by truncation. inQuery needs no such
	// variant, because it matches secrets of any length.
	cutHeader = regexp.MustCompile(`(?i)\b(bearer|basic) +[a-z0-9._~+/=-]*$`)
	cutURL    = regexp.MustCompile(`(://)[^/\s:@"]*:[^/\s@"]*$`)
)

// scrub is the ReplaceAttr function of the handlers. slog calls it for every attribute, including
// the message and attributes in groups.
func scrub(_ []string, a slog.Attr) slog.Attr {
	if secretName.MatchString(a.Key) {
		return slog.String(a.Key, redacted)
	}
	switch v := a.Value.Any().(type) {
	case string:
		a.Value = slog.StringValue(clean(v))
	case error:
		a.Value = slog.StringValue(clean(v.Error()))
	default:
		if a.Value.Kind() == slog.KindAny && remaining(reflect.ValueOf(v), maxValue) < 0 {
			a.Value = slog.StringValue(fmt.Sprintf("[a %T of more than %d bytes]", v, maxValue))
		}
	}
	return a
}

// Scrub redacts tokens in query strings, values after Bearer and Basic, and passwords in URLs.
func Scrub(s string) string {
	s = inQuery.ReplaceAllString(s, "${1}"+redacted)
	s = inHeader.ReplaceAllString(s, "${1} "+redacted)
	return inURL.ReplaceAllString(s, "${1}"+redacted+"@")
}

// maxValue is the maximum size of a value in a log record, in bytes. Quoting can make a value up to
// six times as long.
const maxValue = 8 << 10

// clean redacts secrets in s and truncates the result to maxValue bytes. If bytes were omitted, it
// appends their number.
func clean(s string) string {
	head := text.CutBytes(s, maxValue)
	out := Scrub(head)
	if len(head) < len(s) {
		out = cutHeader.ReplaceAllString(out, "${1} "+redacted)
		out = cutURL.ReplaceAllString(out, "${1}"+redacted)
	}
	kept := text.CutBytes(out, maxValue) // a replacement may be longer than the secret
	if left := len(s) - len(head) + len(out) - len(kept); left > 0 {
		return fmt.Sprintf("%s [%d bytes cut]", kept, left)
	}
	return kept
}

var errorType = reflect.TypeFor[error]()

// remaining returns left minus the total size of the strings and elements in v. It stops as soon as
// the result is negative. It skips unexported fields, because another goroutine may be changing
// them.
func remaining(v reflect.Value, left int) int {
	left-- // ends the recursion in a list that contains itself
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
		return remaining(v.Elem(), left)
	case reflect.Struct:
		for i := 0; i < v.NumField() && left >= 0; i++ {
			if v.Type().Field(i).IsExported() {
				left = remaining(v.Field(i), left)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := 0; i < v.Len() && left >= 0; i++ {
			left = remaining(v.Index(i), left)
		}
	case reflect.Map:
		for i := v.MapRange(); left >= 0 && i.Next(); {
			left = remaining(i.Value(), remaining(i.Key(), left))
		}
	}
	return left
}
