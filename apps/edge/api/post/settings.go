package post

import (
	"context"
	"encoding/json"

	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/publishing"
)

// SettingsRequest is the body that changes the settings of a post. Example: {"settings": {"topic":
// "cats"}}
type SettingsRequest struct {
	Settings record.Settings `json:"settings" doc:"Settings of the platform. The post keeps those that are not named; null removes one."`
	Override bool            `json:"override,omitempty" doc:"Keeps an approved post in the queue with settings that were not approved. For administrators and their keys; recorded in the audit log."`
}

type settingsInput struct {
	ID   string `path:"id" doc:"Post id."`
	Body SettingsRequest
}

// SettingsAnswer is the post whose settings were changed. PostID is the root of its thread.
type SettingsAnswer struct {
	PostID      string `json:"postId" doc:"Id of the post."`
	PublishDate string `json:"publishDate" format:"date-time" doc:"When it goes out."`
	record.ApprovalEffect
}

type settingsOutput struct{ Body SettingsAnswer }

// ChangeSettings returns the endpoint that changes the settings of an unpublished post.
func (a *API) ChangeSettings() route.Endpoint {
	return route.JSON(route.Described(route.Describe("Posts", "Change settings of a post", 400, 402, 403, 404, 409, 413),
		"The members that are sent replace those of the post, null removes one, and the others stay, as "+
			"do the state and the date. An approved post becomes a draft until it is approved again, and the answer "+
			"has state and approval. Of a repeated post this occurrence alone is changed. 409 with Retry- "+
			"After: the post is being published, or was changed in this moment; repeat the request after the "+
			"wait. 409 without it: the post is or may be published."), a.changeSettings)
}

func (a *API) changeSettings(ctx context.Context, in *settingsInput) (*settingsOutput, error) {
	cmd := publishing.ChangeSettings{Settings: json.RawMessage(in.Body.Settings), Override: in.Body.Override}
	changed, err := a.deps.Posts.ChangeSettings(ctx, request.Principal(ctx), in.ID, cmd)
	if err != nil {
		return nil, record.WithJSONNames(err)
	}
	return &settingsOutput{Body: SettingsAnswer{
		PostID: changed.Post.String(), PublishDate: record.FormatTime(changed.PublishDate),
		ApprovalEffect: record.NewApprovalEffect(changed.Approval),
	}}, nil
}
