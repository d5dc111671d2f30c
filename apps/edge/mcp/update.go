package mcp

import (
	"context"
	"encoding/json"
	"time"

	"crier/apps/edge/mcp/argument"
	"crier/apps/edge/record"
	"crier/platform/fault"
	"crier/publishing"
)

type updateInput struct {
	ID       string     `json:"id"`
	Settings []pair     `json:"settings"`
	Date     *time.Time `json:"date"`
	Parts    []part     `json:"postsAndComments"`
}

// updatedAnswer is a post that was changed.
type updatedAnswer struct {
	PostID string `json:"postId"`
	moment
	State    string `json:"state,omitempty"`
	Approval string `json:"approval,omitempty"`
}

func (a postTools) updatePost() *tool {
	return &tool{
		name: "service_update_post_settings", olderName: "postSettingsTool", title: "Change a post", writes: true,
		idempotent: true,
		description: "Change the settings, the date or the texts of a post that has not been published. What you omit stays " +
			"unchanged. postsAndComments replaces all parts. An approved post becomes a draft again when its texts or settings " +
			"change; the result then has state DRAFT.",
		input: arguments(properties{
			"id":       postID(),
			"settings": pairs("Settings to change.", settingName, "New value. null removes the setting."),
			"date":     date("New date, with an offset. Must be in the future."), "postsAndComments": parts(),
		}, "id"),
		output: answers(object("The post.", withMoment(properties{
			"postId":   str("Post id."),
			"state":    str("DRAFT if the post left the queue because its approved content changed."),
			"approval": str("VOID if the post is no longer approved."),
		}), "postId", "publishDate"), nil),
		prefix: "entries.0.",
		fields: map[string]string{
			"entries": "postsAndComments", "parts": "postsAndComments", "media": "attachments", "alt": "altTexts",
		},
		run: runner(a.runUpdatePost),
	}
}

func (a postTools) runUpdatePost(ctx context.Context, c *call, in updateInput) (answer, error) {
	if in.Settings == nil && in.Date == nil && in.Parts == nil {
		return answer{}, &failure{
			Code: argument.CodeMissing, Field: "settings",
			Message: "Send at least one change: settings, date or postsAndComments.",
		}
	}
	if in.Date != nil {
		if err := c.checkAhead("date", "", *in.Date); err != nil {
			return answer{}, err
		}
	}
	d, err := a.deps.Posts.Get(ctx, c.p, in.ID)
	if err != nil {
		return answer{}, noObject(err, "id", toolListPosts)
	}
	zone, changed := d.Channel.Timezone, publishing.SettingsChanged{}
	if in.Date == nil && in.Parts == nil {
		changed, err = a.changeSettings(ctx, c, in)
	} else {
		changed, err = a.edit(ctx, c, in, d)
	}
	if err != nil {
		return answer{}, updateFailure(in, d, err)
	}
	effect := record.NewApprovalEffect(changed.Approval)
	return answer{Output: updatedAnswer{
		PostID: changed.Post.String(), moment: momentIn(changed.PublishDate, zone), State: effect.State,
		Approval: effect.Approval,
	}}, nil
}

func (a postTools) changeSettings(ctx context.Context, c *call, in updateInput) (publishing.SettingsChanged, error) {
	members := map[string]json.RawMessage{}
	for _, p := range in.Settings {
		members[p.Key] = p.Value
	}
	data, err := json.Marshal(members)
	if err != nil {
		return publishing.SettingsChanged{}, err
	}
	return a.deps.Posts.ChangeSettings(ctx, c.p, in.ID, publishing.ChangeSettings{Settings: data})
}

// edit resubmits a post with the call's changes. The post keeps its state.
func (a postTools) edit(
	ctx context.Context, c *call, in updateInput, d publishing.PostDetail,
) (out publishing.SettingsChanged, err error) {
	values, err := mergeSettings(d.Root.Settings, in.Settings)
	if err != nil {
		return out, err
	}
	entry := publishing.CreateEntry{
		Channel: d.Channel.ID.String(), Group: d.Root.Group.String(), Parts: storedParts(d), Settings: values,
	}
	if in.Parts != nil {
		if entry.Parts, err = a.partsOf(c, "", in.Parts); err != nil {
			return out, err
		}
	}
	cmd := publishing.CreatePosts{
		Type: publishing.CreateUpdate, Date: d.Root.PublishDate, Method: d.Root.CreationMethod,
		Entries: []publishing.CreateEntry{entry},
	}
	if in.Date != nil {
		cmd.Date = *in.Date
	}
	made, err := a.deps.Posts.Create(ctx, c.p, cmd)
	if err != nil {
		return out, err
	}
	out = publishing.SettingsChanged{Post: d.Root.ID, PublishDate: cmd.Date}
	if len(made.Created) > 0 {
		out.Post, out.Approval = made.Created[0].Post, made.Created[0].Approval
	}
	return out, nil
}

// updateFailure adds to err a call that helps to correct the change.
func updateFailure(in updateInput, d publishing.PostDetail, err error) error {
	return withNext(err, map[fault.Kind]*nextCall{
		fault.Invalid:  {Tool: toolSchema, Arguments: map[string]any{"integrationId": d.Channel.ID.String()}},
		fault.Conflict: {Tool: toolGetPost, Arguments: map[string]any{"id": in.ID}},
	})
}
