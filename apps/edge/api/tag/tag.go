// Package tag provides the endpoints for tags.
package tag

import (
	"context"
	"net/http"

	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/clock"
	"crier/publishing"
	"crier/tenancy"
)

// Deps holds an API's dependencies.
type Deps struct {
	Tags  Tags
	Clock clock.Clock
}

// API provides the endpoints, one per exported method. It is safe for concurrent use.
type API struct{ deps Deps }

// New returns an API. It does not check that d is complete.
func New(d Deps) *API { return &API{deps: d} }

// Tags manages an organization's tags. Methods return NotFound if the tag does not exist or its id
// does not parse.
type Tags interface {
	// List returns the organization's tags, sorted by name.
	List(ctx context.Context, p tenancy.Principal) ([]publishing.Tag, error)
	// Create creates a tag. It returns Invalid if cmd is invalid, and Conflict if the name is taken
	// or the organization has reached its limit on tags.
	Create(ctx context.Context, p tenancy.Principal, cmd publishing.SaveTag) (publishing.Tag, error)
	// Update changes a tag. It returns Invalid if cmd is invalid, and Conflict if the name is
	// taken.
	Update(ctx context.Context, p tenancy.Principal, tag string, cmd publishing.SaveTag) (publishing.Tag, error)
	// Delete deletes a tag and returns it.
	Delete(ctx context.Context, p tenancy.Principal, tag string) (publishing.Tag, error)
}

// TagRecord is one of the organization's tags. DeletedAt is set only in the response to the request
// that deletes the tag.
type TagRecord struct {
	ID        string  `json:"id" doc:"Id of the tag."`
	Name      string  `json:"name" doc:"Name of the tag, unique in the organization, ignoring case."`
	Color     string  `json:"color" example:"#1f6feb" doc:"Color, such as #1F6FEB."`
	OrgID     string  `json:"orgId" doc:"Id of the organization."`
	CreatedAt string  `json:"createdAt" format:"date-time" doc:"When the tag was created."`
	UpdatedAt string  `json:"updatedAt" format:"date-time" doc:"When the tag was last changed."`
	DeletedAt *string `json:"deletedAt" nullable:"true" format:"date-time" doc:"When the tag was deleted; null except in the response to the deletion."`
}

func tagRecord(p tenancy.Principal, t publishing.Tag) TagRecord {
	return TagRecord{
		ID: t.ID.String(), Name: t.Name, Color: t.Color, OrgID: p.Org.String(),
		CreatedAt: record.FormatTime(t.CreatedAt), UpdatedAt: record.FormatTime(t.UpdatedAt),
	}
}

// TagList is the response to a request that lists the tags.
type TagList struct {
	Tags []TagRecord `json:"tags" doc:"The tags, sorted by name."`
}

type tagsOutput struct{ Body TagList }

// ListTags returns the endpoint that lists the organization's tags, sorted by name.
func (a *API) ListTags() route.Endpoint {
	return route.JSON(route.Described(route.Describe("Tags", "List the organization's tags"),
		"To tag a post, list the tags in tags when you call POST /posts."), a.listTags)
}

func (a *API) listTags(ctx context.Context, _ *struct{}) (*tagsOutput, error) {
	p := request.Principal(ctx)
	tags, err := a.deps.Tags.List(ctx, p)
	if err != nil {
		return nil, err
	}
	out := &tagsOutput{Body: TagList{Tags: make([]TagRecord, 0, len(tags))}}
	for _, t := range tags {
		out.Body.Tags = append(out.Body.Tags, tagRecord(p, t))
	}
	return out, nil
}

// CreateTagDto is the request body for creating or changing a tag.
type CreateTagDto struct {
	Name  string `json:"name" doc:"1 to 64 characters, unique in the organization, ignoring case."`
	Color string `json:"color" doc:"Color in the form #rrggbb." example:"#1f6feb"`
}

func (d CreateTagDto) command() publishing.SaveTag {
	return publishing.SaveTag{Name: d.Name, Color: d.Color}
}

type tagInput struct{ Body CreateTagDto }

type tagOutput struct{ Body TagRecord }

// CreateTag returns the endpoint that creates a tag.
func (a *API) CreateTag() route.Endpoint {
	d := route.Describe("Tags", "Create a tag", 400, 409, 413)
	d.Description = "409: a tag already has this name, ignoring case, or the organization has reached its limit on tags."
	d.DefaultStatus = http.StatusCreated
	return route.JSON(d, a.createTag)
}

func (a *API) createTag(ctx context.Context, in *tagInput) (*tagOutput, error) {
	p := request.Principal(ctx)
	t, err := a.deps.Tags.Create(ctx, p, in.Body.command())
	if err != nil {
		return nil, err
	}
	return &tagOutput{Body: tagRecord(p, t)}, nil
}

// UpdateTag returns the endpoint that changes a tag's name and color. All posts with the tag show
// the change.
func (a *API) UpdateTag() route.Endpoint {
	return route.JSON(route.Described(route.Describe("Tags", "Change a tag", 400, 404, 409, 413),
		"The tag's posts show the new name and color. 409: another tag already has this name."), a.updateTag)
}

type updateTagInput struct {
	ID   string `path:"id" doc:"Tag id."`
	Body CreateTagDto
}

func (a *API) updateTag(ctx context.Context, in *updateTagInput) (*tagOutput, error) {
	p := request.Principal(ctx)
	t, err := a.deps.Tags.Update(ctx, p, in.ID, in.Body.command())
	if err != nil {
		return nil, err
	}
	return &tagOutput{Body: tagRecord(p, t)}, nil
}

// DeleteTag returns the endpoint that deletes a tag. Posts with the tag are kept but lose the tag.
func (a *API) DeleteTag() route.Endpoint {
	return route.JSON(route.Described(route.Describe("Tags", "Delete a tag; its posts are kept", 404),
		"The tag is removed from all posts that have it."), a.deleteTag)
}

type deleteTagInput struct {
	ID string `path:"id" doc:"Tag id."`
}

func (a *API) deleteTag(ctx context.Context, in *deleteTagInput) (*tagOutput, error) {
	p := request.Principal(ctx)
	t, err := a.deps.Tags.Delete(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	out := &tagOutput{Body: tagRecord(p, t)}
	at := record.FormatTime(a.deps.Clock.Now())
	out.Body.DeletedAt = &at
	return out, nil
}
