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

// Deps holds an API's dependencies.
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

// GetPost returns the endpoint that gets a post with its timeline. For an id that does not parse,
// the endpoint returns NotFound, not Invalid.
func (a *API) GetPost() route.Endpoint {
	return route.JSON(route.Described(route.Describe("Posts", "Get a post with its channel, media and timeline", 400, 404),
		"posts[0] contains the outcome: state, releaseURL, error and errorCode."), a.getPost)
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

// DeletePost returns the endpoint that deletes a post and its group. For a repeated post, the
// endpoint skips one occurrence.
func (a *API) DeletePost() route.Endpoint {
	d := route.Describe("Posts", "Delete a post and its whole group; published posts stay on the platform. "+
		"For a repeated post, this skips one occurrence", 404)
	d.Description = "A post that is being published may still be published. To take a post out of the queue but keep " +
		"it, make it a draft with PUT /posts/{id}/status."
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

// DeleteGroup returns the endpoint that deletes a group of posts. Deleting the group of a repeated
// post ends the repetition.
func (a *API) DeleteGroup() route.Endpoint {
	return route.JSON(route.Described(route.Describe("Posts", "Delete a whole group of posts; this ends a repeated post", 404),
		"group is a post's group, as returned by GET /posts. Published posts stay on the platform, and a post that "+
			"is being published may still be published."), a.deleteGroup)
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

// Posts creates, reads and changes posts. Callers pass ids exactly as the client sent them. Methods
// return NotFound if a post or a group does not exist or belongs to another organization, or if the
// id does not parse. Every method can also return Unavailable and Internal.
type Posts interface {
	// Create creates or updates posts and returns one post per entry. If the request is invalid, it
	// returns Invalid and lists either the invalid fields or one item for each invalid channel. It
	// returns Quota if the organization has reached its limit on posts, and TooLarge if checking
	// the posts takes too long.
	//
	// Create returns Conflict if a post cannot be changed now, or if another request with the same
	// idempotency key is running.
	//
	// The result for an idempotency key is stored in the same transaction as the posts. If a
	// request is repeated after a crash, Create returns the stored result or, if there is none,
	// creates the posts.
	Create(ctx context.Context, p tenancy.Principal, cmd publishing.CreatePosts) (publishing.CreateResult, error)
	// List returns the threads in a date range or on a page. It returns Invalid if the range is too
	// large.
	List(ctx context.Context, p tenancy.Principal, q publishing.ListPosts) (publishing.ThreadPage, error)
	// Get returns a post with its timeline.
	Get(ctx context.Context, p tenancy.Principal, id string) (publishing.PostDetail, error)
	// Delete deletes a post and its group. For a repeated post, it skips one occurrence. A post
	// that is being published may still be published.
	Delete(ctx context.Context, p tenancy.Principal, id string) error
	// DeleteGroup deletes a group of posts and ends any repetition. As with Delete, a post that is
	// being published may still be published.
	DeleteGroup(ctx context.Context, p tenancy.Principal, group string) error
	// ChangeStatus turns a post into a draft or schedules it, and returns the post's new state. It
	// returns Invalid if cmd has any other status, or if the post breaks its platform's rules. It
	// returns Quota if the organization has reached its limit on posts, and Forbidden if the
	// principal may not override an approval.
	//
	// ChangeStatus returns Conflict if the post is being published, or if it is already published
	// and cmd.Republish is false. It also returns Conflict if the post's content differs from what
	// was approved and cmd.Override is false.
	ChangeStatus(
		ctx context.Context, p tenancy.Principal, id string, cmd publishing.ChangeStatus,
	) (publishing.StatusChanged, error)
	// ChangeSettings changes the settings that cmd names. The post keeps its state unless it was
	// approved with different settings. ChangeSettings returns Invalid if a queued post may not
	// have these settings, and Forbidden if the principal may not override an approval. It returns
	// Conflict if the post is published or is being published.
	ChangeSettings(
		ctx context.Context, p tenancy.Principal, id string, cmd publishing.ChangeSettings,
	) (publishing.SettingsChanged, error)
	// Check applies all rules to the entries and stores nothing. It returns Invalid if cmd breaks a
	// rule that does not depend on a channel, and TooLarge if checking takes too long.
	Check(ctx context.Context, p tenancy.Principal, cmd publishing.CreatePosts) ([]publishing.Checked, error)
}
