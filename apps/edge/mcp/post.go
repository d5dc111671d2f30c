package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"crier/apps/edge/record"
	"crier/platform/fault"
	"crier/publishing"
)

// Limits for texts in answers, in characters or bytes.
const (
	listedContent  = 1_000 // characters of a post in a list
	shownContent   = 4_000 // characters of a part
	listedSettings = 500   // bytes of a post's settings in a list
	shownSettings  = 4_000 // bytes
	shownReason    = 500   // characters
	shownEvents    = 20
)

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
		ID: t.Root.ID.String(), moment: momentIn(t.Root.PublishDate, t.Channel.Timezone), State: record.StateName(t.Effective().State),
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

func (a *API) listPosts() *tool {
	item := object("A post.", withMoment(properties{
		"id": str("Post id."), "state": str(stateDoc), "content": str("Text of the first part."),
		"contentCut": flag("true: the text is longer; see " + toolGetPost + "."),
		"settings":   {Type: typeObject, Description: "Settings, unless they are long."}, "group": str("Id of posts that belong together."),
		"integrationId": str("Channel id."), "platform": str("Platform."), "integrationName": str("Name of the channel."),
		"attachments": number("Number of files."), "releaseURL": str("Link to the published post."),
	}), "id", "state", "publishDate", "integrationId")
	return &tool{
		name: toolListPosts, olderName: "postsListTool", title: "List posts", idempotent: true,
		description: "List the posts and drafts dated from startDate to endDate, earliest first, with every occurrence of " +
			"repeated posts.",
		input: arguments(properties{
			"startDate": date("First date, with an offset."), "endDate": date("Last date, at most 366 days later."),
			"customer": str("Only this group's channels. Ids: " + toolListGroups + ".").from(toolListGroups), "cursor": cursor(),
		}, "startDate", "endDate"),
		output: answers(object("A page of posts.", properties{"posts": list("Posts.", item)}, "posts"),
			properties{"nextCursor": nextCursor()}),
		run: runner(a.runListPosts),
	}
}

func (a *API) runListPosts(ctx context.Context, c *call, in listPostsInput) (answer, error) {
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
		return answer{}, &failure{Code: codeInvalidArgument, Field: "endDate", Message: "endDate must not be before startDate."}
	case in.End.Sub(in.Start) > publishing.MaxRange:
		return answer{}, &failure{
			Code: codeInvalidArgument, Field: "endDate", Message: "endDate must be at most 366 days after startDate.",
		}
	}
	found, err := a.deps.Posts.List(ctx, c.p, q)
	if err != nil {
		return answer{}, err
	}
	if len(found.Threads) == 0 && in.Customer != "" && in.Cursor == "" {
		if err := a.checkGroup(ctx, c.p, in.Customer, "customer"); err != nil {
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

// shownPost is a post with its outcome.
type shownPost struct {
	ID      string `json:"id"`
	State   string `json:"state"`
	Outcome string `json:"outcome"`
	moment
	ReleaseURL     string            `json:"releaseURL,omitempty"`
	ReleaseID      string            `json:"releaseId,omitempty"`
	Error          string            `json:"error,omitempty"`
	ErrorCode      string            `json:"errorCode,omitempty"`
	OutcomeUnknown bool              `json:"outcomeUnknown"`
	Integration    shownChannel      `json:"integration"`
	Parts          []shownPart       `json:"postsAndComments"`
	Settings       json.RawMessage   `json:"settings,omitempty"`
	Tags           []string          `json:"tags"`
	Group          string            `json:"group"`
	IntervalInDays int               `json:"intervalInDays,omitempty"`
	CreationMethod string            `json:"creationMethod"`
	Approval       map[string]string `json:"approval"`
	Timeline       []shownEvent      `json:"timeline"`
}

// shownChannel is the channel of a shownPost.
type shownChannel struct {
	ID            string `json:"id"`
	Name          string `json:"name"`
	Platform      string `json:"platform"`
	Disabled      bool   `json:"disabled"`
	RefreshNeeded bool   `json:"refreshNeeded"`
}

// shownPart is a part of a shownPost.
type shownPart struct {
	ID          string      `json:"id"`
	Content     string      `json:"content"`
	ContentCut  bool        `json:"contentCut,omitempty"`
	ContentType string      `json:"contentType"`
	Delay       int         `json:"delay,omitempty"`
	Attachments []shownFile `json:"attachments"`
}

// shownFile is a file of a shownPart.
type shownFile struct {
	ID   string `json:"id"`
	URL  string `json:"url"`
	Type string `json:"type"`
	Alt  string `json:"alt,omitempty"`
}

// shownEvent is an event in the timeline of a shownPost.
type shownEvent struct {
	At     string `json:"at"`
	Event  string `json:"event"`
	Reason string `json:"reason,omitempty"`
}

type getPostInput struct {
	ID     string `json:"id"`
	Cursor string `json:"cursor"`
}

func (a *API) getPost() *tool {
	file := object("A file.", properties{
		"id": str("File id."), "url": str("URL. Empty if the file was deleted."),
		"type": str("image or video."), "alt": str("Description."),
	}, "id", "url", "type")
	return &tool{
		name: toolGetPost, title: "Get a post", idempotent: true,
		description: "Get a post with its outcome, link, texts, attachments, settings, approval and timeline. While state is " +
			"QUEUE and the date has passed, ask again after a minute.",
		input: arguments(properties{"id": postID(), "cursor": str("nextCursor of the last answer, for the parts of a long thread.")}, "id"),
		output: answers(object("The post.", withMoment(properties{
			"id": str("Post id."), "state": str(stateDoc),
			"outcome":    oneOf("What became of the post.", "draft", "waiting", "publishing", "published", "failed", "unknown"),
			"releaseURL": str("Link to the published post."), "releaseId": str("Id at the platform."),
			"error": str("Why it failed, in the words of the service or the platform."), "errorCode": str("Code of the error."),
			"outcomeUnknown": flag("true: it may be on the platform. Look there before you post it again."),
			"integration": object("The channel.", properties{
				"id": str("Channel id."), "name": str("Name."), "platform": str("Platform."), "disabled": flag("Publishes nothing."),
				"refreshNeeded": flag("Must be reconnected."),
			}, "id", "name", "platform"),
			"postsAndComments": list("The parts.", object("A part.", properties{
				"id": str("Part id."), "content": str("Text."), "contentCut": flag("true: the text or the list of attachments is longer."),
				"contentType": str("text or html."), "delay": number("Minutes after the previous part."),
				"attachments": list("Files.", file),
			}, "id", "content", "attachments")),
			"settings": {Type: typeObject, Description: "Settings, unless they are long."}, "tags": list("Tags.", str("A tag.")),
			"group": str("Id of posts that belong together."), "intervalInDays": number("Days between occurrences, if repeated."),
			"creationMethod": str("How it was created."),
			"approval": object("Latest request for approval.", properties{
				"status": str("NONE, PENDING, APPROVED, REJECTED or EXPIRED."),
			}, "status"),
			"timeline": list("The newest events, oldest first.", object("An event.", properties{
				"at": date("UTC."), "event": str("What happened."), "reason": str("Why."),
			}, "at", "event")),
		}), "id", "state", "outcome", "publishDate", "integration", "postsAndComments", "approval"), properties{
			"nextCursor": nextCursor(), "truncated": flag("true: something was cut."),
		}),
		run: runner(a.runGetPost),
	}
}

func (a *API) runGetPost(ctx context.Context, c *call, in getPostInput) (answer, error) {
	at, err := c.readCursor(in.Cursor)
	if err != nil {
		return answer{}, err
	}
	d, err := a.deps.Posts.Get(ctx, c.p, in.ID)
	if err != nil {
		return answer{}, noObject(err, "id", toolListPosts)
	}
	out, cut, err := shownPostOf(d).shrink()
	if err != nil {
		return answer{}, err
	}
	rest, err := encode(out)
	if err != nil {
		return answer{}, err
	}
	left := d.Root.Parts[min(at.Skip, len(d.Root.Parts)):]
	shown := make([]shownPart, 0, len(left))
	for _, p := range left {
		one, err := a.partOf(p, d.Media).shrink()
		if err != nil {
			return answer{}, err
		}
		shown = append(shown, one)
	}
	n, err := fitting(shown, costOf(rest))
	if err != nil {
		return answer{}, err
	}
	out.Parts = shown[:n]
	result := answer{Output: out, Truncated: cut}
	for _, p := range out.Parts {
		result.Truncated = result.Truncated || p.ContentCut
	}
	if n < len(left) {
		result.NextCursor = position{Tool: c.tool.name, Skip: at.Skip + n}.cursor()
	}
	return result, nil
}

// mostOfPost is the share of an answer for a post without its parts, and also for one part.
const mostOfPost = (maxAnswer - maxBeside) / 2

// shrink returns the post without its oldest events, and if need be without its settings, so that
// there is room for its parts. cut is set if anything is left out.
func (p shownPost) shrink() (out shownPost, cut bool, err error) {
	for {
		data, err := encode(p)
		if err != nil || costOf(data) <= mostOfPost {
			return p, cut, err
		}
		switch {
		case len(p.Timeline) > 0:
			p.Timeline = p.Timeline[(len(p.Timeline)+1)/2:]
		case p.Settings != nil:
			p.Settings = nil
		default:
			return p, cut, nil
		}
		cut = true
	}
}

// shrink returns the part with less text and fewer attachments, if it is too large for an answer.
func (p shownPart) shrink() (shownPart, error) {
	for {
		data, err := encode(p)
		if err != nil || costOf(data) <= mostOfPost {
			return p, err
		}
		switch {
		case len(p.Attachments) > 0 && len(p.Content) <= listedContent:
			p.Attachments = p.Attachments[:len(p.Attachments)/2]
		case p.Content != "":
			p.Content, _ = excerpt(p.Content, utf8.RuneCountInString(p.Content)/2)
		default:
			return p, nil
		}
		p.ContentCut = true
	}
}

// shownPostOf returns a post without its parts.
func shownPostOf(d publishing.PostDetail) shownPost {
	r, shown := d.Root, d.Effective()
	out := shownPost{
		ID: r.ID.String(), State: record.StateName(shown.State), Outcome: outcomeOf(d), moment: momentIn(r.PublishDate, d.Channel.Timezone),
		ReleaseURL: textOf(r.ReleaseURL), ReleaseID: textOf(r.ReleaseID), Error: textOf(shown.Error), ErrorCode: textOf(shown.ErrorCode),
		OutcomeUnknown: r.OutcomeUnknown || shown.OutcomeUnknown, Tags: []string{}, Group: r.Group.String(),
		Integration: shownChannel{
			ID: d.Channel.ID.String(), Name: d.Channel.Name, Platform: d.Channel.Connector, Disabled: d.Channel.Disabled,
			RefreshNeeded: d.Channel.RefreshNeeded,
		},
		IntervalInDays: r.Interval, CreationMethod: string(r.CreationMethod), Timeline: []shownEvent{},
		Approval: map[string]string{"status": string(cmp.Or(d.Approval, publishing.ApprovalNone))},
	}
	if len(r.Settings) <= shownSettings {
		out.Settings = r.Settings
	}
	for _, t := range d.Tags {
		out.Tags = append(out.Tags, t.Name)
	}
	for _, e := range d.Events[max(0, len(d.Events)-shownEvents):] {
		reason, _ := excerpt(textOf(e.Reason), shownReason)
		out.Timeline = append(out.Timeline, shownEvent{At: record.FormatTime(e.At), Event: string(e.Kind), Reason: reason})
	}
	return out
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// outcomeOf returns what became of a post, in one word.
func outcomeOf(d publishing.PostDetail) string {
	shown := d.Effective()
	switch {
	case d.Root.OutcomeUnknown || shown.OutcomeUnknown || shown.State == publishing.StateUnknown:
		return "unknown"
	case shown.State == publishing.StateDraft:
		return "draft"
	case shown.State == publishing.StatePublishing:
		return "publishing"
	case shown.State == publishing.StatePublished:
		return "published"
	case shown.State == publishing.StateError:
		return "failed"
	}
	return "waiting"
}

// partOf returns a part of a post. A long text is cut.
func (a *API) partOf(p publishing.Part, media map[publishing.MediaID]publishing.Medium) shownPart {
	out := shownPart{
		ID: p.ID.String(), ContentType: string(p.Content.Type()), Delay: int(p.Delay.Minutes()), Attachments: []shownFile{},
	}
	out.Content, out.ContentCut = excerpt(p.Content.Text, shownContent)
	for _, m := range p.Media {
		file := record.ImageRecord(a.deps.BaseURL, m, media)
		alt, _ := excerpt(file.Alt, shownReason)
		out.Attachments = append(out.Attachments, shownFile{ID: file.ID, URL: file.URL, Type: file.Type, Alt: alt})
	}
	return out
}

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

func (a *API) updatePost() *tool {
	return &tool{
		name: "service_update_post_settings", olderName: "postSettingsTool", title: "Change a post", writes: true, idempotent: true,
		description: "Change the settings, the date or the texts of a post that is not published. What you leave out stays as " +
			"it is. postsAndComments replaces all parts. An approved post becomes a draft again when its texts or settings " +
			"change; the answer then has state DRAFT.",
		input: arguments(properties{
			"id": postID(), "settings": pairs("Settings to change. A null value removes a setting."),
			"date": date("New date, with an offset. In the future."), "postsAndComments": parts(),
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

func (a *API) runUpdatePost(ctx context.Context, c *call, in updateInput) (answer, error) {
	if in.Settings == nil && in.Date == nil && in.Parts == nil {
		return answer{}, &failure{
			Code: codeMissingArgument, Field: "settings", Message: "Send what to change: settings, date or postsAndComments.",
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
		PostID: changed.Post.String(), moment: momentIn(changed.PublishDate, zone), State: effect.State, Approval: effect.Approval,
	}}, nil
}

func (a *API) changeSettings(ctx context.Context, c *call, in updateInput) (publishing.SettingsChanged, error) {
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

// edit replaces a post by itself with the changes of a call. The post keeps its state.
func (a *API) edit(
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
		if entry.Parts, err = a.partsOf("", in.Parts); err != nil {
			return out, err
		}
	}
	cmd := publishing.CreatePosts{
		Type: publishing.CreateUpdate, Date: d.Root.PublishDate, Method: d.Root.CreationMethod, Entries: []publishing.CreateEntry{entry},
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

// updateFailure adds to an error of a change what helps to correct it.
func updateFailure(in updateInput, d publishing.PostDetail, err error) error {
	return withNext(err, map[fault.Kind]*nextCall{
		fault.Invalid:  {Tool: toolSchema, Arguments: map[string]any{"integrationId": d.Channel.ID.String()}},
		fault.Conflict: {Tool: toolGetPost, Arguments: map[string]any{"id": in.ID}},
	})
}

type statusInput struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

func (a *API) changeStatus() *tool {
	return &tool{
		name: "service_change_post_status", title: "Schedule a post or make it a draft", writes: true, idempotent: true,
		description: "draft takes a post out of the queue. schedule queues it for its date; a post whose date has passed is " +
			"published at once, so set a new date with service_update_post_settings first.",
		input: arguments(properties{
			"id": postID(), "status": oneOf("New status.", "draft", "schedule"),
		}, "id", "status"),
		output: answers(object("The post.", properties{
			"id": str("Post id."), "state": oneOf("State.", "DRAFT", "QUEUE"),
		}, "id", "state"), nil),
		fields: map[string]string{"to": "status"},
		run:    runner(a.runChangeStatus),
	}
}

func (a *API) runChangeStatus(ctx context.Context, c *call, in statusInput) (answer, error) {
	changed, err := a.deps.Posts.ChangeStatus(ctx, c.p, in.ID, publishing.ChangeStatus{To: publishing.CreateType(in.Status)})
	if err != nil {
		next := map[fault.Kind]*nextCall{
			fault.Conflict: {Tool: toolGetPost, Arguments: map[string]any{"id": in.ID}},
			fault.Invalid:  {Tool: toolGetPost, Arguments: map[string]any{"id": in.ID}},
		}
		if c.mustAsk() {
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

func (a *API) deletePost() *tool {
	return &tool{
		name: "service_delete_post", title: "Delete a post", writes: true, destroys: true, idempotent: true,
		description: "Delete a post or draft with all posts of its group. A published post stays on its platform. For a " +
			"repeated post, this skips one occurrence. To keep a post but not publish it, make it a draft instead.",
		input: arguments(properties{
			"id": postID(), "confirm": {Type: typeBoolean, Description: "Must be true.", Enum: []any{true}},
		}, "id", "confirm"),
		output: answers(object("The post.", properties{"id": str("Post id.")}, "id"), nil),
		run:    runner(a.runDeletePost),
	}
}

func (a *API) runDeletePost(ctx context.Context, c *call, in deleteInput) (answer, error) {
	if !in.Confirm {
		return answer{}, &failure{
			Code: codeInvalidArgument, Field: "confirm", Message: "confirm must be true.", Allowed: []any{true},
		}
	}
	if err := a.deps.Posts.Delete(ctx, c.p, in.ID); err != nil {
		return answer{}, noObject(err, "id", toolListPosts)
	}
	return answer{Output: map[string]any{"id": strings.ToLower(in.ID)}}, nil
}
