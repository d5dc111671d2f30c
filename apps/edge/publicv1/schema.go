package publicv1

import "github.com/danielgtaylor/huma/v2"

// CreateRequest documents the body of POST /posts. The decoder in convert.go accepts more forms than this schema.
type CreateRequest struct {
	Type           string        `json:"type" enum:"now,schedule,draft,update" doc:"now publishes at once, schedule books for date, draft saves only, update changes the content of an existing post."`
	Date           string        `json:"date" doc:"ISO 8601; without an offset it is UTC. Required for drafts too." example:"2026-01-02T15:04:05Z"`
	ShortLink      bool          `json:"shortLink,omitempty" default:"false" doc:"Accepted, and changes nothing yet: links stay as they are."`
	Tags           []CreateTag   `json:"tags,omitempty" doc:"Accepted, and not stored yet: answers have no tags."`
	Order          string        `json:"order,omitempty" doc:"Accepted, unused."`
	Inter          int           `json:"inter,omitempty" minimum:"0" maximum:"365" doc:"Repeat every so many days, at the same wall-clock time in the channel's time zone. On an existing post it changes this and all later occurrences; without it an edit changes one occurrence alone."`
	InterUntil     string        `json:"interUntil,omitempty" doc:"ISO 8601; no occurrence is later. Needs inter."`
	InterCount     int           `json:"interCount,omitempty" minimum:"1" maximum:"10000" doc:"How many occurrences there are in all, the first and skipped ones included. Needs inter."`
	Republish      bool          `json:"republish,omitempty" doc:"Must be true for a post that is, or may be, published."`
	CreationMethod string        `json:"creationMethod,omitempty" doc:"API or CLI; anything else counts as API."`
	Posts          []CreateEntry `json:"posts" minItems:"1" doc:"One entry per channel."`
}

// CreateTag is a tag of a post. A string is accepted too.
type CreateTag struct {
	Value string `json:"value"`
	Label string `json:"label"`
}

// CreateEntry is the post on one channel.
type CreateEntry struct {
	Integration Named          `json:"integration" doc:"The channel."`
	Value       []CreateValue  `json:"value" minItems:"1" doc:"The first is the post, the others are thread parts or comments."`
	Group       string         `json:"group,omitempty" doc:"Existing group to replace; empty is absent."`
	Settings    map[string]any `json:"settings,omitempty" doc:"Settings of the platform."`
}

// CreateValue is one part of a post.
type CreateValue struct {
	ID      string        `json:"id,omitempty" doc:"Existing part to change; empty is absent."`
	Content string        `json:"content,omitempty" doc:"Plain text, or HTML of p, h1 to h3, u, strong, a, ul, li and br; other markup is removed. At most 100,000 characters, and 1,000,000 bytes of all texts."`
	Type    string        `json:"contentType,omitempty" enum:"text,html" doc:"Which of the two content is. Absent: html when it begins with such a tag or one of its tags is closed, else text."`
	Image   []CreateImage `json:"image,omitempty"`
	Delay   int           `json:"delay,omitempty" minimum:"0" doc:"Minutes after the part before; not for the first part."`
}

// CreateImage names an uploaded file.
type CreateImage struct {
	ID, Path, URL, Alt string
}

// Schema returns the schema of both forms: an object, or a string with an id or an address.
func (CreateImage) Schema(huma.Registry) *huma.Schema {
	text := func(doc string) *huma.Schema { return &huma.Schema{Type: huma.TypeString, Description: doc} }
	return &huma.Schema{OneOf: []*huma.Schema{
		text("Id or address of an uploaded file."),
		{Type: huma.TypeObject, Properties: map[string]*huma.Schema{
			"id": text("Id of the file."), "path": text("Address of the file; wins over id."),
			"url": text("The same as path."), "alt": text("Description for people who do not see it."),
		}},
	}}
}
