package post

import (
	"context"
	"strings"

	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/publishing"
	"crier/tenancy"
)

// Releases links published posts to their items on the platform. Callers pass ids exactly as the
// client sent them. Methods return NotFound, Unavailable and Internal in the same cases as Posts.
type Releases interface {
	// Missing returns the items on the platform that could be the post. It returns Unauthenticated
	// if the channel must be reconnected, and Upstream if the platform fails.
	Missing(ctx context.Context, p tenancy.Principal, id string) ([]publishing.RemoteItem, error)
	// SetRelease records a post's id on the platform. It returns Invalid if release is not a valid
	// id. It returns Conflict if the id is already known, or if the post is scheduled or being
	// published.
	SetRelease(ctx context.Context, p tenancy.Principal, id, release string) error
}

// Missing returns the endpoint that lists the items on the platform that could be a given post. The
// list is empty unless the platform published the post without returning an id. The endpoint is
// also part of the application API.
func (a *API) Missing() route.Endpoint {
	d := route.Describe("Posts", "List the items on the platform that may be this post", 404, 502)
	d.Description = "The list is empty unless the post's releaseId is missing and the platform can list posts. Send " +
		"the id of the matching item with PUT /posts/{id}/release-id."
	return route.JSON(d, a.missing)
}

// RemoteItem is a published item on a platform.
type RemoteItem struct {
	ID  string `json:"id" doc:"Id of the item on the platform."`
	URL string `json:"url" doc:"URL of the item on the platform."`
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

// SetRelease returns the endpoint that records a post's id on the platform. The endpoint is also
// part of the application API.
func (a *API) SetRelease() route.Endpoint {
	return route.JSON(route.Described(route.Describe("Posts", "Set a post's missing platform id", 400, 404, 409, 413),
		"Use this operation if the platform returned no id for a published post; GET /posts/{id}/missing lists the "+
			"candidates. Once the id is set, the post's statistics are available. 409: the id is already known, or "+
			"the post is scheduled or being published."), a.setRelease)
}

// ReleaseRequest is the body of PUT /posts/{id}/release-id. A missing id is rejected only after the
// post has been looked up, so a request for an unknown post returns 404.
type ReleaseRequest struct {
	ReleaseID string `json:"releaseId,omitempty" doc:"Required; at most 1024 bytes."`
}

type releaseInput struct {
	ID   string `path:"id" doc:"Post id."`
	Body ReleaseRequest
}

// ReleaseResponse is the response to recording a post's id on the platform.
type ReleaseResponse struct {
	ID        string `json:"id" doc:"Id of the post."`
	ReleaseID string `json:"releaseId" doc:"Id of the post on the platform."`
}

type releaseOutput struct{ Body ReleaseResponse }

func (a *API) setRelease(ctx context.Context, in *releaseInput) (*releaseOutput, error) {
	err := a.deps.Releases.SetRelease(ctx, request.Principal(ctx), in.ID, in.Body.ReleaseID)
	if err != nil {
		return nil, err
	}
	return &releaseOutput{Body: ReleaseResponse{ID: strings.ToLower(in.ID), ReleaseID: in.Body.ReleaseID}}, nil
}
