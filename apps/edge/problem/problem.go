// Package problem is the one table from a fault's kind to what HTTP answers: status, body, headers and log level.
package problem

import (
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/platform/fault"
)

// Fault is the one error body. Msg is always one readable string; Message is a list when fields are at fault.
type Fault struct {
	StatusCode int            `json:"statusCode" doc:"The HTTP status."`
	Message    Text           `json:"message"`
	Msg        string         `json:"msg" doc:"What went wrong, in one sentence."`
	Word       string         `json:"error,omitempty" doc:"The status in words; only when fields are at fault."`
	RetryAfter int            `json:"retryAfter,omitempty" doc:"Seconds to wait, as in the header Retry-After."`
	Provider   string         `json:"provider,omitempty" doc:"Platform of the first channel at fault."`
	Name       string         `json:"name,omitempty" doc:"Name of the first channel at fault."`
	Errors     []ChannelFault `json:"errors,omitempty" doc:"One entry per channel at fault."`
	URL        string         `json:"url,omitempty" doc:"Where the plan can be changed; only with 402."`

	headers http.Header
}

// ChannelFault is what is wrong with one channel's share of a post.
type ChannelFault struct {
	Integration string `json:"integration" doc:"Channel id as it was sent."`
	Provider    string `json:"provider"`
	Name        string `json:"name"`
	Message     string `json:"message"`
}

// Text is one sentence or a list of them.
type Text struct {
	One  string
	Many []string
}

// MarshalJSON writes a string or an array.
func (t Text) MarshalJSON() ([]byte, error) {
	if t.Many != nil {
		return json.Marshal(t.Many)
	}
	return json.Marshal(t.One)
}

// Schema tells the document both forms.
func (Text) Schema(huma.Registry) *huma.Schema {
	text := &huma.Schema{Type: huma.TypeString}
	return &huma.Schema{
		Description: "One sentence, or one \"<field> <rule>\" for each field at fault.",
		OneOf:       []*huma.Schema{text, {Type: huma.TypeArray, Items: text}},
	}
}

// Error makes the body an error for huma.
func (b *Fault) Error() string { return b.Msg }

// GetStatus tells huma the status.
func (b *Fault) GetStatus() int { return b.StatusCode }

// GetHeaders tells huma the headers.
func (b *Fault) GetHeaders() http.Header { return b.headers }

type row struct {
	status int
	words  string // said when the fault says nothing
}

// table knows every kind; anything else is a 500.
func table(kind fault.Kind) row {
	switch kind {
	case fault.Invalid:
		return row{http.StatusBadRequest, "The request is not valid."}
	case fault.Unauthenticated:
		return row{http.StatusUnauthorized, "Sign in, or send a valid API key."}
	case fault.Quota:
		return row{http.StatusPaymentRequired, "The limit of your plan is reached."}
	case fault.Forbidden:
		return row{http.StatusForbidden, "Forbidden"}
	case fault.NotFound:
		return row{http.StatusNotFound, "There is nothing here."}
	case fault.Conflict:
		return row{http.StatusConflict, "This does not fit the present state."}
	case fault.Gone:
		return row{http.StatusGone, "This is no longer available."}
	case fault.TooLarge:
		return row{http.StatusRequestEntityTooLarge, "The request body is too large."}
	case fault.RateLimited:
		return row{http.StatusTooManyRequests, "Too many requests; wait before the next one."}
	case fault.NotBuilt:
		return row{http.StatusNotImplemented, "This is not built yet."}
	case fault.Unavailable:
		return row{http.StatusServiceUnavailable, "The service is not available right now; try again soon."}
	default:
		return row{http.StatusInternalServerError, internal}
	}
}

const internal = "Internal server error"

// Of turns any error into the answer for it. Billing is the address told with 402.
func Of(err error, billing string) *Fault {
	var body *Fault
	if errors.As(err, &body) {
		return body
	}
	var fe *fiber.Error
	if errors.As(err, &fe) {
		return ofFiber(fe)
	}
	var f *fault.Error
	if !errors.As(err, &f) {
		return plain(http.StatusInternalServerError, internal)
	}
	r := table(f.Kind)
	words := f.Message
	if words == "" || r.status == http.StatusInternalServerError {
		words = r.words
	}
	b := plain(r.status, words)
	b.detail(f)
	if r.status == http.StatusPaymentRequired {
		b.URL = billing
	}
	return b
}

func plain(status int, words string) *Fault {
	return &Fault{StatusCode: status, Message: Text{One: words}, Msg: words, headers: http.Header{}}
}

func (b *Fault) detail(f *fault.Error) {
	if b.StatusCode >= 500 && b.StatusCode != http.StatusServiceUnavailable && b.StatusCode != http.StatusNotImplemented {
		return
	}
	if f.RetryAfter > 0 || f.Kind == fault.RateLimited {
		b.wait(f.RetryAfter)
	}
	if len(f.Fields) > 0 {
		list := make([]string, len(f.Fields))
		for i, field := range f.Fields {
			list[i] = field.Name + " " + field.Message
		}
		b.list(list)
	}
	for _, c := range f.Channels {
		b.Errors = append(b.Errors, ChannelFault(c))
	}
	if len(b.Errors) > 0 {
		first := b.Errors[0]
		b.Provider, b.Name, b.Msg, b.Message = first.Provider, first.Name, first.Message, Text{One: first.Message}
	}
}

func (b *Fault) list(rules []string) {
	b.Message = Text{Many: rules}
	b.Msg = rules[0]
	b.Word = http.StatusText(b.StatusCode)
}

func (b *Fault) wait(d time.Duration) {
	b.RetryAfter = max(1, int(math.Ceil(d.Seconds())))
	b.headers.Set("Retry-After", strconv.Itoa(b.RetryAfter))
}

// ofFiber says what the router has to say without repeating the path.
func ofFiber(e *fiber.Error) *Fault {
	switch {
	case e.Code == http.StatusNotFound:
		return plain(e.Code, "There is no such route.")
	case e.Code == http.StatusMethodNotAllowed:
		return plain(e.Code, "The route does not know this method.")
	case e.Code >= 500 || e.Code < 400:
		return plain(http.StatusInternalServerError, internal)
	}
	words, ok := map[int]string{
		http.StatusBadRequest:                   "The request is not well-formed HTTP.",
		http.StatusRequestTimeout:               "The request took too long to arrive.",
		http.StatusRequestedRangeNotSatisfiable: "The file has no such range.",
		http.StatusRequestHeaderFieldsTooLarge:  "The request headers are too large.",
	}[e.Code]
	if !ok {
		words = http.StatusText(e.Code)
	}
	return plain(e.Code, words)
}

// Write answers with the body.
func (b *Fault) Write(c *fiber.Ctx) error {
	for name, values := range b.headers {
		for _, v := range values {
			c.Set(name, v)
		}
	}
	return c.Status(b.StatusCode).JSON(b)
}

// Level is how loud the log is about a status.
func Level(status int) slog.Level {
	switch {
	case status == http.StatusNotImplemented:
		return slog.LevelInfo
	case status >= 500:
		return slog.LevelError
	default:
		return slog.LevelInfo
	}
}
