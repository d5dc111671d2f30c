package post

import (
	"cmp"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"crier/apps/edge/record"
	"crier/publishing"
)

// CreateRequest is the documented body of POST /posts. decodeCreate accepts more forms than the
// schema describes.
type CreateRequest struct{}

// TransformSchema implements huma.SchemaTransformer.
func (CreateRequest) TransformSchema(r huma.Registry, _ *huma.Schema) *huma.Schema {
	return createMembers.schema(r)
}

// createMembers are the members of the body of POST /posts.
var createMembers = membersOf(
	member[publishing.CreatePosts]{
		name: "type", required: true, schema: oneOf("now", "schedule", "draft", "update"),
		doc: "now publishes at once, schedule publishes at date, draft only saves, update changes the content of an " +
			"existing post.",
		decode: func(n node, cmd *publishing.CreatePosts) { cmd.Type = publishing.CreateType(n.name()) },
	},
	member[publishing.CreatePosts]{
		name: "republish", schema: flag, doc: "Must be true for a post that is or may be published.",
		decode: func(n node, cmd *publishing.CreatePosts) { cmd.Republish = n.flag() },
	},
	member[publishing.CreatePosts]{
		name: "override", schema: flag,
		doc: "Keeps an approved post in the queue with other content than was approved. For administrators and their " +
			"keys; recorded in the audit log.",
		decode: func(n node, cmd *publishing.CreatePosts) { cmd.Override = n.flag() },
	},
	member[publishing.CreatePosts]{
		name: "inter", schema: whole(0, publishing.MaxInterval),
		doc: "Repeat every so many days, at the same time of day in the channel's time zone. On an existing post it " +
			"changes this and all later occurrences; without it an edit changes one occurrence only.",
		decode: func(n node, cmd *publishing.CreatePosts) { cmd.Repeat.Days = n.number() },
	},
	member[publishing.CreatePosts]{
		name: "interCount", schema: whole(1, publishing.MaxOccurrences),
		doc:    "Number of occurrences, the first and skipped ones included. Requires inter.",
		decode: func(n node, cmd *publishing.CreatePosts) { cmd.Repeat.Count = n.number() },
	},
	member[publishing.CreatePosts]{
		name: "interUntil", schema: text, doc: "ISO 8601: the last possible date. Requires inter.",
		decode: func(n node, cmd *publishing.CreatePosts) {
			if n.text() != "" {
				at := decodeDate(n)
				cmd.Repeat.Until = &at
			}
		},
	},
	member[publishing.CreatePosts]{
		name: "creationMethod", schema: text, doc: "API or CLI; other values count as API.",
		decode: func(n node, cmd *publishing.CreatePosts) { cmd.Method = decodeMethod(n) },
	},
	member[publishing.CreatePosts]{
		name: "shortLink", schema: flag, doc: "Has no effect yet. Absent: false.",
		decode: func(n node, _ *publishing.CreatePosts) { n.flag() }, // only its type is checked
	},
	member[publishing.CreatePosts]{
		name: "date", required: true, schema: date, doc: "ISO 8601; UTC without an offset. Required for drafts too.",
		decode: func(n node, cmd *publishing.CreatePosts) { cmd.Date = decodeDate(n) },
	},
	member[publishing.CreatePosts]{
		name: "tags", schema: listOf[CreateTag](0),
		doc:    "By the label of existing tags; others are left out. An edit without tags keeps them.",
		decode: func(n node, cmd *publishing.CreatePosts) { cmd.Tags = decodeTags(n) },
	},
	member[publishing.CreatePosts]{
		name: "posts", required: true, schema: listOf[CreateEntry](1), doc: "One entry per channel.",
		decode: func(n node, cmd *publishing.CreatePosts) { cmd.Entries = decodeEntries(n) },
	},
	member[publishing.CreatePosts]{name: "order", schema: text, doc: "Not used."},
)

// CreateTag is the documented form of a post's tag. A plain string is accepted too.
type CreateTag struct{}

// TransformSchema implements huma.SchemaTransformer. It reverses the required members, because the
// document lists value first and faults list label first.
func (CreateTag) TransformSchema(r huma.Registry, _ *huma.Schema) *huma.Schema {
	s := tagMembers.schema(r)
	slices.Reverse(s.Required)
	return s
}

type tagNames struct{ label, value string }

var tagMembers = membersOf(
	member[tagNames]{
		name: "label", required: true, schema: text, doc: "Name of a tag of the organization.",
		decode: func(n node, t *tagNames) { t.label = n.name() },
	},
	member[tagNames]{
		name: "value", required: true, schema: text, doc: "The same as label, which wins.",
		decode: func(n node, t *tagNames) { t.value = n.name() },
	},
)

// CreateEntry is the documented form of a post on one channel. Its settings may also be a string
// that contains their JSON.
type CreateEntry struct{}

// TransformSchema implements huma.SchemaTransformer.
func (CreateEntry) TransformSchema(r huma.Registry, _ *huma.Schema) *huma.Schema {
	return entryMembers.schema(r)
}

// entry is an entry being decoded. read counts the parts and images of the whole body.
type entry struct {
	publishing.CreateEntry
	read *counts
}

var entryMembers = membersOf(
	member[entry]{
		name: "integration", required: true, schema: of[record.Named], doc: "The channel.",
		decode: func(n node, e *entry) { e.Channel = n.object("id").get("id").reference() },
	},
	member[entry]{
		name: "group", schema: text, doc: "Existing group to replace; none if empty.",
		decode: func(n node, e *entry) { e.Group = n.reference() },
	},
	member[entry]{
		name: "settings", schema: anyMembers,
		doc:    "Settings of the platform: GET /integration-settings/{id} has their schema.",
		decode: func(n node, e *entry) { e.Settings = decodeSettings(n) },
	},
	member[entry]{
		name: "value", required: true, schema: listOf[CreateValue](1),
		doc:    "The first is the post, the others are thread parts or comments.",
		decode: func(n node, e *entry) { e.Parts = e.read.decodeParts(n) },
	},
)

// CreateValue is the documented form of one part of a post: a thread part or, with a delay, a
// follow-up part.
type CreateValue struct{}

// TransformSchema implements huma.SchemaTransformer.
func (CreateValue) TransformSchema(r huma.Registry, _ *huma.Schema) *huma.Schema {
	return partMembers.schema(r)
}

// part is a part being decoded. read counts the parts and images of the whole body.
type part struct {
	publishing.CreatePart
	read *counts
}

var partMembers = membersOf(
	member[part]{
		name: "id", schema: text, doc: "Existing part to change; none if empty.",
		decode: func(n node, p *part) { p.ID = n.reference() },
	},
	member[part]{
		name: "content", schema: text,
		doc: "Plain text, or HTML of p, h1 to h3, u, strong, a, ul, li and br; other markup is removed. At most " +
			"100,000 characters, and 1,000,000 bytes of all texts.",
		decode: func(n node, p *part) { p.Content = n.text() },
	},
	member[part]{
		name: "contentType", schema: oneOf("text", "html"),
		doc: "Format of content. Without it content is html if it begins with such a tag or one of its tags is " +
			"closed, else text.",
		decode: func(n node, p *part) { p.Type = publishing.ContentType(n.name()) },
	},
	member[part]{
		name: "delay", schema: whole(0, 0),
		doc:    "Minutes after the previous part. That of the first part is passed over.",
		decode: func(n node, p *part) { p.Delay = n.number() },
	},
	member[part]{
		name: "image", schema: listOf[CreateImage](0), doc: "Uploaded files.",
		decode: func(n node, p *part) { p.Media = p.read.decodeImages(n) },
	},
)

// CreateImage is the documented form of an uploaded file: an object, or a string with its id or
// URL.
type CreateImage struct{}

// Schema returns the schema of both forms.
func (CreateImage) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{
		{Type: huma.TypeString, Description: "Id or address of an uploaded file."}, imageMembers.schema(r),
	}}
}

var imageMembers = membersOf(
	member[publishing.CreateMedium]{
		name: "id", schema: text, doc: "Id of the file.",
		decode: func(n node, m *publishing.CreateMedium) { m.ID = n.reference() },
	},
	member[publishing.CreateMedium]{
		name: "path", schema: text, doc: "Address of the file; wins over id.",
		decode: func(n node, m *publishing.CreateMedium) { m.URL = n.reference() },
	},
	member[publishing.CreateMedium]{
		name: "alt", schema: text, doc: "Description for people who do not see it.",
		decode: func(n node, m *publishing.CreateMedium) { m.Alt = n.text() },
	},
	member[publishing.CreateMedium]{
		name: "url", schema: text, doc: "The same as path.",
		decode: func(n node, m *publishing.CreateMedium) { m.URL = cmp.Or(m.URL, n.reference()) },
	},
)
