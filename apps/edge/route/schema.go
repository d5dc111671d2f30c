package route

import (
	"slices"

	"github.com/danielgtaylor/huma/v2"
)

// completeSchemas corrects the schemas that huma generates. Code generators take a schema
// literally: an enumeration without null rejects null even if the type allows it, and
// additionalProperties makes generated types accept members of any name. The corrections do not
// affect validation.
func completeSchemas(doc *huma.OpenAPI) {
	for _, s := range doc.Components.Schemas.Map() {
		completeSchema(s)
	}
	for _, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Delete} {
			if op == nil {
				continue
			}
			for _, p := range op.Parameters {
				completeSchema(p.Schema)
			}
			if op.RequestBody != nil {
				completeContent(op.RequestBody.Content)
			}
			for _, r := range op.Responses {
				completeContent(r.Content)
			}
		}
	}
}

func completeContent(content map[string]*huma.MediaType) {
	for _, m := range content {
		completeSchema(m.Schema)
	}
}

// completeSchema corrects a schema and the schemas nested in it, but not the schemas it refers to.
func completeSchema(s *huma.Schema) {
	if s == nil {
		return
	}
	if s.Nullable && len(s.Enum) > 0 && !slices.Contains(s.Enum, nil) {
		s.Enum = append(slices.Clip(s.Enum), nil)
	}
	if s.AdditionalProperties == true && len(s.Properties) > 0 {
		s.AdditionalProperties = nil // nil, the default, means the same
	}
	for _, member := range s.Properties {
		completeSchema(member)
	}
	if others, ok := s.AdditionalProperties.(*huma.Schema); ok {
		completeSchema(others)
	}
	for _, form := range slices.Concat(s.OneOf, s.AnyOf, s.AllOf) {
		completeSchema(form)
	}
	completeSchema(s.Items)
	completeSchema(s.Not)
}
