// Package request is what the edge knows of the request at hand: its id, whose it is, its body, and what went wrong with it.
package request

import (
	"context"

	"github.com/valyala/fasthttp"

	"crier/tenancy"
)

type infoKey struct{}

// Info travels with one request and is not to be kept after it.
type Info struct {
	ID        string
	Principal tenancy.Principal // zero before authentication
	Err       error             // the fault that was answered, for the log
	Body      *Body
}

// Start begins the record of a request.
func Start(ctx *fasthttp.RequestCtx) *Info {
	info := &Info{Body: newBody(ctx)}
	ctx.SetUserValue(infoKey{}, info)
	return info
}

// From finds the record in a handler's context; outside a request it is an empty one.
func From(ctx context.Context) *Info {
	if info, ok := ctx.Value(infoKey{}).(*Info); ok {
		return info
	}
	return &Info{Body: &Body{}}
}

// Principal is who the request acts for; zero on routes without authentication.
func Principal(ctx context.Context) tenancy.Principal { return From(ctx).Principal }
