package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// refusal is an error returned by the platform's API: {"error":{"code","message"}}. It is not a
// fault, because the sandbox simulates a platform outside the service.
type refusal struct {
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (e *refusal) Error() string { return e.Code + ": " + e.Message }

func refuse(status int, code, format string, args ...any) *refusal {
	return &refusal{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

// answer is a response that has not been sent yet. If its status is 0, perform closes the
// connection instead.
type answer struct {
	status     int
	body       any // nil for no body
	retryAfter string
}

func (a answer) send(w http.ResponseWriter) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if a.retryAfter != "" {
		w.Header().Set("Retry-After", a.retryAfter)
	}
	if a.body == nil {
		w.WriteHeader(a.status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	_ = json.NewEncoder(w).Encode(a.body) // the client may have disconnected
}

// failure converts an error to a response. If the error is not a refusal, it comes from the disk.
// In that case, failure logs the error and responds with 503.
func (p *Platform) failure(err error) answer {
	var known *refusal
	if !errors.As(err, &known) {
		p.opts.Log.Error("sandbox: cannot store its state", "error", err)
		known = refuse(http.StatusServiceUnavailable, "storage", "The sandbox cannot use its folder; see its log.")
	}
	return answer{status: known.Status, body: map[string]*refusal{"error": known}}
}

// decode parses one JSON object into v. It rejects unknown and repeated members, member names in
// the wrong case, and anything after the object.
func decode(body []byte, v any, members ...string) error {
	if !utf8.Valid(body) {
		return refuse(http.StatusBadRequest, "bad_json", "The body is not UTF-8.")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return refuse(http.StatusBadRequest, "bad_json", "The body is not the expected JSON object: %s.",
			strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return refuse(http.StatusBadRequest, "bad_json", "There is data after the JSON object.")
	}
	if trimmed := bytes.TrimSpace(body); trimmed[0] != '{' {
		return refuse(http.StatusBadRequest, "bad_json", "The body must be a JSON object.")
	}
	return checkMembers(json.NewDecoder(bytes.NewReader(body)), members)
}

// checkMembers rejects unknown and repeated members in a valid body. On its own, encoding/json
// would accept "TEXT" and a second "text".
func checkMembers(dec *json.Decoder, members []string) error {
	type level struct {
		seen map[string]bool // nil in an array
		name bool            // the next token is a member's name
	}
	stack := []level{}
	for {
		tok, err := dec.Token()
		if err != nil {
			return nil // the end of the body, whose syntax was already checked
		}
		top := len(stack) - 1
		if name, ok := tok.(string); ok && top >= 0 && stack[top].name {
			if !slices.Contains(members, name) || stack[top].seen[name] {
				return refuse(http.StatusBadRequest, "bad_json", "Unknown or repeated member \"%s\".", name)
			}
			stack[top].seen[name], stack[top].name = true, false
			continue
		}
		if tok == json.Delim('}') || tok == json.Delim(']') {
			stack = stack[:top]
			continue
		}
		if top >= 0 && stack[top].seen != nil {
			stack[top].name = true
		}
		switch tok {
		case json.Delim('{'):
			stack = append(stack, level{seen: map[string]bool{}, name: true})
		case json.Delim('['):
			stack = append(stack, level{})
		}
	}
}

// query parses the query string. It rejects unknown and repeated parameters.
func query(r *http.Request, known ...string) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "bad_query", "The query string cannot be parsed.")
	}
	for name, v := range values {
		if !slices.Contains(known, name) || len(v) > 1 || !utf8.ValidString(v[0]) {
			return nil, refuse(http.StatusBadRequest, "bad_query", "Unknown, repeated or unreadable parameter \"%s\".",
				strings.ToValidUTF8(name, "?"))
		}
	}
	return values, nil
}
