package publicv1

import "github.com/danielgtaylor/huma/v2"

// CreateRequest documents the body of POST /posts. The decoder in convert.go accepts more forms than this schema.
type CreateRequest struct {
	Type      string      `json:"type" enum:"now,schedule,draft,update"`
	Date      string      `json:"date" example:"2026-01-02T15:04:05Z"`
	ShortLink bool        `json:"shortLink,omitempty" default:"false" doc:"Has no effect yet."`
	Tags      []CreateTag `json:"tags,omitempty" doc:"Not stored yet: answers have no tags."`
	Order     string      `json:"order,omitempty" doc:"Not used."`
	// Inter is the interval of a repeated post, in days.
	Inter      int    `json:"inter,omitempty" minimum:"0" maximum:"365"`
	InterUntil string `json:"interUntil,omitempty" doc:"ISO 8601: the last possible date. Requires inter."`
	// InterCount is the number of occurrences.
	InterCount     int           `json:"interCount,omitempty" minimum:"1" maximum:"10000"`
	Republish      bool          `json:"republish,omitempty" doc:"Must be true for a post that is or may be published."`
	CreationMethod string        `json:"creationMethod,omitempty" doc:"API or CLI; other values count as API."`
	Posts          []CreateEntry `json:"posts" minItems:"1" doc:"One entry per channel."`
}

// TransformSchema adds the descriptions that do not fit into a line.
func (CreateRequest) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Properties["type"].Description = "now publishes at once, schedule publishes at date, draft only saves, " +
		"update changes the content of an existing post."
	s.Properties["date"].Description = "ISO 8601; UTC without an offset. Required for drafts too."
	s.Properties["inter"].Description = "Repeat every so many days, at the same time of day in the channel's time " +
		"zone. On an existing post it changes this and all later occurrences; without it an edit changes one " +
		"occurrence only."
	s.Properties["interCount"].Description = "Number of occurrences, the first and skipped ones included. " +
		"Requires inter."
	return s
}

// CreateTag is a tag of a post. A string is accepted too.
type CreateTag struct {
	Value string `json:"value"`
	Label string `json:"label"`
}

// CreateEntry is the post on one channel.
type CreateEntry struct {
	Integration Named          `json:"integration" doc:"The channel."`
	Value       []CreateValue  `json:"value" minItems:"1"`
	Group       string         `json:"group,omitempty" doc:"Existing group to replace; none if empty."`
	Settings    map[string]any `json:"settings,omitempty" doc:"Settings of the platform."`
}

// TransformSchema adds the descriptions that do not fit into a line.
func (CreateEntry) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Properties["value"].Description = "The first is the post, the others are thread parts or comments."
	return s
}

// CreateValue is one part of a post.
type CreateValue struct {
	ID      string        `json:"id,omitempty" doc:"Existing part to change; none if empty."`
	Content string        `json:"content,omitempty"`
	Type    string        `json:"contentType,omitempty" enum:"text,html"`
	Image   []CreateImage `json:"image,omitempty"`
	Delay   int           `json:"delay,omitempty" minimum:"0" doc:"Minutes after the previous part, not for the first."`
}

// TransformSchema adds the descriptions that do not fit into a line.
func (CreateValue) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Properties["content"].Description = "Plain text, or HTML of p, h1 to h3, u, strong, a, ul, li and br; other " +
		"markup is removed. At most 100,000 characters, and 1,000,000 bytes of all texts."
	s.Properties["contentType"].Description = "Format of content. Without it content is html if it begins with such " +
		"a tag or one of its tags is closed, else text."
	return s
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
