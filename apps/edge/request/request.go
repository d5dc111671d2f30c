// Package request holds the record of the current request: its id, principal, body and error.
package request

import (
	"context"

	"github.com/valyala/fasthttp"

	"crier/tenancy"
)

type infoKey struct{}

// Info is the record of one request. It must not be kept after the request.
type Info struct {
	// ID is the request id in logs and in the X-Request-Id header.
	ID string
	// Principal identifies who the request acts for. It is zero before authentication.
	Principal tenancy.Principal
	// Credential is the SHA-256 hash of the API key or access token that the Principal was found
	// by. It is set only for requests to the MCP server.
	Credential []byte
	// From describes where the request comes from. The Principal also contains it.
	From tenancy.Source
	// Err is the error that the response reports, for the log.
	Err  error
	Body *Body
	// Confirm returns an error if the request's credential no longer permits the request. It trusts
	// a credential that was looked up moments ago. A handler that reads the body itself must call
	// Confirm after the body has ended and before it changes anything.
	Confirm func() error
}

// Start stores a new record in ctx, where From finds it. The outermost handler calls it once per
// request.
func Start(ctx *fasthttp.RequestCtx) *Info {
	info := &Info{Body: newBody(ctx), Confirm: valid}
	ctx.SetUserValue(infoKey{}, info)
	return info
}

// Attach returns a context with the given record, for use cases that a page's handler calls.
func Attach(ctx context.Context, info *Info) context.Context {
	return context.WithValue(ctx, infoKey{}, info)
}

// From returns the record of the request that ctx belongs to. If ctx belongs to no request, From
// returns an empty record.
func From(ctx context.Context) *Info {
	if info, ok := ctx.Value(infoKey{}).(*Info); ok {
		return info
	}
	return &Info{Body: &Body{}, Confirm: valid}
}

// valid is the Confirm function for requests without a credential.
func valid() error { return nil }

// Principal returns who the request acts for. It is zero on routes without authentication.
func Principal(ctx context.Context) tenancy.Principal { return From(ctx).Principal }
