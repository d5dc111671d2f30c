package problem

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

var (
	index   = regexp.MustCompile(`\[(\d+)\]`)
	digits  = regexp.MustCompile(`^[+-]?[0-9]+$`)
	missing = regexp.MustCompile(`^expected required property (.+) to be present$`)
)

// notDecoded is the prefix of every DecodeError message. FromHuma uses it to recognize a
// DecodeError, because huma keeps only the text of a decoder's error.
const notDecoded = "the body cannot be decoded: "

// DecodeError explains why a body cannot be decoded.
type DecodeError struct {
	// Field is the path of the member, or empty for the whole body. Example: posts.0.value
	Field string
	// Rule says what the field must be. Example: must be a string
	Rule string
}

// Error returns the field and the rule in a form that FromHuma parses.
func (e DecodeError) Error() string { return notDecoded + cmp.Or(e.Field, "body") + " " + e.Rule }

// FromHuma returns the response to an error that huma reports. It changes the statuses 422 and 415
// to 400, and hides the cause of a 5xx error.
func FromHuma(status int, msg string, errs ...error) huma.StatusError {
	if status == http.StatusUnprocessableEntity || status == http.StatusUnsupportedMediaType {
		status = http.StatusBadRequest
	}
	if status >= 500 {
		return newFault(status, internal)
	}
	if msg == "" {
		msg = http.StatusText(status)
	}
	b := newFault(status, msg)
	if status != http.StatusBadRequest {
		return b
	}
	var rules []string
	for _, err := range errs {
		var d *huma.ErrorDetail
		if errors.As(err, &d) {
			rules = append(rules, rule(d))
		} else if err != nil {
			rules = append(rules, "body is not valid JSON of the expected shape")
		}
	}
	if msg == "request body is required" {
		rules = []string{"body is required"}
	}
	if len(rules) > 0 {
		b.setRules(rules)
	}
	return b
}

// rule returns "<field> <rule>" in the wording that our own validation uses. Example: posts is
// required
func rule(d *huma.ErrorDetail) string {
	field := index.ReplaceAllString(d.Location, ".$1")
	for _, part := range []string{"body.", "query.", "path.", "header."} {
		field = strings.TrimPrefix(field, part)
	}
	if m := missing.FindStringSubmatch(d.Message); m != nil {
		return strings.TrimPrefix(field+"."+m[1], "body.") + " is required"
	}
	if text, ok := strings.CutPrefix(d.Message, notDecoded); ok {
		return text
	}
	if d.Message == "invalid integer" && digits.MatchString(fmt.Sprint(d.Value)) {
		return field + " must be a whole number of at most 64 bits"
	}
	text := strings.ReplaceAll(d.Message, `"`, "")
	for _, swap := range [][2]string{
		{"invalid integer", "must be a whole number"}, {"expected integer", "must be a whole number"},
		{"invalid float", "must be a number"}, {"invalid boolean", "must be true or false"},
		{"expected boolean", "must be true or false"},
		{"expected value to be one of", "must be one of"},
		{"expected length >=", "must be a string with a length of at least"},
		{"expected length <=", "must be a string with a length of at most"},
		{"expected array length >=", "must be an array with a length of at least"},
		{"expected array length <=", "must be an array with a length of at most"},
		{"expected array", "must be an array"}, {"expected object", "must be an object"}, {"expected ", "must be a "},
	} {
		if rest, ok := strings.CutPrefix(text, swap[0]); ok {
			text = swap[1] + rest
		}
	}
	if field == "" {
		field = "body"
	}
	return field + " " + text
}
