package post

import (
	"cmp"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"crier/apps/edge/record"
	"crier/publishing"
)

// CreateRequest documents the body of POST /posts. decodeCreate also accepts forms that the schema
// does not describe.
type CreateRequest struct{}

// TransformSchema implements huma.SchemaTransformer.
func (CreateRequest) TransformSchema(r huma.Registry, _ *huma.Schema) *huma.Schema {
	return createMembers.schema(r)
}

// createMembers defines the members of the POST /posts body.
var createMembers = membersOf(
	member[publishing.CreatePosts]{
		name: "type", required: true, schema: oneOf("now", "schedule", "draft", "update"),
		doc: "now publishes the post immediately, schedule publishes it at date, draft only saves it, and update " +
			"changes the content of an existing post.",
		decode: func(n node, cmd *publishing.CreatePosts) { cmd.Type = publishing.CreateType(n.name()) },
	},
	member[publishing.CreatePosts]{
		name: "republish", schema: flag, doc: "Must be true if the post has been published or may have been published.",
		decode: func(n node, cmd *publishing.CreatePosts) { cmd.Republish = n.flag() },
	},
	member[publishing.CreatePosts]{
		name: "override", schema: flag,
		doc: "Keeps an approved post in the queue even if its content differs from what was approved. Only " +
			"administrators and keys that administrators created can use this field. Its use is recorded in the " +
			"audit log.",
		decode: func(n node, cmd *publishing.CreatePosts) { cmd.Override = n.flag() },
	},
	member[publishing.CreatePosts]{
		name: "inter", schema: whole(0, publishing.MaxInterval),
		doc: "Number of days between occurrences. All occurrences have the same time of day in the channel's time " +
			"zone. An edit with inter changes this occurrence and all later ones; an edit without inter changes only " +
			"one occurrence.",
		decode: func(n node, cmd *publishing.CreatePosts) { cmd.Repeat.Days = n.number() },
	},
	member[publishing.CreatePosts]{
		name: "interCount", schema: whole(1, publishing.MaxOccurrences),
		doc:    "Number of occurrences, including the first one and any that are skipped. Requires inter.",
		decode: func(n node, cmd *publishing.CreatePosts) { cmd.Repeat.Count = n.number() },
	},
	member[publishing.CreatePosts]{
		name: "interUntil", schema: text, doc: "Latest possible date of an occurrence, in ISO 8601. Requires inter.",
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
		name: "shortLink", schema: flag, doc: "Has no effect yet. The default is false.",
		decode: func(n node, _ *publishing.CreatePosts) { n.flag() }, // only its type is checked
	},
	member[publishing.CreatePosts]{
		name: "date", required: true, schema: date, doc: "ISO 8601; UTC if it has no offset. Required for drafts too.",
		decode: func(n node, cmd *publishing.CreatePosts) { cmd.Date = decodeDate(n) },
	},
	member[publishing.CreatePosts]{
		name: "tags", schema: listOf[CreateTag](0),
		doc:    "Labels of existing tags; unknown labels are ignored. An edit without tags keeps the post's tags.",
		decode: func(n node, cmd *publishing.CreatePosts) { cmd.Tags = decodeTags(n) },
	},
	member[publishing.CreatePosts]{
		name: "posts", required: true, schema: listOf[CreateEntry](1), doc: "One entry per channel.",
		decode: func(n node, cmd *publishing.CreatePosts) { cmd.Entries = decodeEntries(n) },
	},
	member[publishing.CreatePosts]{name: "order", schema: text, doc: "Not used."},
)

// CreateTag is the documented form of a post's tag. A plain string is also accepted.
type CreateTag struct{}

// TransformSchema implements huma.SchemaTransformer. It reverses the order of the required members,
// because the document lists value before label, whereas faults list label before value.
func (CreateTag) TransformSchema(r huma.Registry, _ *huma.Schema) *huma.Schema {
	s := tagMembers.schema(r)
	slices.Reverse(s.Required)
	return s
}

type tagNames struct{ label, value string }

var tagMembers = membersOf(
	member[tagNames]{
		name: "label", required: true, schema: text, doc: "Name of one of the organization's tags.",
		decode: func(n node, t *tagNames) { t.label = n.name() },
	},
	member[tagNames]{
		name: "value", required: true, schema: text, doc: "Same as label. If both are sent, label takes precedence.",
		decode: func(n node, t *tagNames) { t.value = n.name() },
	},
)

// CreateEntry is the documented form of a post on one channel. Its settings may also be sent as a
// string that contains a JSON object.
type CreateEntry struct{}

// TransformSchema implements huma.SchemaTransformer.
func (CreateEntry) TransformSchema(r huma.Registry, _ *huma.Schema) *huma.Schema {
	return entryMembers.schema(r)
}

// entry is an entry being decoded. read holds the number of parts and images read so far from the
// whole body.
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
		name: "group", schema: text, doc: "Id of an existing group to replace. Leave it empty if the entry does not " +
			"replace a group.",
		decode: func(n node, e *entry) { e.Group = n.reference() },
	},
	member[entry]{
		name: "settings", schema: anyMembers,
		doc:    "Settings for the platform. GET /integration-settings/{id} returns their schema.",
		decode: func(n node, e *entry) { e.Settings = decodeSettings(n) },
	},
	member[entry]{
		name: "value", required: true, schema: listOf[CreateValue](1),
		doc:    "The first element is the post; the others are thread parts or comments.",
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

// part is a part being decoded. read holds the number of parts and images read so far from the
// whole body.
type part struct {
	publishing.CreatePart
	read *counts
}

var partMembers = membersOf(
	member[part]{
		name: "id", schema: text, doc: "Id of the existing part to change. Leave it empty for a new part.",
		decode: func(n node, p *part) { p.ID = n.reference() },
	},
	member[part]{
		name: "content", schema: text,
		doc: "Plain text, or HTML with p, h1 to h3, u, strong, a, ul, li and br; other markup is removed. At most " +
			"100,000 characters, and 1,000,000 bytes for all texts together.",
		decode: func(n node, p *part) { p.Content = n.text() },
	},
	member[part]{
		name: "contentType", schema: oneOf("text", "html"),
		doc: "Format of content. If absent, the format is detected. It is html if content begins with a tag that " +
			"editors produce, such as p or div, or contains such a tag together with its end tag. Otherwise, it is " +
			"text.",
		decode: func(n node, p *part) { p.Type = publishing.ContentType(n.name()) },
	},
	member[part]{
		name: "delay", schema: whole(0, 0),
		doc:    "Minutes after the previous part. Ignored for the first part.",
		decode: func(n node, p *part) { p.Delay = n.number() },
	},
	member[part]{
		name: "image", schema: listOf[CreateImage](0), doc: "Uploaded files.",
		decode: func(n node, p *part) { p.Media = p.read.decodeImages(n) },
	},
)

// CreateImage is the documented form of an uploaded file: either an object, or a string with the
// file's id or URL.
type CreateImage struct{}

// Schema returns a schema that allows both forms.
func (CreateImage) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{
		{Type: huma.TypeString, Description: "Id or URL of an uploaded file."}, imageMembers.schema(r),
	}}
}

var imageMembers = membersOf(
	member[publishing.CreateMedium]{
		name: "id", schema: text, doc: "Id of the file.",
		decode: func(n node, m *publishing.CreateMedium) { m.ID = n.reference() },
	},
	member[publishing.CreateMedium]{
		name: "path", schema: text, doc: "URL of the file; takes precedence over id.",
		decode: func(n node, m *publishing.CreateMedium) { m.URL = n.reference() },
	},
	member[publishing.CreateMedium]{
		name: "alt", schema: text, doc: "Alternative text for people who cannot see the file.",
		decode: func(n node, m *publishing.CreateMedium) { m.Alt = n.text() },
	},
	member[publishing.CreateMedium]{
		name: "url", schema: text, doc: "Same as path.",
		decode: func(n node, m *publishing.CreateMedium) { m.URL = cmp.Or(m.URL, n.reference()) },
	},
)
