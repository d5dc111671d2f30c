package record

import (
	"strings"
)

// Mask returns the beginning of a key followed by an ellipsis.
func Mask(prefix string) string { return prefix + "…" }

// IDRequest is a body that names one object.
type IDRequest struct {
	ID string `json:"id" maxLength:"128"`
}

// IDInput is the input of an endpoint whose body is an IDRequest.
type IDInput struct{ Body IDRequest }

// OptionalText returns a pointer to the text, or nil if it is empty.
func OptionalText(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// PathID is the input of an endpoint with an id in its path.
type PathID struct {
	ID string `path:"id"`
}

// IDAnswer has the id of the object that a request has changed.
type IDAnswer struct {
	ID string `json:"id"`
}

// IDOutput is the response with an IDAnswer.
type IDOutput struct{ Body IDAnswer }

// Named is the id of an entity: the response of routes that delete it, or a channel in a request.
type Named struct {
	ID string `json:"id" doc:"Id, in lower case."`
}

// NamedOutput is the response with a Named.
type NamedOutput struct{ Body Named }

// NewNamed returns the response with the id of a request, in lower case like all ids in responses.
func NewNamed(id string) *NamedOutput { return &NamedOutput{Body: Named{ID: strings.ToLower(id)}} }
