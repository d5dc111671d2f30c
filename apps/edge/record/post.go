package record

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"crier/publishing"
)

// Value is one part of a post: a thread part or, with a Delay, a follow-up part.
type Value struct {
	ID      string  `json:"id" doc:"Id of the part. The id of the first part is also the post id."`
	Content string  `json:"content" doc:"Text of the part."`
	Type    string  `json:"contentType" enum:"text,html" doc:"Format of content. text is plain text as it was sent and must be escaped before it is used in HTML. html is sanitized HTML."`
	Image   []Image `json:"image" doc:"Files of the part."`
	Delay   int     `json:"delay" doc:"Minutes after the previous part."`
}

type channelName struct {
	ID   string `json:"id" doc:"Id of the group."`
	Name string `json:"name" doc:"Name of the group."`
}

// Entry is a post on its channel with its parts.
type Entry struct {
	Integration channelName `json:"integration" doc:"The channel."`
	ID          string      `json:"id" doc:"Id of the post."`
	Value       []Value     `json:"value" doc:"The parts: the post, then its thread or comments."`
}

type tag struct {
	Tag tagName `json:"tag" doc:"A tag of the organization."`
}

type tagName struct {
	ID    string `json:"id" doc:"Id of the tag."`
	Name  string `json:"name" doc:"Name of the tag."`
	Color string `json:"color" doc:"Color, such as #1F6FEB."`
}

// Settings is the JSON object with a post's settings. Its numbers are kept as they were sent.
type Settings json.RawMessage

// MarshalJSON returns the object, or {} if there is none. The error is always nil; encoding/json
// checks the syntax of the result.
func (s Settings) MarshalJSON() ([]byte, error) {
	if len(s) == 0 {
		return []byte("{}"), nil
	}
	return s, nil
}

// UnmarshalJSON keeps the bytes of the value. The error is always nil, because the schema rejects a
// value that is not an object.
func (s *Settings) UnmarshalJSON(b []byte) error {
	*s = append((*s)[:0], b...)
	return nil
}

// Schema returns the schema of an object with any members.
func (Settings) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// Core holds the members that Item and Detail have in common. It is exported because huma omits the
// members of unexported embedded structs from the document.
type Core struct {
	ID             string   `json:"id" doc:"Id of the post, and of its first part."`
	Status         string   `json:"status" enum:"draft,scheduled,published,failed" doc:"Same as state, but with the older names of the states."`
	Date           string   `json:"date" format:"date-time" doc:"When the post is due or was published."`
	State          string   `json:"state" enum:"DRAFT,QUEUE,PUBLISHED,ERROR" doc:"State of the post. QUEUE: waiting or being published. PUBLISHED: completely published."`
	PublishDate    string   `json:"publishDate" format:"date-time" doc:"Same as date."`
	Content        string   `json:"content" doc:"Content of the first part, in the format given by the part's contentType."`
	Group          string   `json:"group" doc:"Id of the post's group. Posts that belong together have the same group. An edit can identify the post by its group."`
	ReleaseURL     *string  `json:"releaseURL" nullable:"true" doc:"URL of the post on the platform; null until the post is published."`
	ReleaseID      *string  `json:"releaseId" nullable:"true" doc:"Id of the post on the platform; null until the post is published."`
	IntervalInDays *int     `json:"intervalInDays" nullable:"true" doc:"Days between occurrences of a repeated post; null if the post is not repeated."`
	CreationMethod string   `json:"creationMethod" doc:"How the post was created, such as API or CLI."`
	Settings       Settings `json:"settings" doc:"Settings for the platform. GET /integration-settings/{id} returns their schema."`
	Tags           []tag    `json:"tags" doc:"Tags of the post, sorted by name."`
	ActualDate     string   `json:"actualDate,omitempty" format:"date-time" doc:"Date of the next occurrence of a repeated post. Only the next occurrence is stored; this field is set on later occurrences."`
}

type shortChannel struct {
	ID                 string `json:"id" doc:"Channel id."`
	ProviderIdentifier string `json:"providerIdentifier" doc:"Platform id."`
	Name               string `json:"name" doc:"Name of the channel."`
	Picture            string `json:"picture" doc:"URL of the picture; empty if there is none."`
}

// Item is a post in a list. An Item contains its error members itself, whereas a Detail contains
// them in its Posts.
type Item struct {
	Core
	Posts       []Entry      `json:"posts" doc:"The post with its parts. The list always has one element."`
	Integration shortChannel `json:"integration" doc:"The channel."`
	Error       *string      `json:"error,omitempty" doc:"Why the post failed."`
	ErrorCode   *ErrorCode   `json:"errorCode,omitempty"` // never null; see TransformSchema
}

// TransformSchema implements huma.SchemaTransformer. An item omits errorCode where other records
// have null.
func (Item) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	code := s.Properties["errorCode"]
	code.Nullable = false
	code.Enum = slices.DeleteFunc(code.Enum, func(v any) bool { return v == nil })
	return s
}

// FullEntry is an Entry with the outcome of the post. State and Error come from Thread.Effective;
// ReleaseID and ReleaseURL come from the thread's first post.
type FullEntry struct {
	Entry
	State          string     `json:"state" enum:"DRAFT,QUEUE,PUBLISHED,ERROR" doc:"State of the post."`
	ReleaseID      *string    `json:"releaseId" nullable:"true" doc:"Id of the first part on the platform; null until it is published."`
	ReleaseURL     *string    `json:"releaseURL" nullable:"true" doc:"URL of the first part on the platform; null until it is published."`
	Error          *string    `json:"error" nullable:"true" doc:"Why the post failed, in one sentence; null if the post has not failed."`
	ErrorCode      *ErrorCode `json:"errorCode"`
	OutcomeUnknown bool       `json:"outcomeUnknown" doc:"true if the post may be on the platform, but this could not be confirmed."`
	CreatedAt      string     `json:"createdAt" format:"date-time" doc:"When the post was created."`
	UpdatedAt      string     `json:"updatedAt" format:"date-time" doc:"When the post was last changed, including by publishing."`
}

// Happening is one event in a post's timeline. Event is a publishing.EventKind. Node is the
// process's name as timelines show it, and By is who caused the event.
type Happening struct {
	At     string  `json:"at" format:"date-time" doc:"When the event happened."`
	Event  string  `json:"event"`
	Node   *string `json:"node,omitempty" doc:"The process that caused the event; absent if unknown."`
	By     *Actor  `json:"by,omitempty"` // never null; see TransformSchema
	Reason *string `json:"reason,omitempty" doc:"The reason, in one sentence; absent if there is nothing to add."`
}

// TransformSchema implements huma.SchemaTransformer. It adds the event kinds and a description of
// event.
func (Happening) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	event := s.Properties["event"]
	event.Description = "Kind of event. sent: one part is on the platform. confirmed: the whole post is on the " +
		"platform. unknown: the platform did not say whether it published the post. looked: the platform was queried " +
		"but could not say whether it published the post."
	for _, kind := range publishing.EventKinds() {
		event.Enum = append(event.Enum, string(kind))
	}
	return s
}

type approval struct {
	Status string `json:"status" enum:"NONE,PENDING,APPROVED,REJECTED,EXPIRED" doc:"Status of the latest approval request. NONE if there is no request or the request was withdrawn."`
}

// Detail is one post with its channel, media and timeline. Posts and Channels have one element
// each.
type Detail struct {
	Core
	Posts       []FullEntry `json:"posts" doc:"The post with its parts and outcome. The list always has one element."`
	Integration Channel     `json:"integration" doc:"The channel."`
	Channels    []Channel   `json:"channels" doc:"The channel. The list always has one element."`
	Media       []Image     `json:"media" doc:"Files of all parts."`
	Timeline    []Happening `json:"timeline" doc:"What happened to the post, oldest first."`
	// Comments is always 0: the service stores no comments.
	Comments int      `json:"comments" doc:"Always 0, because comments are not stored."`
	Approval approval `json:"approval" doc:"The latest approval request."`
}

// formatContent returns content in the requested format, and the content type of the result.
// Without a format, it returns the content as it was sent.
func formatContent(c publishing.Content, format string) (string, string) {
	switch publishing.ContentType(format) {
	case publishing.ContentHTML:
		return c.Markup(), string(publishing.ContentHTML)
	case publishing.ContentText:
		return c.Plain(), string(publishing.ContentText)
	default:
		return c.Text, string(c.Type())
	}
}

func (b Base) values(t publishing.Thread, format string) []Value {
	out := make([]Value, 0, len(t.Root.Parts))
	for _, p := range t.Root.Parts {
		v := Value{ID: p.ID.String(), Image: []Image{}, Delay: int(p.Delay / time.Minute)}
		v.Content, v.Type = formatContent(p.Content, format)
		for _, at := range p.Media {
			v.Image = append(v.Image, b.image(at, t.Media))
		}
		out = append(out, v)
	}
	return out
}

func (b Base) entry(t publishing.Thread, format string) Entry {
	return Entry{
		ID: t.Root.ID.String(), Integration: channelName{ID: t.Channel.ID.String(), Name: t.Channel.Name},
		Value: b.values(t, format),
	}
}

func coreOf(t publishing.Thread, format string) Core {
	out := Core{
		ID: t.Root.ID.String(), Status: statusName(t.Effective().State), State: StateName(t.Effective().State),
		Date: FormatTime(t.Root.PublishDate), PublishDate: FormatTime(t.Root.PublishDate), Group: t.Root.Group.String(),
		ReleaseURL: t.Root.ReleaseURL, ReleaseID: t.Root.ReleaseID, CreationMethod: string(t.Root.CreationMethod),
		Settings: Settings(t.Root.Settings), Tags: []tag{},
	}
	for _, x := range t.Tags {
		out.Tags = append(out.Tags, tag{Tag: tagName{ID: x.ID.String(), Name: x.Name, Color: x.Color}})
	}
	if len(t.Root.Parts) > 0 {
		out.Content, _ = formatContent(t.Root.Parts[0].Content, format)
	}
	if t.Root.Interval > 0 {
		out.IntervalInDays = &t.Root.Interval
	}
	if t.Root.Projected != nil {
		out.ActualDate = FormatTime(t.Root.Projected.Next)
	}
	return out
}

// Item returns the record of a post in a list. See Detail for format.
func (b Base) Item(t publishing.Thread, format string) Item {
	shown := t.Effective()
	return Item{
		Core: coreOf(t, format), Posts: []Entry{b.entry(t, format)}, Error: shown.Error,
		ErrorCode: (*ErrorCode)(shown.ErrorCode),
		Integration: shortChannel{
			ID: t.Channel.ID.String(), ProviderIdentifier: t.Channel.Connector,
			Name: t.Channel.Name, Picture: t.Channel.Picture,
		},
	}
}

// Detail returns the record of a post with its timeline. format is html or text, or empty for
// content as it was sent.
func (b Base) Detail(d publishing.PostDetail, format string) Detail {
	channel := ChannelRecord(d.Channel)
	out := Detail{
		Core: coreOf(d.Thread, format), Integration: channel, Channels: []Channel{channel},
		Media: []Image{}, Timeline: []Happening{},
		Approval: approval{Status: string(cmp.Or(d.Approval, publishing.ApprovalNone))},
	}
	r, shown := d.Root, d.Effective()
	out.Posts = []FullEntry{{
		Entry: b.entry(d.Thread, format), State: StateName(shown.State), ReleaseID: r.ReleaseID,
		ReleaseURL: r.ReleaseURL,
		Error:      shown.Error, ErrorCode: (*ErrorCode)(shown.ErrorCode),
		OutcomeUnknown: r.OutcomeUnknown || shown.OutcomeUnknown,
		CreatedAt:      FormatTime(r.CreatedAt), UpdatedAt: FormatTime(r.UpdatedAt),
	}}
	for _, part := range r.Parts {
		for _, at := range part.Media {
			out.Media = append(out.Media, b.image(at, d.Media))
		}
	}
	for _, e := range d.Events {
		out.Timeline = append(out.Timeline, Happening{
			At: FormatTime(e.At), Event: string(e.Kind), Node: e.Node, By: actorOf(e.Actor()), Reason: e.Reason,
		})
	}
	return out
}

// StateName returns the state that clients see: QUEUE for a post that is waiting, is being sent, or
// has an unknown outcome.
func StateName(s publishing.State) string {
	switch s {
	case publishing.StateWaiting, publishing.StatePublishing, publishing.StateUnknown:
		return string(publishing.StateQueue)
	default:
		return string(s)
	}
}

// statusName returns the state in the API's older terms: draft, scheduled, published or failed.
func statusName(s publishing.State) string {
	switch s {
	case publishing.StateDraft:
		return "draft"
	case publishing.StatePublished:
		return "published"
	case publishing.StateError:
		return "failed"
	default:
		return "scheduled"
	}
}
