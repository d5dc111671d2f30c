// Package problem is the one table from a fault's kind to what HTTP answers: status, body, headers and log level.
package problem

import (
	"cmp"
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
	Errors     []ChannelFault `json:"errors,omitempty" doc:"The channels at fault, at most 50 entries."`
	More       int            `json:"more,omitempty" doc:"How many faults there are besides those of message or errors."`
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

// table has every kind but those that are answered with 500.
var table = map[fault.Kind]row{
	fault.Invalid:         {http.StatusBadRequest, "The request is not valid."},
	fault.Unauthenticated: {http.StatusUnauthorized, "Sign in, or send a valid API key."},
	fault.Quota:           {http.StatusPaymentRequired, "The limit of your plan is reached."},
	fault.Forbidden:       {http.StatusForbidden, "Forbidden"},
	fault.NotFound:        {http.StatusNotFound, "There is nothing here."},
	fault.Conflict:        {http.StatusConflict, "This does not fit the present state."},
	fault.Gone:            {http.StatusGone, "This is no longer available."},
	fault.TooLarge:        {http.StatusRequestEntityTooLarge, "The request body is too large."},
	fault.RateLimited:     {http.StatusTooManyRequests, "Too many requests; wait before the next one."},
	fault.NotBuilt:        {http.StatusNotImplemented, "This is not built yet."},
	fault.Unavailable:     {http.StatusServiceUnavailable, "The service is not available right now; try again soon."},
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
	r, ok := table[f.Kind]
	if !ok {
		return plain(http.StatusInternalServerError, internal)
	}
	b := plain(r.status, cmp.Or(f.Message, r.words))
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
	told := f.Channels[:min(len(f.Channels), fault.MaxListed)]
	for _, c := range told {
		b.Errors = append(b.Errors, ChannelFault(c))
	}
	b.More += f.More + len(f.Channels) - len(told)
	if len(b.Errors) > 0 {
		first := b.Errors[0]
		b.Provider, b.Name, b.Msg, b.Message = first.Provider, first.Name, first.Message, Text{One: first.Message}
	}
}

// list tells the first rules, and how many more are broken.
func (b *Fault) list(rules []string) {
	told := rules[:min(len(rules), fault.MaxListed)]
	b.More = len(rules) - len(told)
	b.Message = Text{Many: told}
	b.Msg = rules[0]
	b.Word = http.StatusText(b.StatusCode)
}

func (b *Fault) wait(d time.Duration) {
	b.RetryAfter = max(1, int(math.Ceil(d.Seconds())))
	b.headers.Set("Retry-After", strconv.Itoa(b.RetryAfter))
}

var routing = map[int]string{
	http.StatusBadRequest:                   "The request is not well-formed HTTP.",
	http.StatusNotFound:                     "There is no such route.",
	http.StatusMethodNotAllowed:             "The route does not know this method.",
	http.StatusRequestTimeout:               "The request took too long to arrive.",
	http.StatusRequestedRangeNotSatisfiable: "The file has no such range.",
	http.StatusRequestHeaderFieldsTooLarge:  "The request headers are too large.",
	http.StatusUnsupportedMediaType:         "Send the body without Content-Encoding.",
	http.StatusExpectationFailed:            "The only expectation that is met is 100-continue.",
	http.StatusHTTPVersionNotSupported:      "The service speaks HTTP/1.1 and HTTP/1.0.",
}

// ofFiber says what the router has to say without repeating the path.
func ofFiber(e *fiber.Error) *Fault {
	if e.Code >= 500 && routing[e.Code] == "" || e.Code < 400 {
		return plain(http.StatusInternalServerError, internal)
	}
	return plain(e.Code, cmp.Or(routing[e.Code], http.StatusText(e.Code)))
}

// Write answers with the body.
func (b *Fault) Write(c *fiber.Ctx) error {
	for name, values := range b.headers {
		for _, v := range values {
			c.Set(name, v)
		}
	}
	if b.StatusCode == http.StatusUnauthorized {
		c.Set(fiber.HeaderWWWAuthenticate, `ApiKey realm="crier"`)
	}
	return c.Status(b.StatusCode).JSON(b)
}

// Level is how loud the log is about a status.
func Level(status int) slog.Level {
	if status >= 500 && status != http.StatusNotImplemented && status != http.StatusHTTPVersionNotSupported {
		return slog.LevelError
	}
	return slog.LevelInfo
}
