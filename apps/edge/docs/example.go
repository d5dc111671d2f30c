package docs

import (
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	postapi "crier/apps/edge/api/post"
	"crier/platform/fault"
)

// AddExamples adds the public API's examples to their operations. It returns Internal if an example
// cannot be read. It also returns Internal if an example names an operation or parameter that is
// not in the document.
func AddExamples(doc *huma.OpenAPI) error {
	examples, err := postapi.Examples()
	if err != nil {
		return err
	}
	return addExamples(doc, examples)
}

func addExamples(doc *huma.OpenAPI, examples map[string]postapi.Example) error {
	added := map[string]bool{}
	for _, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Delete} {
			if op == nil {
				continue
			}
			x, ok := examples[op.OperationID]
			if !ok {
				continue
			}
			added[op.OperationID] = true
			if err := addExample(op, x); err != nil {
				return err
			}
		}
	}
	for id := range examples {
		if !added[id] {
			return fault.New(fault.Internal, "docs.addExamples", "There is no operation "+id+" for its example.")
		}
	}
	return nil
}

func addExample(op *huma.Operation, x postapi.Example) error {
	left := len(x.Parameters)
	for _, p := range op.Parameters {
		if value, ok := x.Parameters[p.Name]; ok {
			p.Example = value
			left--
		}
	}
	if left > 0 {
		return fault.New(fault.Internal, "docs.addExample", "The example of "+op.OperationID+" has an unknown parameter.")
	}
	if len(x.Body) > 0 {
		setExample(op.RequestBody.Content, x.Body)
	}
	for status, r := range op.Responses {
		if code, err := strconv.Atoi(status); err == nil && code < http.StatusMultipleChoices {
			setExample(r.Content, x.Answer)
		}
	}
	return nil
}

func setExample(content map[string]*huma.MediaType, value any) {
	for _, m := range content {
		m.Example = value
	}
}
