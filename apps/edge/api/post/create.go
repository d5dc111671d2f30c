package post

import (
	"context"
	"net/http"

	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/publishing"
)

type createInput struct {
	Key string `header:"Idempotency-Key" doc:"At most 255 visible ASCII characters."`
}

// Created is the result for one entry of POST /posts.
type Created struct {
	PostID      string `json:"postId" doc:"Id of the post."`
	Integration string `json:"integration" doc:"Channel id."`
	record.ApprovalEffect
}

type createOutput struct {
	Replayed string    `header:"Idempotent-Replayed" doc:"true if this is the response to an earlier request."`
	Mismatch string    `header:"Idempotent-Mismatch" doc:"true if the body differs from the body of the earlier request."`
	Body     []Created `doc:"One entry per channel, in the order of the request."`
}

// CreatePosts returns the endpoint that creates and updates posts. The endpoint decodes the body
// without huma, because clients also send forms that the schema does not describe.
func (a *API) CreatePosts() route.Endpoint {
	d := route.Describe("Posts", "Publish, schedule or draft a post on one or more channels", 400, 402, 403, 409, 413)
	d.Description = "A request that repeats an Idempotency-Key creates nothing and returns the first response. An " +
		"entry that identifies a post by group or value[].id replaces that post; see /docs/editing. 409 with " +
		"Retry-After: a request with the same key is running, or the post to replace is being published; wait that " +
		"long, then retry. 409 without Retry-After: the post has been published or may have been published; " +
		"republish: true publishes it again. An approved post keeps its approval if its content is unchanged. If the " +
		"content changes, the post becomes a draft until it is approved again, and the response contains state and " +
		"approval."
	d.DefaultStatus = http.StatusCreated
	return route.JSON(d, a.createPosts, route.RequestBody[CreateRequest]())
}

func (a *API) createPosts(ctx context.Context, in *createInput) (*createOutput, error) {
	if err := checkKey(in.Key); err != nil {
		return nil, err
	}
	cmd, err := decodeCreate(request.From(ctx).Body.Loaded())
	if err != nil {
		return nil, err
	}
	cmd.IdempotencyKey = in.Key
	res, err := a.deps.Posts.Create(ctx, request.Principal(ctx), cmd)
	if err != nil {
		return nil, record.WithJSONNames(err)
	}
	return created(res), nil
}

func created(res publishing.CreateResult) *createOutput {
	out := &createOutput{Body: make([]Created, 0, len(res.Created))}
	for _, c := range res.Created {
		out.Body = append(out.Body, Created{
			PostID: c.Post.String(), Integration: c.Channel.String(),
			ApprovalEffect: record.NewApprovalEffect(c.Approval),
		})
	}
	if res.Replayed {
		out.Replayed = "true"
	}
	if res.Mismatch {
		out.Mismatch = "true"
	}
	return out
}
