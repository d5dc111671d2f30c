package post

import (
	"context"
	"encoding/json"

	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/publishing"
)

// SettingsRequest is the body of PUT /posts/{id}/settings. Example: {"settings": {"topic": "cats"}}
type SettingsRequest struct {
	Settings record.Settings `json:"settings" doc:"Settings for the platform. Settings that you leave out are unchanged; null removes a setting."`
	Override bool            `json:"override,omitempty" doc:"Keeps an approved post in the queue even if its settings differ from what was approved. Only administrators and keys that administrators created can use this field. Its use is recorded in the audit log."`
}

type settingsInput struct {
	ID   string `path:"id" doc:"Post id."`
	Body SettingsRequest
}

// SettingsResponse is the response to changing a post's settings. PostID is the id of the first
// post in the thread.
type SettingsResponse struct {
	PostID      string `json:"postId" doc:"Id of the post."`
	PublishDate string `json:"publishDate" format:"date-time" doc:"When the post is due."`
	record.ApprovalEffect
}

type settingsOutput struct{ Body SettingsResponse }

// ChangeSettings returns the endpoint that changes an unpublished post's settings.
func (a *API) ChangeSettings() route.Endpoint {
	return route.JSON(route.Described(
		route.Describe("Posts", "Change a post's settings", 400, 402, 403, 404, 409, 413),
		"Settings that you send replace the post's current settings, and null removes a setting. Other settings, the "+
			"state and the date are unchanged. An approved post becomes a draft until it is approved again, and the "+
			"response contains state and approval. For a repeated post, only this occurrence changes. 409 with "+
			"Retry-After: the post is being published, or was changed at the same moment; wait that long, then "+
			"retry. 409 without Retry-After: the post has been published or may have been "+
			"published."), a.changeSettings)
}

func (a *API) changeSettings(ctx context.Context, in *settingsInput) (*settingsOutput, error) {
	cmd := publishing.ChangeSettings{Settings: json.RawMessage(in.Body.Settings), Override: in.Body.Override}
	changed, err := a.deps.Posts.ChangeSettings(ctx, request.Principal(ctx), in.ID, cmd)
	if err != nil {
		return nil, record.WithJSONNames(err)
	}
	return &settingsOutput{Body: SettingsResponse{
		PostID: changed.Post.String(), PublishDate: record.FormatTime(changed.PublishDate),
		ApprovalEffect: record.NewApprovalEffect(changed.Approval),
	}}, nil
}
