// Package request holds the record of the current request: its id, its principal, its body and its fault.
package request

import (
	"context"

	"github.com/valyala/fasthttp"

	"crier/tenancy"
)

type infoKey struct{}

// Info is the record of one request. It must not be kept after the request.
type Info struct {
	// ID is the request id of logs and of the header X-Request-Id.
	ID string
	// Principal is who the request acts for. It is zero before the authentication.
	Principal tenancy.Principal
	// From is where the request comes from. The Principal has the same.
	From tenancy.Source
	// Err is the error that was answered, for the log.
	Err  error
	Body *Body
	// Confirm returns an error when the credential of the request was found valid a while ago and is not any more. A
	// handler that reads the body itself calls it at its end, before it changes anything.
	Confirm func() error
}

// Start stores a new record in ctx, where From finds it. The outermost handler calls it once for each request.
func Start(ctx *fasthttp.RequestCtx) *Info {
	info := &Info{Body: newBody(ctx), Confirm: valid}
	ctx.SetUserValue(infoKey{}, info)
	return info
}

// From returns the record of the request that ctx belongs to, and an empty one if ctx belongs to none.
func From(ctx context.Context) *Info {
	if info, ok := ctx.Value(infoKey{}).(*Info); ok {
		return info
	}
	return &Info{Body: &Body{}, Confirm: valid}
}

// valid is Confirm for requests without a credential.
func valid() error { return nil }

// Principal returns who the request acts for. It is zero on routes without authentication.
func Principal(ctx context.Context) tenancy.Principal { return From(ctx).Principal }
