// Package problem maps errors to HTTP responses: the status, body and headers of each kind of
// fault, and its log level.
package problem

import (
	"cmp"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/platform/fault"
)

// Fault is the body of every error response. Msg is always one sentence. If fields are invalid,
// Message is a list with "<field> <rule>" for each field; otherwise it is the same sentence as Msg.
type Fault struct {
	StatusCode int            `json:"statusCode" doc:"HTTP status code."`
	Message    Text           `json:"message"`
	Msg        string         `json:"msg" doc:"What went wrong, in one sentence."`
	Word       string         `json:"error,omitempty" doc:"HTTP status text if fields are invalid, or insufficient_scope if an access token lacks a scope."`
	RetryAfter int            `json:"retryAfter,omitempty" doc:"Seconds to wait, as in the Retry-After header."`
	Provider   string         `json:"provider,omitempty" doc:"Platform of the first channel with an error."`
	Name       string         `json:"name,omitempty" doc:"Name of the first channel with an error."`
	Errors     []ChannelFault `json:"errors,omitempty" doc:"The channels with errors, at most 50 entries."`
	More       int            `json:"more,omitempty" doc:"Number of errors that are not listed in message and errors."`
	URL        string         `json:"url,omitempty" doc:"URL at which the plan can be changed. Present only if the status is 402."`
	Limit      string         `json:"limit,omitempty" doc:"The limit that was reached: channels, posts, webhooks, members or organizations. Present only if the status is 402."`
	Current    *int           `json:"current,omitempty" doc:"Current usage; for posts, the usage in the current billing month. Only with 402."`
	Allowed    *int           `json:"allowed,omitempty" doc:"Maximum that the plan allows. Present only if the status is 402."`
	Enroll     bool           `json:"mfaEnrollmentRequired,omitempty" doc:"true if you must enable a second factor; only with 403."`
	Code       bool           `json:"mfaCodeRequired,omitempty" doc:"true if you must repeat the request with a code from your second factor; only with 400."`

	headers http.Header
}

// ChannelFault is a fault that concerns only one of the channels in a request.
type ChannelFault struct {
	Integration string `json:"integration" doc:"Channel id from the request."`
	Provider    string `json:"provider" doc:"Platform of the channel."`
	Name        string `json:"name" doc:"Name of the channel."`
	Message     string `json:"message" doc:"What is wrong, in one sentence."`
}

// Text is one sentence or, if Many is not nil, a list of sentences.
type Text struct {
	One  string
	Many []string
}

// MarshalJSON returns a string or an array. It returns any error from json.Marshal.
func (t Text) MarshalJSON() ([]byte, error) {
	if t.Many != nil {
		return json.Marshal(t.Many)
	}
	return json.Marshal(t.One)
}

// Schema implements huma.SchemaProvider, because huma cannot tell from the type that the JSON is a
// string or an array.
func (Text) Schema(huma.Registry) *huma.Schema {
	text := &huma.Schema{Type: huma.TypeString}
	return &huma.Schema{
		Description: "One sentence, or a list with \"<field> <rule>\" for each invalid field.",
		OneOf:       []*huma.Schema{text, {Type: huma.TypeArray, Items: text}},
	}
}

// Error returns Msg. Fault implements error so that handlers can return it to huma.
func (b *Fault) Error() string { return b.Msg }

// GetStatus implements huma.StatusError.
func (b *Fault) GetStatus() int { return b.StatusCode }

// GetHeaders implements huma.HeadersError.
func (b *Fault) GetHeaders() http.Header { return b.headers }

type row struct {
	status int
	// message is the default for faults that have no message of their own.
	message string
	// remedy tells a client what to do.
	remedy string
}

const (
	tooManyRequests    = "Too many requests; wait before the next one."
	serviceUnavailable = "The service is not available right now; try again soon."
)

// table holds the kinds of faults that have a status of their own. All other kinds become 500.
var table = map[fault.Kind]row{
	fault.Invalid: {
		status: http.StatusBadRequest, message: "The request is not valid.",
		remedy: "Correct what message describes. The same request would be rejected again.",
	},
	fault.Unauthenticated: {
		status: http.StatusUnauthorized, message: "Sign in, or send a valid API key.",
		remedy: "Send only the API key in the Authorization header, without Bearer. If the request calls a platform, " +
			"for example through a tool, 401 can also mean that the channel must be reconnected.",
	},
	fault.Quota: {
		status: http.StatusPaymentRequired, message: "You have reached a limit of your plan.",
		remedy: "limit names the limit that was reached. The plan can be changed at url.",
	},
	fault.Forbidden: {
		status: http.StatusForbidden, message: "Forbidden",
		remedy: "The credential is valid but does not allow this, or the organization is suspended.",
	},
	fault.NotFound: {
		status: http.StatusNotFound, message: "Not found.",
		remedy: "The path or an id in it is wrong, or the resource belongs to another organization.",
	},
	fault.Conflict: {
		status: http.StatusConflict, message: "The request conflicts with the current state.",
		remedy: "With Retry-After, the conflict is temporary, for example because a post is being published: wait " +
			"that long, then send the same request again. Without Retry-After, never repeat the request unchanged: " +
			"read the current state first. The operation's description explains when it returns 409.",
	},
	fault.Gone: {
		status: http.StatusGone, message: "This is no longer available.", remedy: "Request a new link.",
	},
	fault.TooLarge: {
		status: http.StatusRequestEntityTooLarge, message: "The request body is too large.",
		remedy: "Send a smaller body. The page /docs/limits lists the limits.",
	},
	fault.RateLimited: {
		status: http.StatusTooManyRequests, message: tooManyRequests,
		remedy: "Wait for the number of seconds in Retry-After or retryAfter, then send the request again.",
	},
	fault.NotBuilt: {
		status: http.StatusNotImplemented, message: "This is not built yet.",
		remedy: "The route is planned but does nothing yet.",
	},
	fault.Upstream: {
		status: http.StatusBadGateway, message: "Another server failed.",
		remedy: "The channel's platform failed. Send the request again later.",
	},
	fault.Unavailable: {
		status: http.StatusServiceUnavailable, message: serviceUnavailable,
		remedy: "Wait, then send the request again. POST /public/v1/posts with an Idempotency-Key cannot publish a " +
			"post twice.",
	},
	fault.Loop: {
		status: http.StatusLoopDetected, message: "The other server redirected too many times.",
		remedy: "Send the URL to which the other server redirects.",
	},
}

// Entry describes one status in the catalogue.
type Entry struct {
	Status int
	// Name is the status in words.
	Name string
	// Messages are the default messages for errors with this status.
	Messages []string
	// Remedy tells a client what to do. It is empty if the message already says so.
	Remedy string
}

// Catalogue returns every status with which the service rejects requests, in ascending order.
func Catalogue() []Entry {
	by := map[int]Entry{}
	add := func(status int, message, remedy string) {
		e := by[status]
		e.Status, e.Name, e.Remedy = status, http.StatusText(status), cmp.Or(e.Remedy, remedy)
		e.Messages = append(e.Messages, message)
		by[status] = e
	}
	for _, r := range table {
		add(r.status, r.message, r.remedy)
	}
	add(http.StatusInternalServerError, internal,
		"The service failed. Send the request again later, and report the failure with the value of the X-Request-Id "+
			"header.")
	for status, message := range routing {
		add(status, message, "")
	}
	out := slices.Collect(maps.Values(by))
	slices.SortFunc(out, func(a, b Entry) int { return cmp.Compare(a.Status, b.Status) })
	return out
}

const internal = "Internal server error"

// Of returns the response to an error. If err is a *Fault, Of returns it unchanged. An error that
// is neither a fault nor a router error becomes a 500 that hides its cause. billing is the URL in a
// 402 response.
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
		return newFault(http.StatusInternalServerError, internal)
	}
	r, ok := table[f.Kind]
	if !ok {
		return newFault(http.StatusInternalServerError, internal)
	}
	b := newFault(r.status, cmp.Or(f.Message, r.message))
	b.addDetails(f)
	if r.status == http.StatusPaymentRequired {
		b.URL = billing
	}
	return b
}

func newFault(status int, message string) *Fault {
	return &Fault{StatusCode: status, Message: Text{One: message}, Msg: message, headers: http.Header{}}
}

// addDetails adds f's remedy, limit, retry delay, fields and items to b. If f has items, Msg and
// Message are set to the message of the first item.
func (b *Fault) addDetails(f *fault.Error) {
	b.Enroll, b.Code = f.Remedy == fault.RemedyEnroll, f.Remedy == fault.RemedyCode
	if f.Remedy == fault.RemedyScope {
		b.Word = insufficientScope
	}
	if f.Limit != nil {
		b.Limit, b.Current, b.Allowed = f.Limit.Name, &f.Limit.Current, &f.Limit.Allowed
	}
	if f.RetryAfter > 0 || f.Kind == fault.RateLimited {
		b.setRetryAfter(f.RetryAfter)
	}
	if len(f.Fields) > 0 {
		list := make([]string, len(f.Fields))
		for i, field := range f.Fields {
			list[i] = field.Name + " " + field.Message
		}
		b.setRules(list)
	}
	listed := f.Items[:min(len(f.Items), fault.MaxListed)]
	for _, c := range listed {
		b.Errors = append(b.Errors, ChannelFault{Integration: c.ID, Provider: c.Kind, Name: c.Name, Message: c.Message})
	}
	b.More += f.More + len(f.Items) - len(listed)
	if len(b.Errors) > 0 {
		first := b.Errors[0]
		b.Provider, b.Name, b.Msg, b.Message = first.Provider, first.Name, first.Message, Text{One: first.Message}
	}
}

// insufficientScope is the error code of RFC 6750 for an access token that lacks a scope.
const insufficientScope = "insufficient_scope"

// setRules sets the message to the first fault.MaxListed broken rules, and More to the number of
// rules left out.
func (b *Fault) setRules(rules []string) {
	listed := rules[:min(len(rules), fault.MaxListed)]
	b.More = len(rules) - len(listed)
	b.Message = Text{Many: listed}
	b.Msg = rules[0]
	b.Word = http.StatusText(b.StatusCode)
}

// setRetryAfter sets the retry delay in the body and the header. It rounds d up to whole seconds
// and to at least one second.
func (b *Fault) setRetryAfter(d time.Duration) {
	b.RetryAfter = max(1, int(math.Ceil(d.Seconds())))
	b.headers.Set("Retry-After", strconv.Itoa(b.RetryAfter))
}

// routing maps the status of an error from the router or the server to the message in the response.
var routing = map[int]string{
	http.StatusBadRequest:                   "The request is not well-formed HTTP.",
	http.StatusNotFound:                     "There is no such route.",
	http.StatusMethodNotAllowed:             "The route does not support this method.",
	http.StatusRequestTimeout:               "The request took too long to arrive.",
	http.StatusRequestedRangeNotSatisfiable: "The file has no such range.",
	http.StatusRequestHeaderFieldsTooLarge:  "The request headers are too large.",
	http.StatusUnsupportedMediaType:         "Send the body without Content-Encoding.",
	http.StatusExpectationFailed:            "The only supported expectation is 100-continue.",
	http.StatusHTTPVersionNotSupported:      "The service supports HTTP/1.1 and HTTP/1.0.",
}

// ofFiber returns the response to a router error. It does not use the error's text, because that
// text repeats the path.
func ofFiber(e *fiber.Error) *Fault {
	if e.Code >= 500 && routing[e.Code] == "" || e.Code < 400 {
		return newFault(http.StatusInternalServerError, internal)
	}
	return newFault(e.Code, cmp.Or(routing[e.Code], http.StatusText(e.Code)))
}

// Write sends the body with its status and headers. It returns any error from the JSON encoder.
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

// notOurs lists the statuses of 500 or above that do not mean that this service has failed.
var notOurs = []int{
	http.StatusNotImplemented, http.StatusBadGateway, http.StatusHTTPVersionNotSupported, http.StatusLoopDetected,
}

// Level returns the log level for a response. The level is Error if the status is 500 or above and
// means that this service has failed. Otherwise, it is Info.
func Level(status int) slog.Level {
	if status >= 500 && !slices.Contains(notOurs, status) {
		return slog.LevelError
	}
	return slog.LevelInfo
}
