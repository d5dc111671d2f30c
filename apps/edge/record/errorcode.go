package record

import (
	"github.com/danielgtaylor/huma/v2"

	"crier/publishing"
)

// ErrorCode is one of publishing.ErrorCodes, or null.
type ErrorCode string

// Schema returns an enumeration of the codes and null.
func (ErrorCode) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{
		Type: huma.TypeString, Nullable: true,
		Description: "Why the post failed, as a machine-readable code. The page /docs/errors describes each code.",
	}
	for _, c := range publishing.ErrorCodes() {
		s.Enum = append(s.Enum, c.Code)
	}
	s.Enum = append(s.Enum, nil)
	return s
}
