package record

import (
	"strings"
)

// Mask returns the beginning of a key with a mark that it is cut.
func Mask(prefix string) string { return prefix + "…" }

// IDRequest is a body that names one object.
type IDRequest struct {
	ID string `json:"id" maxLength:"128"`
}

// IDInput is the input of an endpoint whose body is an IDRequest.
type IDInput struct{ Body IDRequest }

// OptionalText returns nil for an empty text.
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

// IDAnswer names the object that a request has changed.
type IDAnswer struct {
	ID string `json:"id"`
}

// IDOutput is the answer with an IDAnswer.
type IDOutput struct{ Body IDAnswer }

// Named is the id of an entity: the answer of routes that delete it, and a channel in a request.
type Named struct {
	ID string `json:"id" doc:"Id, in lower case."`
}

// NamedOutput is the answer with a Named.
type NamedOutput struct{ Body Named }

// NewNamed returns the answer with an id of a request. All answers have ids in lower case.
func NewNamed(id string) *NamedOutput { return &NamedOutput{Body: Named{ID: strings.ToLower(id)}} }
