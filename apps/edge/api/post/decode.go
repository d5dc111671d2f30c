package post

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/tidwall/gjson"

	"crier/apps/edge/record"
	"crier/apps/edge/route"
	"crier/platform/fault"
	"crier/publishing"
)

// CreateRequest documents the body of POST /posts. decodeCreate accepts more forms than this schema.
type CreateRequest struct {
	Type      string      `json:"type" enum:"now,schedule,draft,update"`
	Date      string      `json:"date" example:"2026-01-02T15:04:05Z"`
	ShortLink bool        `json:"shortLink,omitempty" doc:"Has no effect yet. Absent: false."`
	Tags      []CreateTag `json:"tags,omitempty" doc:"By the label of existing tags; others are left out. An edit without tags keeps them."`
	Order     string      `json:"order,omitempty" doc:"Not used."`
	// Inter is the interval of a repeated post, in days.
	Inter      int    `json:"inter,omitempty" minimum:"0" maximum:"365"`
	InterUntil string `json:"interUntil,omitempty" doc:"ISO 8601: the last possible date. Requires inter."`
	// InterCount is the number of occurrences.
	InterCount     int           `json:"interCount,omitempty" minimum:"1" maximum:"10000"`
	Republish      bool          `json:"republish,omitempty" doc:"Must be true for a post that is or may be published."`
	Override       bool          `json:"override,omitempty" doc:"Keeps an approved post in the queue with other content than was approved. For administrators and their keys; recorded in the audit log."`
	CreationMethod string        `json:"creationMethod,omitempty" doc:"API or CLI; other values count as API."`
	Posts          []CreateEntry `json:"posts" minItems:"1" doc:"One entry per channel."`
}

// TransformSchema is called by huma. It adds the descriptions that are too long for a struct tag.
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
	Value string `json:"value" doc:"The same as label, which wins."`
	Label string `json:"label" doc:"Name of a tag of the organization."`
}

// CreateEntry is the post on one channel. A string with the JSON of Settings is accepted too.
type CreateEntry struct {
	Integration record.Named   `json:"integration" doc:"The channel."`
	Value       []CreateValue  `json:"value" minItems:"1"`
	Group       string         `json:"group,omitempty" doc:"Existing group to replace; none if empty."`
	Settings    map[string]any `json:"settings,omitempty" doc:"Settings of the platform: GET /integration-settings/{id} has their schema."`
}

// TransformSchema is called by huma. It adds the descriptions that are too long for a struct tag.
func (CreateEntry) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Properties["value"].Description = "The first is the post, the others are thread parts or comments."
	return s
}

// CreateValue is one part of a post: a thread part, or with a Delay a follow-up part.
type CreateValue struct {
	ID      string        `json:"id,omitempty" doc:"Existing part to change; none if empty."`
	Content string        `json:"content,omitempty"`
	Type    string        `json:"contentType,omitempty" enum:"text,html"`
	Image   []CreateImage `json:"image,omitempty" doc:"Uploaded files."`
	Delay   int           `json:"delay,omitempty" minimum:"0" doc:"Minutes after the previous part. That of the first part is passed over."`
}

// TransformSchema is called by huma. It adds the descriptions that are too long for a struct tag.
func (CreateValue) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Properties["content"].Description = "Plain text, or HTML of p, h1 to h3, u, strong, a, ul, li and br; other " +
		"markup is removed. At most 100,000 characters, and 1,000,000 bytes of all texts."
	s.Properties["contentType"].Description = "Format of content. Without it content is html if it begins with such " +
		"a tag or one of its tags is closed, else text."
	return s
}

// CreateImage names an uploaded file. Only its schema is used; decodeImage decodes both forms.
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

const opCreate = "post.create"

// decodeCreate decodes a body of POST /posts. Its error is Invalid and has both the values of a wrong type and the
// broken rules of publishing. Without a wrong type it does not check the rules: the use case does. A list is read to
// one element beyond its limit, which breaks a rule.
func decodeCreate(body []byte) (publishing.CreatePosts, error) {
	n, err := parse(body, opCreate)
	if err != nil {
		return publishing.CreatePosts{}, err
	}
	cmd := decodePosts(n.object(createMembers...))
	if err := withRules(n.faults, cmd); err != nil {
		return cmd, err
	}
	cmd.RequestHash, err = hashRequest("POST", "/posts", cmd)
	return cmd, err
}

// createMembers are the members of a body of POST /posts that are read.
var createMembers = []string{
	"type", "date", "shortLink", "republish", "override", "inter", "interCount", "interUntil", "creationMethod", "tags", "posts",
}

// decodePosts decodes the members of a body of POST /posts. A date that does not parse is the zero time.
func decodePosts(o object) publishing.CreatePosts {
	cmd := publishing.CreatePosts{
		Type: publishing.CreateType(o.get("type").name()), Republish: o.get("republish").flag(),
		Override: o.get("override").flag(),
		Repeat:   decodeRepeat(o), Method: decodeMethod(o.get("creationMethod")),
	}
	o.get("shortLink").flag() // no links are shortened yet: only its type is checked
	cmd.Date = decodeDate(o.get("date"))
	cmd.Tags = decodeTags(o.get("tags"))
	cmd.Entries = decodeEntries(o.get("posts"))
	return cmd
}

// withRules returns the faults of types together with the broken rules of cmd, and nil if there are no faults of types.
func withRules(faults *fault.List, cmd publishing.CreatePosts) error {
	const message = "The post is not valid."
	if faults.Err(opCreate, message) == nil {
		return nil
	}
	var rules *fault.Error
	if errors.As(record.WithJSONNames(cmd.Validate()), &rules) {
		faults.Merge(rules)
	}
	return faults.Err(opCreate, message)
}

// decodeDate returns the date in n, or the zero time for null. A value that is not a date is a fault and also returns
// the zero time.
func decodeDate(n node) time.Time {
	switch n.value.Type {
	case gjson.Null:
		return time.Time{}
	case gjson.String:
		at, rule := record.DateOrRule(n.value.String())
		if rule != "" {
			n.addFault(rule)
		}
		return at
	case gjson.Number:
		n.addFault(record.NotANumber)
	default:
		n.addFault(record.NotADate)
	}
	return time.Time{}
}

func decodeRepeat(o object) publishing.Repeat {
	r := publishing.Repeat{Days: o.get("inter").number(), Count: o.get("interCount").number()}
	until := o.get("interUntil")
	if s := until.text(); s != "" {
		at := decodeDate(until)
		r.Until = &at
	}
	return r
}

func decodeMethod(n node) publishing.CreationMethod {
	if n.value.Type != gjson.String {
		return publishing.MethodFromClient("")
	}
	return publishing.MethodFromClient(n.value.String())
}

// decodeTags returns the labels of the tags, and nil if there is no such member. A tag without a label is named by its
// value.
func decodeTags(n node) []string {
	if n.null() {
		return nil
	}
	labels := []string{}
	for _, t := range n.list(publishing.MaxPostTags) {
		if t.value.Type == gjson.String {
			labels = append(labels, t.name())
			continue
		}
		o := t.object("value", "label")
		label, value := o.get("label").name(), o.get("value").name()
		labels = append(labels, cmp.Or(label, value))
	}
	return labels
}

// counts are the numbers of parts and images that were read of a body. Reading ends at one more than a request may
// have.
type counts struct{ parts, images int }

// decodeEntries decodes the entries of a body.
func decodeEntries(n node) (out []publishing.CreateEntry) {
	var read counts
	for _, e := range n.list(publishing.MaxEntries) {
		out = append(out, read.decodeEntry(e))
	}
	return out
}

func (c *counts) decodeEntry(n node) publishing.CreateEntry {
	if n.null() {
		n.addFault("must be an object")
	}
	o := n.object("integration", "group", "settings", "value")
	out := publishing.CreateEntry{
		Channel: o.get("integration").object("id").get("id").reference(), Group: o.get("group").reference(),
		Settings: decodeSettings(o.get("settings")),
	}
	for _, v := range o.get("value").list(min(publishing.MaxParts, publishing.MaxAllParts-c.parts)) {
		c.parts++
		out.Parts = append(out.Parts, c.decodeValue(v))
	}
	return out
}

// decodeSettings accepts an object, or a string with its JSON.
func decodeSettings(n node) json.RawMessage {
	switch {
	case n.null():
		return nil
	case n.value.Type != gjson.String:
		if !n.value.IsObject() {
			n.addFault("must be an object")
			return nil
		}
		return n.raw(publishing.MaxSettings)
	case n.value.String() == "":
		return nil
	}
	if route.HasHalfCharacter(n.value.Raw) {
		n.addFault(route.HalfCharacter)
		return nil
	}
	inner, err := parse([]byte(n.value.String()), opCreate)
	if err != nil {
		n.addFault("must be an object")
		return nil
	}
	return inner.raw(publishing.MaxSettings)
}

func (c *counts) decodeValue(n node) publishing.CreatePart {
	if n.null() {
		n.addFault("must be an object")
	}
	o := n.object("id", "content", "contentType", "delay", "image")
	out := publishing.CreatePart{
		ID: o.get("id").reference(), Content: o.get("content").text(),
		Type: publishing.ContentType(o.get("contentType").name()), Delay: o.get("delay").number(),
	}
	for _, m := range o.get("image").list(min(publishing.MaxAttachments, publishing.MaxAllImages-c.images)) {
		c.images++
		out.Media = append(out.Media, decodeImage(m))
	}
	return out
}

// decodeImage accepts an object with id, path or url, or a string with an id or an address.
func decodeImage(n node) publishing.CreateMedium {
	switch {
	case n.value.Type == gjson.String:
		s := n.reference()
		if s == "" {
			n.addFault("must name an uploaded file")
		}
		if strings.Contains(s, "/") {
			return publishing.CreateMedium{URL: s}
		}
		return publishing.CreateMedium{ID: s}
	case !n.value.IsObject():
		n.addFault("must be an object or a string")
		return publishing.CreateMedium{}
	}
	o := n.object("id", "path", "url", "alt")
	out := publishing.CreateMedium{ID: o.get("id").reference(), URL: o.get("path").reference(), Alt: o.get("alt").text()}
	if url := o.get("url").reference(); out.URL == "" {
		out.URL = url
	}
	if out.ID == "" && out.URL == "" {
		n.addFault("must have an id, a path or a url")
	}
	return out
}

// hashRequest returns a hash of the meaning of a request, by which a repeated request is recognized. The order of
// members, white space, unused members and the prefix of the mount make no difference.
func hashRequest(method, path string, meaning ...any) ([]byte, error) {
	h := sha256.New()
	h.Write([]byte(method + "\n" + path + "\n"))
	if err := json.NewEncoder(h).Encode(meaning); err != nil {
		return nil, fault.Wrap(fault.Internal, opCreate, "", err)
	}
	return h.Sum(nil), nil
}

func checkKey(key string) error {
	for i := range len(key) {
		if key[i] < '!' || key[i] > '~' {
			return badKey()
		}
	}
	if len(key) > publishing.MaxIdempotencyKey {
		return badKey()
	}
	return nil
}

func badKey() error {
	return &fault.Error{Kind: fault.Invalid, Op: opCreate, Message: "The idempotency key is not valid.",
		Fields: []fault.Field{{Name: "Idempotency-Key", Message: "must be 1 to 255 visible ASCII characters"}}}
}
