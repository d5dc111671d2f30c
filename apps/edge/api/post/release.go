package post

import (
	"context"
	"strings"

	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/publishing"
	"crier/tenancy"
)

// Releases are the use cases for finding posts on their platforms. Ids are as for Posts.
type Releases interface {
	// Missing returns the items on the platform that a post may correspond to. It returns
	// Unauthenticated and Upstream like Tools.
	Missing(ctx context.Context, p tenancy.Principal, id string) ([]publishing.RemoteItem, error)
	// SetRelease stores the platform's id of a post. It returns Invalid, and Conflict if an id is
	// already known.
	SetRelease(ctx context.Context, p tenancy.Principal, id, release string) error
}

// Missing returns the endpoint that lists the platform's items that a post may correspond to, if
// the platform published it without returning its id. It is also part of the application API.
func (a *API) Missing() route.Endpoint {
	d := route.Describe("Posts", "List the items on the platform that may be a post", 404, 502)
	d.Description = "The list is empty unless releaseId is missing and the platform can list its posts. Send the id " +
		"of the right item with PUT /posts/{id}/release-id."
	return route.JSON(d, a.missing)
}

// RemoteItem is a published item on a platform.
type RemoteItem struct {
	ID  string `json:"id" doc:"Id on the platform."`
	URL string `json:"url" doc:"URL on the platform."`
}

type missingOutput struct{ Body []RemoteItem }

func (a *API) missing(ctx context.Context, in *idInput) (*missingOutput, error) {
	list, err := a.deps.Releases.Missing(ctx, request.Principal(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	out := &missingOutput{Body: make([]RemoteItem, 0, len(list))}
	for _, item := range list {
		out.Body = append(out.Body, RemoteItem(item))
	}
	return out, nil
}

// SetRelease returns the endpoint that stores the platform's id of a post. It is also part of the
// application API.
func (a *API) SetRelease() route.Endpoint {
	return route.JSON(route.Described(route.Describe("Posts", "Set the platform's id of a post whose id is missing", 400, 404, 409, 413),
		"For a published post for which the platform returned no id; GET /posts/{id}/missing lists the candidates. "+
			"Once the id is set, the post has statistics. 409: an id is already known, or the post is scheduled or "+
			"being published."), a.setRelease)
}

// ReleaseRequest is the body of PUT /posts/{id}/release-id. The use case refuses a body without an
// id only after it has found the post, so that an unknown post is 404.
type ReleaseRequest struct {
	ReleaseID string `json:"releaseId,omitempty" doc:"Required; at most 1024 bytes."`
}

type releaseInput struct {
	ID   string `path:"id" doc:"Post id."`
	Body ReleaseRequest
}

// ReleaseAnswer is the post with its new release id.
type ReleaseAnswer struct {
	ID        string `json:"id" doc:"Id of the post."`
	ReleaseID string `json:"releaseId" doc:"Its id on the platform."`
}

type releaseOutput struct{ Body ReleaseAnswer }

func (a *API) setRelease(ctx context.Context, in *releaseInput) (*releaseOutput, error) {
	err := a.deps.Releases.SetRelease(ctx, request.Principal(ctx), in.ID, in.Body.ReleaseID)
	if err != nil {
		return nil, err
	}
	return &releaseOutput{Body: ReleaseAnswer{ID: strings.ToLower(in.ID), ReleaseID: in.Body.ReleaseID}}, nil
}
