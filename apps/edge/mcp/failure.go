package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"crier/apps/edge/mcp/argument"
	"crier/apps/edge/problem"
	"crier/apps/edge/request"
	"crier/platform/fault"
	"crier/platform/text"
)

// failure is what a tool returns instead of a result.
type failure = argument.Failure

// nextCall is a tool call that helps to correct a failure.
type nextCall = argument.NextCall

// failed returns the result of a failed call. It has no structured content, because clients check
// structured content against the schema for successful results.
func failed(f *failure) *sdk.CallToolResult {
	f.Message = text.CutBytes(f.Message, maxMessage)
	f.Allowed = f.Allowed[:min(len(f.Allowed), maxAllowed)]
	words, err := encode(map[string]any{"output": f})
	if err != nil {
		words = []byte(`{"output":{"errors":"Internal server error","code":"internal"}}`)
	}
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: string(words)}}}
}

const (
	maxMessage = 4_000 // bytes
	maxAllowed = 100
)

func internalFailure() *failure {
	return &failure{Code: string(fault.Internal), Message: "Internal server error. " +
		"The call may have had an effect. Read the current state before you repeat it."}
}

// failureOf converts an error to a failure with the public API's message. If the call has timed
// out, any fault other than Invalid and NotFound becomes Unavailable. failureOf logs an internal
// error and hides its cause.
func (a *API) failureOf(ctx context.Context, c *call, err error) *failure {
	var known *failure
	if errors.As(err, &known) {
		return c.asSent(known)
	}
	kind := fault.KindOf(err)
	if ctx.Err() != nil && kind != fault.Invalid && kind != fault.NotFound {
		return &failure{
			Code: string(fault.Unavailable), Message: "The call took longer than 50 seconds and was stopped. Read the " +
				"current state before you repeat it.",
		}
	}
	if kind == fault.Internal {
		a.deps.Log.ErrorContext(ctx, "tool failed", "tool", c.tool.name, "error", err, "request", request.From(ctx).ID)
		return internalFailure()
	}
	words := problem.Of(err, a.deps.BillingURL)
	out := &failure{Code: string(kind), Message: words.Msg, RetryAfter: words.RetryAfter}
	var f *fault.Error
	if !errors.As(err, &f) {
		return out
	}
	if f.Kind == fault.RateLimited && out.RetryAfter == 0 {
		out.RetryAfter = seconds(f.RetryAfter)
	}
	switch {
	case len(f.Items) > 0:
		out.Message = listed(f.Items, func(x fault.Item) string { return x.Message })
	case len(f.Fields) > 0:
		out.Field = c.argumentOf(f.Fields[0].Name)
		out.Message = listed(f.Fields, func(x fault.Field) string {
			return c.argumentOf(x.Name) + " " + strings.TrimSuffix(x.Message, ".") + "."
		})
	}
	if f.More > 0 {
		out.Message += fmt.Sprintf(" More problems: %d.", f.More)
	}
	var h *hint
	if errors.As(err, &h) {
		out.Field, out.Next = cmp.Or(out.Field, h.field), h.next
	}
	return out
}

// asSent returns a copy of f. The indices in its field and message are those in the client's
// request.
func (c *call) asSent(f *failure) *failure {
	out := *f
	if out.Field = c.indices.Sent(f.Field); out.Field != f.Field {
		out.Message = strings.ReplaceAll(f.Message, f.Field, out.Field)
	}
	return &out
}

// argumentOf returns the path, in the client's request, of the argument for a field of a use case's
// command.
func (c *call) argumentOf(field string) string { return c.indices.Sent(c.tool.argumentOf(field)) }

// hint wraps an error with a way to correct it: the argument to change or the tool to call.
type hint struct {
	error
	field string
	next  *nextCall
}

func (h *hint) Unwrap() error { return h.error }

// withNext adds to err the call that next contains for err's kind. If there is none, or if err is
// already a failure, withNext returns err unchanged.
func withNext(err error, next map[fault.Kind]*nextCall) error {
	call := next[fault.KindOf(err)]
	var known *failure
	if call == nil || errors.As(err, &known) {
		return err
	}
	return &hint{error: err, next: call}
}

// withField adds to err the name of the argument that caused it.
func withField(err error, field string) error { return &hint{error: err, field: field} }

// listed joins the faults' messages and omits duplicates.
func listed[T any](faults []T, message func(T) string) string {
	var out []string
	for _, x := range faults {
		if m := message(x); !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return strings.Join(out, " ")
}

func seconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }

// argumentOf returns the path of the argument for a field of a use case's command. Example:
// entries.0.parts.1.type becomes socialPost.0.postsAndComments.1.type.
func (t *tool) argumentOf(field string) string {
	field = strings.TrimPrefix(field, t.prefix)
	if name, ok := t.fields[field]; ok {
		return name
	}
	segments := strings.Split(field, ".")
	for i, s := range segments {
		if name, ok := t.fields[s]; ok {
			segments[i] = name
		}
	}
	return strings.Join(segments, ".")
}

// noObject converts a NotFound error to a failure for an id that does not exist. It returns any
// other error unchanged. field is the argument that contains the id, and list is the tool that
// lists the valid ids.
func noObject(err error, field, list string) error {
	if !fault.Is(err, fault.NotFound) {
		return err
	}
	return &failure{
		Code: string(fault.NotFound), Field: field, Message: problem.Of(err, "").Msg,
		Next: &nextCall{Tool: list, Arguments: map[string]any{}},
	}
}
