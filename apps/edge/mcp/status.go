package mcp

import (
	"context"
	"strings"

	"crier/apps/edge/mcp/argument"
	"crier/apps/edge/record"
	"crier/platform/fault"
	"crier/publishing"
)

type statusInput struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

func (a postTools) changeStatus() *tool {
	return &tool{
		name: "service_change_post_status", title: "Schedule a post or make it a draft", writes: true, idempotent: true,
		description: "draft takes a post out of the queue. schedule queues it for its date; a post whose date has passed is " +
			"published at once, so set a new date with service_update_post_settings first.",
		input: arguments(properties{
			"id": postID(), "status": oneOf("New status of the post.", "draft", "schedule"),
		}, "id", "status"),
		output: answers(object("The post.", properties{
			"id": str("Post id."), "state": oneOf("State.", "DRAFT", "QUEUE"),
		}, "id", "state"), nil),
		fields: map[string]string{"to": "status"},
		run:    runner(a.runChangeStatus),
	}
}

func (a postTools) runChangeStatus(ctx context.Context, c *call, in statusInput) (answer, error) {
	changed, err := a.deps.Posts.ChangeStatus(ctx, c.p, in.ID, publishing.ChangeStatus{To: publishing.CreateType(in.Status)})
	if err != nil {
		next := map[fault.Kind]*nextCall{
			fault.Conflict: {Tool: toolGetPost, Arguments: map[string]any{"id": in.ID}},
			fault.Invalid:  {Tool: toolGetPost, Arguments: map[string]any{"id": in.ID}},
		}
		if c.mustAsk() && in.Status == string(publishing.CreateSchedule) {
			next[fault.Forbidden] = &nextCall{Tool: toolAskApproval, Arguments: map[string]any{"id": in.ID}}
		}
		return answer{}, withNext(noObject(err, "id", toolListPosts), next)
	}
	return answer{Output: map[string]any{"id": strings.ToLower(in.ID), "state": record.StateName(changed.State)}}, nil
}

type deleteInput struct {
	ID      string `json:"id"`
	Confirm bool   `json:"confirm"`
}

func (a postTools) deletePost() *tool {
	return &tool{
		name: "service_delete_post", title: "Delete a post", writes: true, destroys: true, idempotent: true,
		description: "Delete a post or draft, and all other posts in its group. A published post stays on its platform. For a " +
			"repeated post, this skips one occurrence. To keep a post but not publish it, make it a draft instead.",
		input: arguments(properties{
			"id":      postID(),
			"confirm": {Type: argument.TypeBoolean, Description: "Must be true, as a safeguard.", Enum: []any{true}},
		}, "id", "confirm"),
		output: answers(object("The post.", properties{"id": str("Post id.")}, "id"), nil),
		run:    runner(a.runDeletePost),
	}
}

func (a postTools) runDeletePost(ctx context.Context, c *call, in deleteInput) (answer, error) {
	if !in.Confirm {
		return answer{}, &failure{
			Code: argument.CodeInvalid, Field: "confirm", Message: "confirm must be true.", Allowed: []any{true},
		}
	}
	if err := a.deps.Posts.Delete(ctx, c.p, in.ID); err != nil {
		return answer{}, noObject(err, "id", toolListPosts)
	}
	return answer{Output: map[string]any{"id": strings.ToLower(in.ID)}}, nil
}
