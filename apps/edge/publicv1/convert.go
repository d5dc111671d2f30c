package publicv1

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"crier/platform/fault"
	"crier/publishing"
)

const opCreate = "publicv1.create"

// decodeCreate reads a body of POST /posts. Rules are publishing's: only what has the wrong type is found here, told together with the rules.
// A list past its limit is read no further, and then breaks a rule.
func decodeCreate(body []byte) (publishing.CreatePosts, error) {
	n, err := parse(body, opCreate)
	if err != nil {
		return publishing.CreatePosts{}, err
	}
	o := n.object("type", "date", "republish", "inter", "interCount", "interUntil", "creationMethod", "tags", "posts")
	cmd := publishing.CreatePosts{
		Type: publishing.CreateType(o.get("type").name()), Republish: o.get("republish").flag(),
		Repeat: repeat(o), Method: method(o.get("creationMethod")),
	}
	if s := o.get("date").value; s.Type == gjson.String {
		cmd.Date, _ = ParseDate(s.String())
	}
	tags := tags(o.get("tags"))
	var read counts
	for _, e := range o.get("posts").list(publishing.MaxEntries) {
		cmd.Entries = append(cmd.Entries, read.entry(e))
	}
	if err := together(n.faults, cmd); err != nil {
		return cmd, err
	}
	cmd.RequestHash, err = hash("POST", "/posts", cmd, tags)
	return cmd, err
}

// together adds publishing's own faults when types were wrong; without those, publishing tells its faults itself.
func together(faults *fault.List, cmd publishing.CreatePosts) error {
	const words = "The post is not valid."
	if faults.Err(opCreate, words) == nil {
		return nil
	}
	var rules *fault.Error
	if errors.As(cmd.Validate(), &rules) {
		faults.Merge(rules)
	}
	return faults.Err(opCreate, words)
}

func repeat(o object) publishing.Repeat {
	r := publishing.Repeat{Days: o.get("inter").number(), Count: o.get("interCount").number()}
	until := o.get("interUntil")
	if s := until.text(); s != "" {
		at, ok := ParseDate(s)
		if !ok {
			until.fault("must be an ISO 8601 date, for example 2026-01-02T15:04:05Z")
		}
		r.Until = &at
	}
	return r
}

func method(n node) publishing.CreationMethod {
	if n.value.Type != gjson.String {
		return publishing.MethodFromClient("")
	}
	return publishing.MethodFromClient(n.value.String())
}

const maxTags = 100

// tags are the words of the tags. Unknown labels are skipped, and there are no tags to know yet.
func tags(n node) (words []string) {
	list := n.list(maxTags)
	if len(list) > maxTags {
		n.fault("must hold at most " + strconv.Itoa(maxTags) + " tags")
		return nil
	}
	for _, t := range list {
		if t.value.Type == gjson.String {
			words = append(words, t.value.String())
			continue
		}
		o := t.object("value", "label")
		words = append(words, o.get("value").text(), o.get("label").text())
	}
	return words
}

// counts are how many parts and images of a body were read. One more than a create may have is read, and no other.
type counts struct{ parts, images int }

func (c *counts) entry(n node) publishing.CreateEntry {
	if n.null() {
		n.fault("must be an object")
	}
	o := n.object("integration", "group", "settings", "value")
	out := publishing.CreateEntry{
		Integration: o.get("integration").object("id").get("id").name(), Group: o.get("group").name(), Settings: settings(o.get("settings")),
	}
	for _, v := range o.get("value").list(min(publishing.MaxParts, publishing.MaxAllParts-c.parts)) {
		c.parts++
		out.Value = append(out.Value, c.value(v))
	}
	return out
}

// settings takes an object, or the same as a string of JSON.
func settings(n node) json.RawMessage {
	switch {
	case n.null():
		return nil
	case n.value.Type != gjson.String:
		if !n.value.IsObject() {
			n.fault("must be an object")
			return nil
		}
		return n.raw(publishing.MaxSettings)
	case n.value.String() == "":
		return nil
	}
	inner, err := parse([]byte(n.value.String()), opCreate)
	if err != nil {
		n.fault("must be an object")
		return nil
	}
	return inner.raw(publishing.MaxSettings)
}

func (c *counts) value(n node) publishing.CreateValue {
	if n.null() {
		n.fault("must be an object")
	}
	o := n.object("id", "content", "contentType", "delay", "image")
	out := publishing.CreateValue{
		ID: o.get("id").name(), Content: o.get("content").text(), Type: publishing.ContentType(o.get("contentType").name()), Delay: o.get("delay").number(),
	}
	for _, m := range o.get("image").list(min(publishing.MaxAttachments, publishing.MaxAllImages-c.images)) {
		c.images++
		out.Image = append(out.Image, image(m))
	}
	return out
}

// image takes an object with id, path or url, or one string that is an id or an address.
func image(n node) publishing.CreateImage {
	switch {
	case n.value.Type == gjson.String:
		s := n.name()
		if s == "" {
			n.fault("must name an uploaded file")
		}
		if strings.Contains(s, "/") {
			return publishing.CreateImage{URL: s}
		}
		return publishing.CreateImage{ID: s}
	case !n.value.IsObject():
		n.fault("must be an object or a string")
		return publishing.CreateImage{}
	}
	o := n.object("id", "path", "url", "alt")
	out := publishing.CreateImage{ID: o.get("id").name(), URL: o.get("path").name(), Alt: o.get("alt").text()}
	if url := o.get("url").name(); out.URL == "" {
		out.URL = url
	}
	if out.ID == "" && out.URL == "" {
		n.fault("must have an id, a path or a url")
	}
	return out
}

// hash tells a repeat from another request by what both mean: the order of members, white space, members that nobody
// reads and the mount's prefix make no difference.
func hash(method, path string, meaning ...any) ([]byte, error) {
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
