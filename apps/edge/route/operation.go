package route

import (
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

// Answer adds a success answer to a hand-written operation; T is its JSON body.
func Answer[T any](t *Table, op huma.Operation, status int, description string) huma.Operation {
	return Content(op, status, description, "application/json", Schema[T](t))
}

// Schema describes T once for the whole document.
func Schema[T any](t *Table) *huma.Schema {
	return t.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, "")
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
