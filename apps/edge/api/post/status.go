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

// ChangeStatus returns the endpoint that makes a post a draft or schedules it. The endpoint returns
// Conflict while the post is being published.
func (a *API) ChangeStatus() route.Endpoint {
	d := route.Describe("Posts", "Make a post a draft, or schedule it", 400, 402, 403, 404, 409, 413)
	d.Description = "A post that is scheduled goes out at its date, and at once if the date is past. The date stays as it " +
		"is: to set another one, send POST /posts with the group of the post, type schedule and the date. A draft is not " +
		"published before it is scheduled. All posts of the group change together. 409 with Retry-After: the post is being " +
		"published, so read it after the wait. 409 without it: the post is or may be published, and republish: true " +
		"publishes it once more; or its content is not what was approved, and override: true schedules it nevertheless."
	return route.JSON(d, a.changeStatus)
}

// StatusRequest is the body that makes a post a draft or schedules it.
type StatusRequest struct {
	Status    string `json:"status"`
	Republish bool   `json:"republish,omitempty" doc:"Must be true for a post that is or may be published."`
	Override  bool   `json:"override,omitempty" doc:"Schedules a post whose content is not what was approved. For administrators and their keys; recorded in the audit log."`
}

// TransformSchema lists the values of status only in the document. The use case refuses other
// values, but only after it has found the post, so that an unknown post is 404.
func (StatusRequest) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Properties["status"].Description = "draft takes the post out of the queue; schedule puts it there."
	s.Properties["status"].Extensions = map[string]any{"enum": []string{"draft", "schedule"}}
	return s
}

type statusInput struct {
	ID   string `path:"id" doc:"Post id."`
	Body StatusRequest
}

// StatusAnswer is the new state of a post. ID is in lower case even if the request has it in upper
// case.
type StatusAnswer struct {
	ID    string `json:"id" doc:"Id of the post."`
	State string `json:"state" enum:"DRAFT,QUEUE" doc:"Its state now."`
}

type statusOutput struct{ Body StatusAnswer }

func (a *API) changeStatus(ctx context.Context, in *statusInput) (*statusOutput, error) {
	cmd := publishing.ChangeStatus{
		To: publishing.CreateType(in.Body.Status), Republish: in.Body.Republish, Override: in.Body.Override,
	}
	changed, err := a.deps.Posts.ChangeStatus(ctx, request.Principal(ctx), in.ID, cmd)
	if err != nil {
		return nil, record.WithJSONNames(err)
	}
	return &statusOutput{Body: StatusAnswer{ID: strings.ToLower(in.ID), State: record.StateName(changed.State)}}, nil
}
