package record

import (
	"strings"
)

// Mask returns prefix, the beginning of a key, followed by an ellipsis.
func Mask(prefix string) string { return prefix + "…" }

// IDRequest is a body that identifies one object.
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

// IDResponse holds the id of the object that a request changed.
type IDResponse struct {
	ID string `json:"id"`
}

// IDOutput is a response whose body is an IDResponse.
type IDOutput struct{ Body IDResponse }

// Named holds an entity's id. Routes that delete an entity respond with a Named, and requests use
// one to refer to a channel.
type Named struct {
	ID string `json:"id" doc:"Id, in lower case."`
}

// NamedOutput is a response whose body is a Named.
type NamedOutput struct{ Body Named }

// NewNamed returns a response with the id from a request, in lower case like all ids in responses.
func NewNamed(id string) *NamedOutput { return &NamedOutput{Body: Named{ID: strings.ToLower(id)}} }
