// Package post provides the endpoints for posts.
package post

import (
	"context"

	"crier/platform/clock"

	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/publishing"
	"crier/tenancy"
)

// Deps are the dependencies of an API.
type Deps struct {
	Base     record.Base
	Posts    Posts
	Releases Releases
	Clock    clock.Clock
}

// API provides the endpoints, one per exported method. It is safe for concurrent use.
type API struct{ deps Deps }

// New returns an API. It does not check that d is complete.
func New(d Deps) *API { return &API{deps: d} }

// GetPost returns the endpoint for one post with its timeline. An id that does not parse is
// NotFound, not Invalid.
func (a *API) GetPost() route.Endpoint {
	return route.JSON(route.Described(route.Describe("Posts", "Get a post with its channel, media and timeline", 400, 404),
		"posts[0] has the outcome: state, releaseURL, error and errorCode."), a.getPost)
}

type getInput struct {
	ID     string `path:"id" doc:"Post id."`
	Format string `query:"format" enum:"html,text" doc:"As in the list of posts."`
}

type detailOutput struct{ Body record.Detail }

func (a *API) getPost(ctx context.Context, in *getInput) (*detailOutput, error) {
	d, err := a.deps.Posts.Get(ctx, request.Principal(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return &detailOutput{Body: a.deps.Base.Detail(d, in.Format)}, nil
}

// DeletePost returns the endpoint that deletes a post with its group. For a repeated post, it skips
// one occurrence.
func (a *API) DeletePost() route.Endpoint {
	d := route.Describe("Posts", "Delete a post and its whole group; published posts stay on the platform. "+
		"For a repeated post, this skips one occurrence", 404)
	d.Description = "A post that is being published may still go out. To take a post out of the queue and keep it, " +
		"make it a draft with PUT /posts/{id}/status."
	return route.JSON(d, a.deletePost)
}

type idInput struct {
	ID string `path:"id" doc:"Post id."`
}

func (a *API) deletePost(ctx context.Context, in *idInput) (*record.NamedOutput, error) {
	if err := a.deps.Posts.Delete(ctx, request.Principal(ctx), in.ID); err != nil {
		return nil, err
	}
	return record.NewNamed(in.ID), nil
}

// DeleteGroup returns the endpoint that deletes a group of posts. It ends a repeated post.
func (a *API) DeleteGroup() route.Endpoint {
	return route.JSON(route.Described(route.Describe("Posts", "Delete a whole group of posts; this ends a repeated post", 404),
		"group is the group of a post. Published posts stay on the platform, and a post that is being published may "+
			"still go out."), a.deleteGroup)
}

type groupInput struct {
	Group string `path:"group" doc:"Group id."`
}

func (a *API) deleteGroup(ctx context.Context, in *groupInput) (*record.NamedOutput, error) {
	if err := a.deps.Posts.DeleteGroup(ctx, request.Principal(ctx), in.Group); err != nil {
		return nil, err
	}
	return record.NewNamed(in.Group), nil
}

// Posts are the use cases of posts. Ids are text as the client sent it. Methods return NotFound for
// a post or group that does not exist or belongs to another organization, or whose id does not
// parse. Every method can also return Unavailable and Internal.
type Posts interface {
	// Create creates or updates posts and returns one post per entry. It returns Invalid with the
	// wrong fields or with one entry for each wrong channel, Quota at the limit on posts, and
	// TooLarge. It returns Conflict if a post cannot be changed now, or while another request with
	// the same idempotency key is running.
	//
	// The result of an idempotency key is stored in the same transaction as its posts. After a
	// crash, a repeated request returns that result or creates the posts.
	Create(ctx context.Context, p tenancy.Principal, cmd publishing.CreatePosts) (publishing.CreateResult, error)
	// List returns the threads of a date range or of a page. It returns Invalid if the range is too
	// large.
	List(ctx context.Context, p tenancy.Principal, q publishing.ListPosts) (publishing.ThreadPage, error)
	// Get returns one post with its timeline.
	Get(ctx context.Context, p tenancy.Principal, id string) (publishing.PostDetail, error)
	// Delete deletes a post with its group. For a repeated post, it skips one occurrence. A post
	// that is being published may still go out.
	Delete(ctx context.Context, p tenancy.Principal, id string) error
	// DeleteGroup deletes a group of posts and ends a repeated post. As with Delete, a post that is
	// being published may still go out.
	DeleteGroup(ctx context.Context, p tenancy.Principal, group string) error
	// ChangeStatus makes a post a draft or schedules it, and returns its new state. It returns
	// Invalid for another status or a post that breaks the rules of its platform, Quota at the
	// limit on posts, and Forbidden if the principal may not override.
	//
	// It returns Conflict while the post is being published, if it is published and cmd.Republish
	// is false, or if its content is not what was approved and cmd.Override is false.
	ChangeStatus(
		ctx context.Context, p tenancy.Principal, id string, cmd publishing.ChangeStatus,
	) (publishing.StatusChanged, error)
	// ChangeSettings replaces the settings of a post, which keeps its state unless it was approved
	// with different settings. It returns Invalid for settings that a queued post may not have,
	// Conflict for a post that is published or is being published, and Forbidden if the principal
	// may not override.
	ChangeSettings(
		ctx context.Context, p tenancy.Principal, id string, cmd publishing.ChangeSettings,
	) (publishing.SettingsChanged, error)
	// Check applies all rules to the entries and stores nothing. It returns Invalid if cmd breaks a
	// rule that does not depend on a channel, and TooLarge.
	Check(ctx context.Context, p tenancy.Principal, cmd publishing.CreatePosts) ([]publishing.Checked, error)
}
