package post

import (
	"context"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/publishing"
)

// ChangeStatus returns the endpoint that turns a post into a draft or schedules it. The endpoint
// returns Conflict while the post is being published.
func (a *API) ChangeStatus() route.Endpoint {
	d := route.Describe("Posts", "Change a post to a draft, or schedule it", 400, 402, 403, 404, 409, 413)
	d.Description = "A scheduled post is published at its date, or immediately if the date has passed. This " +
		"operation does not change the date; to change it, send POST /posts with the post's group, type schedule and " +
		"the new date. A draft is not published until it is scheduled. All posts in the group change together. 409 " +
		"with Retry-After: the post is being published; wait that long, then read the post. 409 without Retry-After: " +
		"the post has been published, or may have been; republish: true publishes it again. 409 without Retry-After " +
		"is also returned if the content differs from what was approved; override: true schedules it anyway."
	return route.JSON(d, a.changeStatus)
}

// StatusRequest is the body of PUT /posts/{id}/status.
type StatusRequest struct {
	Status    string `json:"status"`
	Republish bool   `json:"republish,omitempty" doc:"Must be true if the post has been published or may have been published."`
	Override  bool   `json:"override,omitempty" doc:"Schedules a post even if its content differs from what was approved. Only administrators and keys that administrators created can use this field. Its use is recorded in the audit log."`
}

// TransformSchema lists the values of status in the document, but does not make huma validate them.
// The use case rejects other values only after it has looked up the post, so a request for an
// unknown post returns 404.
func (StatusRequest) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Properties["status"].Description = "draft removes the post from the queue; schedule adds it to the queue."
	s.Properties["status"].Extensions = map[string]any{"enum": []string{"draft", "schedule"}}
	return s
}

type statusInput struct {
	ID   string `path:"id" doc:"Post id."`
	Body StatusRequest
}

// StatusResponse is a post's new state. ID is in lower case even if the request has it in upper
// case.
type StatusResponse struct {
	ID    string `json:"id" doc:"Id of the post."`
	State string `json:"state" enum:"DRAFT,QUEUE" doc:"New state of the post."`
}

type statusOutput struct{ Body StatusResponse }

func (a *API) changeStatus(ctx context.Context, in *statusInput) (*statusOutput, error) {
	cmd := publishing.ChangeStatus{
		To: publishing.CreateType(in.Body.Status), Republish: in.Body.Republish, Override: in.Body.Override,
	}
	changed, err := a.deps.Posts.ChangeStatus(ctx, request.Principal(ctx), in.ID, cmd)
	if err != nil {
		return nil, record.WithJSONNames(err)
	}
	return &statusOutput{Body: StatusResponse{ID: strings.ToLower(in.ID), State: record.StateName(changed.State)}}, nil
}
