package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"crier/apps/edge/mcp/argument"
	"crier/apps/edge/record"
	"crier/platform/fault"
	"crier/publishing"
)

// These constants limit the texts and lists in answers.
const (
	listedContent  = 1_000 // characters of a post in a list
	shownContent   = 4_000 // characters of a part
	listedSettings = 500   // bytes of a post's settings in a list
	shownSettings  = 4_000 // bytes
	shownReason    = 500   // characters
	shownEvents    = 20
)

// postTools are the tools for posts.
type postTools struct{ deps Deps }

func (a postTools) all() []*tool {
	return []*tool{a.createPost(), a.listPosts(), a.getPost(), a.updatePost(), a.changeStatus(), a.deletePost()}
}

// listedPost is a post in a list.
type listedPost struct {
	ID string `json:"id"`
	moment
	State           string          `json:"state"`
	Content         string          `json:"content"`
	ContentCut      bool            `json:"contentCut,omitempty"`
	Settings        json.RawMessage `json:"settings,omitempty"`
	Group           string          `json:"group"`
	IntegrationID   string          `json:"integrationId"`
	Platform        string          `json:"platform"`
	IntegrationName string          `json:"integrationName"`
	Attachments     int             `json:"attachments,omitempty"`
	ReleaseURL      string          `json:"releaseURL,omitempty"`

	date time.Time
}

func listedPostOf(t publishing.Thread) listedPost {
	out := listedPost{
		ID: t.Root.ID.String(), moment: momentIn(t.Root.PublishDate, t.Channel.Timezone),
		State: record.StateName(t.Effective().State),
		Group: t.Root.Group.String(), IntegrationID: t.Channel.ID.String(), Platform: t.Channel.Connector,
		IntegrationName: t.Channel.Name, date: t.Root.PublishDate,
	}
	if len(t.Root.Parts) > 0 {
		out.Content, out.ContentCut = excerpt(t.Root.Parts[0].Content.Text, listedContent)
	}
	if len(t.Root.Settings) <= listedSettings {
		out.Settings = t.Root.Settings
	}
	for _, p := range t.Root.Parts {
		out.Attachments += len(p.Media)
	}
	if t.Root.ReleaseURL != nil {
		out.ReleaseURL = *t.Root.ReleaseURL
	}
	return out
}

// stateDoc describes the states of a post.
const stateDoc = "DRAFT, QUEUE (waiting or being published), PUBLISHED or ERROR."

type listPostsInput struct {
	Start    time.Time `json:"startDate"`
	End      time.Time `json:"endDate"`
	Customer string    `json:"customer"`
	Cursor   string    `json:"cursor"`
}

func (a postTools) listPosts() *tool {
	item := object("A post.", withMoment(properties{
		"id": str("Post id."), "state": str(stateDoc), "content": str("Text of the first part."),
		"contentCut":    flag("true: the text was cut; see " + toolGetPost + "."),
		"settings":      {Type: argument.TypeObject, Description: "Settings, unless they are long."},
		"group":         str("Id of posts that belong together."),
		"integrationId": str("Channel id."), "platform": str("Platform."),
		"integrationName": str("Name of the channel."),
		"attachments":     number("Number of files."), "releaseURL": str("Link to the published post."),
	}), "id", "state", "publishDate", "integrationId")
	return &tool{
		name: toolListPosts, olderName: "postsListTool", title: "List posts", idempotent: true,
		description: "List the posts and drafts dated from startDate to endDate, earliest first, including every occurrence of " +
			"repeated posts.",
		input: arguments(properties{
			"startDate": date("First date, with an offset."), "endDate": date("Last date, at most 366 days later."),
			"customer": str("Only this group's channels. Ids: " + toolListGroups + ".").From(toolListGroups),
			"cursor":   cursor(),
		}, "startDate", "endDate"),
		output: answers(object("A page of posts.", properties{"posts": list("Posts.", item)}, "posts"),
			properties{"nextCursor": nextCursor()}),
		run: runner(a.runListPosts),
	}
}

func (a postTools) runListPosts(ctx context.Context, c *call, in listPostsInput) (answer, error) {
	at, err := c.readCursor(in.Cursor)
	if err != nil {
		return answer{}, err
	}
	q := publishing.ListPosts{Start: in.Start, End: in.End, Customer: in.Customer}
	if at.At != nil && at.At.After(q.Start) {
		q.Start = *at.At
	}
	switch {
	case in.End.Before(in.Start):
		return answer{}, &failure{
			Code: argument.CodeInvalid, Field: "endDate", Message: "endDate must not be before startDate.",
		}
	case in.End.Sub(in.Start) > publishing.MaxRange:
		return answer{}, &failure{
			Code: argument.CodeInvalid, Field: "endDate", Message: "endDate must be at most 366 days after startDate.",
		}
	}
	found, err := a.deps.Posts.List(ctx, c.p, q)
	if fault.Is(err, fault.Invalid) { // the range has too many posts
		return answer{}, withField(err, "endDate")
	}
	if err != nil {
		return answer{}, err
	}
	if len(found.Threads) == 0 && in.Customer != "" && in.Cursor == "" {
		if err := checkGroup(ctx, a.deps.Channels, c.p, in.Customer, "customer"); err != nil {
			return answer{}, err
		}
	}
	all := make([]listedPost, 0, len(found.Threads))
	for _, t := range found.Threads {
		one := listedPostOf(t)
		if at.At != nil && cmp.Or(one.date.Compare(*at.At), strings.Compare(one.ID, at.ID)) <= 0 {
			continue
		}
		all = append(all, one)
	}
	n, err := fitting(all, 0)
	if err != nil {
		return answer{}, err
	}
	out := answer{Output: map[string]any{"posts": all[:n]}}
	if n < len(all) {
		last := all[n-1]
		out.NextCursor = position{Tool: c.tool.name, ID: last.ID, At: &last.date}.cursor()
	}
	return out, nil
}
