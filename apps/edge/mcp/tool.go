package mcp

import (
	"context"
	"encoding/json"
	"runtime/debug"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"crier/apps/edge/mcp/argument"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/fault"
	"crier/tenancy"
)

// tool is one of the tools.
type tool struct {
	name string
	// olderName is the name of the same tool in Postiz. It is accepted but not listed.
	olderName   string
	title       string
	description string
	// writes is set if the tool changes something. Agents need the scope mcp:write to call it.
	writes bool
	// destroys is set if the tool deletes or publishes something, which cannot be undone.
	destroys bool
	// idempotent is set if a second call with the same arguments changes nothing further.
	idempotent bool
	// open is set if the tool calls another server, such as a platform.
	open bool
	// limit limits how many of an organization's calls run concurrently. If it is nil, only the
	// limit on all calls applies.
	limit  *orgLimit
	input  *schema
	output *schema
	// run calls the use case. args holds the arguments in the form that input describes. Any error
	// is a failure or a fault.
	run func(ctx context.Context, c *call, args json.RawMessage) (answer, error)
	// prefix and fields map the fields of a use case's command to arguments; see argumentOf.
	prefix string
	fields map[string]string
}

// call is one call of a tool.
type call struct {
	tool *tool
	p    tenancy.Principal
	now  time.Time
	// indices maps the arguments to their positions in the client's request.
	indices argument.Indices
}

// runner returns a run function that decodes the arguments into an In and calls fn.
func runner[In any](fn func(ctx context.Context, c *call, in In) (answer, error)) func(
	context.Context, *call, json.RawMessage,
) (answer, error) {
	return func(ctx context.Context, c *call, args json.RawMessage) (answer, error) {
		var in In
		if err := json.Unmarshal(args, &in); err != nil {
			return answer{}, fault.Wrap(fault.Internal, "mcp.runner", "", err)
		}
		return fn(ctx, c, in)
	}
}

// definition returns the tool as clients see it.
func (t *tool) definition() *sdk.Tool {
	destroys, open := t.destroys, t.open
	return &sdk.Tool{
		Name: t.name, Title: t.title, Description: t.description, InputSchema: t.input, OutputSchema: t.output,
		Annotations: &sdk.ToolAnnotations{
			ReadOnlyHint: !t.writes, DestructiveHint: &destroys, IdempotentHint: t.idempotent, OpenWorldHint: &open,
		},
	}
}

// handler returns the tool's handler. It converts every error to a result that the model can read.
// It also recovers from panics, because the SDK runs handlers in their own goroutines, where a
// panic would end the process.
func (a *API) handler(t *tool) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (res *sdk.CallToolResult, err error) {
		ctx, cancel := context.WithTimeout(ctx, callTime)
		defer cancel()
		defer func() {
			if cause := recover(); cause != nil {
				a.deps.Log.ErrorContext(ctx, "panic in tool", "tool", t.name, "cause", cause, "stack", string(debug.Stack()))
				res, err = failed(internalFailure()), nil
			}
		}()
		c := &call{tool: t, p: request.Principal(ctx), now: a.deps.Clock.Now().UTC()}
		out, err := a.call(ctx, c, req.Params.Arguments)
		if err != nil {
			return failed(a.failureOf(ctx, c, err)), nil
		}
		return out, nil
	}
}

// call checks the arguments, runs the tool and encodes its answer.
func (a *API) call(ctx context.Context, c *call, sent json.RawMessage) (*sdk.CallToolResult, error) {
	if c.tool.writes && !mayWrite(c.p) {
		return nil, &failure{
			Code: string(fault.Forbidden), Message: "The person who connected this app allowed it to read only. They can " +
				"connect it again and allow it to write.",
		}
	}
	if route.HasHalfCharacter(string(sent)) {
		return nil, &failure{Code: argument.CodeInvalid, Message: "The arguments " + route.HalfCharacter + "."}
	}
	args, indices, err := argument.Read(c.tool.input, sent)
	if err != nil {
		return nil, err
	}
	c.indices = indices
	leave, err := c.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	out, err := c.tool.run(ctx, c, args)
	if err != nil {
		return nil, err
	}
	return out.result()
}
