package edgetest

import (
	"context"

	tagapi "crier/apps/edge/api/tag"
	"crier/platform/fault"
	"crier/publishing"
	"crier/tenancy"
)

// tags implements the tag port for an organization without tags. Tests call only routes that need
// no body.
type tags struct{ otherTags }

type otherTags = tagapi.Tags

func (tags) List(context.Context, tenancy.Principal) ([]publishing.Tag, error) { return nil, nil }

func (tags) Delete(context.Context, tenancy.Principal, string) (publishing.Tag, error) {
	return publishing.Tag{}, fault.New(fault.NotFound, "tags", "There is no such tag.")
}
