package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"unicode/utf8"

	"crier/apps/edge/mcp/argument"
	"crier/apps/edge/record"
	"crier/publishing"
)

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

func (a postTools) getPost() *tool {
	file := object("A file.", properties{
		"id": str("File id."), "url": str("URL. Empty if the file was deleted."),
		"type": str("image or video."), "alt": str("Description."),
	}, "id", "url", "type")
	return &tool{
		name: toolGetPost, title: "Get a post", idempotent: true,
		description: "Get a post with its outcome, link, texts, attachments, settings, approval and timeline. While state is " +
			"QUEUE and the date has passed, call this again after a minute.",
		input: arguments(properties{
			"id":     postID(),
			"cursor": str("nextCursor of the previous result, for the rest of a long thread.").AsWord(),
		}, "id"),
		output: answers(object("The post.", withMoment(properties{
			"id": str("Post id."), "state": str(stateDoc),
			"outcome": oneOf("What happened to the post.",
				"draft", "waiting", "publishing", "published", "failed", "unknown"),
			"releaseURL": str("Link to the published post."), "releaseId": str("The post's id on the platform."),
			"error": str("Error message from the service or the platform."), "errorCode": str("Code of the error."),
			"outcomeUnknown": flag("true: it may have been published. Check the platform before you post it again."),
			"integration": object("The channel.", properties{
				"id": str("Channel id."), "name": str("Name."), "platform": str("Platform."),
				"disabled":      flag("Publishes nothing."),
				"refreshNeeded": flag("true: a person must reconnect the account."),
			}, "id", "name", "platform"),
			"postsAndComments": list("The parts.", object("A part.", properties{
				"id": str("Part id."), "content": str("Text."),
				"contentCut":  flag("true: the text or the list of attachments was cut."),
				"contentType": str("text or html."), "delay": number("Minutes after the previous part."),
				"attachments": list("Files.", file),
			}, "id", "content", "attachments")),
			"settings":       {Type: argument.TypeObject, Description: "Settings, unless they are long."},
			"tags":           list("Tags.", str("A tag.")),
			"group":          str("Id of posts that belong together."),
			"intervalInDays": number("Days between occurrences, if repeated."),
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

func (a postTools) runGetPost(ctx context.Context, c *call, in getPostInput) (answer, error) {
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

// mostOfPost is the maximum size, in bytes, of a post without its parts, and of a single part.
const mostOfPost = (maxAnswer - maxBeside) / 2

// shrink drops the oldest events and, if necessary, the settings of a post that is larger than
// mostOfPost, so that its parts fit into the answer. cut reports whether anything was dropped.
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

// shrink shortens the text and drops attachments if the part is larger than mostOfPost.
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
		ID: r.ID.String(), State: record.StateName(shown.State), Outcome: outcomeOf(d),
		moment:     momentIn(r.PublishDate, d.Channel.Timezone),
		ReleaseURL: textOf(r.ReleaseURL), ReleaseID: textOf(r.ReleaseID), Error: textOf(shown.Error),
		ErrorCode:      textOf(shown.ErrorCode),
		OutcomeUnknown: r.OutcomeUnknown || shown.OutcomeUnknown, Tags: []string{}, Group: r.Group.String(),
		Integration: shownChannel{
			ID: d.Channel.ID.String(), Name: d.Channel.Name, Platform: d.Channel.Connector,
			Disabled:      d.Channel.Disabled,
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

// outcomeOf returns a post's outcome as one word.
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

// partOf converts a part of a post. It truncates the text to shownContent characters.
func (a postTools) partOf(p publishing.Part, media map[publishing.MediaID]publishing.Medium) shownPart {
	out := shownPart{
		ID: p.ID.String(), ContentType: string(p.Content.Type()), Delay: int(p.Delay.Minutes()),
		Attachments: []shownFile{},
	}
	out.Content, out.ContentCut = excerpt(p.Content.Text, shownContent)
	for _, m := range p.Media {
		file := record.ImageRecord(a.deps.BaseURL, m, media)
		alt, _ := excerpt(file.Alt, shownReason)
		out.Attachments = append(out.Attachments, shownFile{ID: file.ID, URL: file.URL, Type: file.Type, Alt: alt})
	}
	return out
}
