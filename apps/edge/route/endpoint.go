package route

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/problem"
	"crier/apps/edge/request"
	"crier/platform/fault"
)

// Endpoint is a handler with its description. Its line in the route table adds the method, the
// path, the operation id and the credential.
type Endpoint struct {
	// Description is the operation in the OpenAPI document, without the values that the line adds.
	Description huma.Operation

	details []Detail
	add     func(t *Table, l Line)
}

// Detail adds to an endpoint's description the parts that refer to the document's schemas.
type Detail func(schemas huma.Registry, op *huma.Operation)

// JSON returns an endpoint with typed input and output. If fn returns an error, the error is
// logged, and package problem turns it into the response. huma does not limit the body, because
// earlier handlers do.
func JSON[I, O any](
	description huma.Operation, fn func(context.Context, *I) (*O, error), details ...Detail,
) Endpoint {
	e := Endpoint{Description: description, details: details}
	e.add = func(t *Table, l Line) {
		op := t.operation(l)
		op.MaxBodyBytes, op.BodyReadTimeout = -1, -1
		var body map[string]*huma.MediaType
		// Hide the body's schema from huma, which would otherwise read and decode the body itself.
		if op.RequestBody != nil {
			body, op.RequestBody.Content = op.RequestBody.Content, map[string]*huma.MediaType{}
		}
		t.before = l.Before
		huma.Register(t.api, op, func(ctx context.Context, in *I) (*O, error) {
			out, err := fn(ctx, in)
			if err != nil {
				request.From(ctx).Err = err
				return nil, problem.Of(err, t.billing)
			}
			return out, nil
		})
		if op.RequestBody != nil {
			op.RequestBody.Content = body
		}
	}
	return e
}

// Raw returns an endpoint with a Fiber handler. It documents the error responses in
// description.Errors. All other responses must be documented by description and details.
func Raw(description huma.Operation, handler fiber.Handler, details ...Detail) Endpoint {
	e := Endpoint{Description: description, details: details}
	e.add = func(t *Table, l Line) {
		op := t.operation(l)
		for _, status := range op.Errors {
			Answer[problem.Fault](status, http.StatusText(status))(t.schemas(), &op)
		}
		t.api.OpenAPI().AddOperation(&op)
		t.addHandlers(l.Method, l.Path, append(slices.Clone(l.Before), handler)...)
	}
	return e
}

// NotBuilt returns an endpoint that responds with 501 and is not in the OpenAPI document.
func NotBuilt() Endpoint {
	return Endpoint{add: func(t *Table, l Line) {
		refusal := fault.New(fault.NotBuilt, "route.NotBuilt", l.Method+" "+l.Path+" is not built yet.")
		t.addHandlers(l.Method, l.Path, append(slices.Clone(l.Before), func(*fiber.Ctx) error { return refusal })...)
	}}
}

// operation returns the description of the line's endpoint. It adds the line's values first, and
// then the endpoint's details.
func (t *Table) operation(l Line) huma.Operation {
	op := l.Endpoint.Description
	op.Method, op.Path, op.OperationID = l.Method, l.Path, l.Operation
	op.Security = l.Security
	op.Errors = slices.Concat(l.Errors, op.Errors)
	for _, add := range l.Endpoint.details {
		add(t.schemas(), &op)
	}
	return op
}

func (t *Table) schemas() huma.Registry { return t.api.OpenAPI().Components.Schemas }

// Answer adds a response whose JSON body is a T. It replaces any response with the same status.
func Answer[T any](status int, description string) Detail {
	return func(schemas huma.Registry, op *huma.Operation) {
		addResponse(op, status, description, fiber.MIMEApplicationJSON, schemaOf[T](schemas))
	}
}

// AnswerEither adds a response whose JSON body is an A or a B. It replaces any response with the
// same status.
func AnswerEither[A, B any](status int, description string) Detail {
	return func(schemas huma.Registry, op *huma.Operation) {
		either := &huma.Schema{AnyOf: []*huma.Schema{schemaOf[A](schemas), schemaOf[B](schemas)}}
		addResponse(op, status, description, fiber.MIMEApplicationJSON, either)
	}
}

// Content adds a response with the given content type, and replaces any response with the same
// status. If the content type is empty, the response has no body.
func Content(status int, description, contentType string, schema *huma.Schema) Detail {
	return func(_ huma.Registry, op *huma.Operation) {
		addResponse(op, status, description, contentType, schema)
	}
}

// RequestBody adds a required JSON body with the schema of T. The handler must decode the body.
func RequestBody[T any]() Detail {
	return func(schemas huma.Registry, op *huma.Operation) {
		op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			fiber.MIMEApplicationJSON: {Schema: schemaOf[T](schemas)},
		}}
	}
}

// schemaOf returns a reference to the schema of T. The document contains the schema only once.
func schemaOf[T any](schemas huma.Registry) *huma.Schema {
	return schemas.Schema(reflect.TypeFor[T](), true, "")
}

// addResponse adds a response, or replaces the one with the same status. If the content type is
// empty, the response has no body.
func addResponse(op *huma.Operation, status int, description, contentType string, schema *huma.Schema) {
	if op.Responses == nil {
		op.Responses = map[string]*huma.Response{}
	}
	r := &huma.Response{Description: description}
	if contentType != "" {
		r.Content = map[string]*huma.MediaType{contentType: {Schema: schema}}
	}
	op.Responses[strconv.Itoa(status)] = r
}
