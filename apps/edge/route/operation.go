package route

import (
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

// Answer returns op with a documented answer whose JSON body is a T.
func Answer[T any](t *Table, op huma.Operation, status int, description string) huma.Operation {
	return Content(op, status, description, "application/json", Schema[T](t))
}

// Schema returns a reference to the schema of T, which the document holds once.
func Schema[T any](t *Table) *huma.Schema {
	return t.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, "")
}

// Content returns op with a documented answer of a content type. With an empty content type the answer has no body.
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
