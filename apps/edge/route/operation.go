package route

import (
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"crier/apps/edge/problem"
)

// Answer adds a success answer to a hand-written operation; T is its JSON body.
func Answer[T any](t *Table, op huma.Operation, status int, description string) huma.Operation {
	schema := t.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, "")
	return Content(op, status, description, "application/json", schema)
}

// Content adds an answer of any content type; an empty one has no body.
func Content(op huma.Operation, status int, description, contentType string, schema *huma.Schema) huma.Operation {
	if op.Responses == nil {
		op.Responses = map[string]*huma.Response{}
	}
	r := &huma.Response{Description: description}
	if contentType != "" {
		r.Content = map[string]*huma.MediaType{contentType: {Schema: schema}}
	}
	op.Responses[strconv.Itoa(status)] = r
	return op
}

func (t *Table) describeError(op *huma.Operation, status int) {
	schema := t.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[problem.Fault](), true, "")
	*op = Content(*op, status, http.StatusText(status), "application/json", schema)
}
