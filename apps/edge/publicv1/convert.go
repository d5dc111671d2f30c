package publicv1

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strings"

	"crier/platform/fault"
	"crier/publishing"
)

const opCreate = "publicv1.create"

// decodeCreate reads a body of POST /posts. Rules are publishing's: only what has the wrong type is found here, told together with the rules.
func decodeCreate(body []byte) (publishing.CreatePosts, error) {
	n, err := parse(body, opCreate)
	if err != nil {
		return publishing.CreatePosts{}, err
	}
	cmd := publishing.CreatePosts{
		Type: publishing.CreateType(n.get("type").text()), Republish: n.get("republish").flag(),
		Repeat: repeat(n), Method: method(n.get("creationMethod")),
	}
	if s, ok := n.get("date").value.(string); ok {
		cmd.Date, _ = ParseDate(s)
	}
	tags(n.get("tags"))
	for _, e := range n.get("posts").list() {
		cmd.Entries = append(cmd.Entries, entry(e))
	}
	cmd.RequestHash = hash("POST", "/posts", n.raw())
	return cmd, together(*n.all, cmd)
}

// together adds publishing's own faults when types were wrong; without those, publishing tells its faults itself.
func together(fields []fault.Field, cmd publishing.CreatePosts) error {
	if len(fields) == 0 {
		return nil
	}
	known := map[string]bool{}
	for _, f := range fields {
		known[f.Name] = true
	}
	var rules *fault.Error
	if errors.As(cmd.Validate(), &rules) {
		for _, f := range rules.Fields {
			if !known[f.Name] {
				fields = append(fields, f)
			}
		}
	}
	return &fault.Error{Kind: fault.Invalid, Op: opCreate, Message: "The post is not valid.", Fields: fields}
}

func repeat(n node) publishing.Repeat {
	r := publishing.Repeat{Days: n.get("inter").number(), Count: n.get("interCount").number()}
	until := n.get("interUntil")
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
	s, _ := n.value.(string)
	return publishing.MethodFromClient(s)
}

// tags checks the shape only: unknown labels are skipped, and there are no tags to know yet.
func tags(n node) {
	for _, t := range n.list() {
		if _, ok := t.value.(string); !ok && t.object() {
			t.get("value").text()
			t.get("label").text()
		}
	}
}

func entry(n node) publishing.CreateEntry {
	if n.value == nil {
		n.fault("must be an object")
	}
	n.object()
	channel := n.get("integration")
	channel.object()
	out := publishing.CreateEntry{Integration: channel.get("id").text(), Group: n.get("group").text(), Settings: settings(n.get("settings"))}
	for _, v := range n.get("value").list() {
		out.Value = append(out.Value, value(v))
	}
	return out
}

// settings takes an object, or the same as a string of JSON.
func settings(n node) json.RawMessage {
	if s, ok := n.value.(string); ok {
		if s == "" {
			return nil
		}
		inner, err := parse([]byte(s), opCreate)
		if err != nil {
			n.fault("must be an object")
			return nil
		}
		return inner.raw()
	}
	if !n.object() {
		return nil
	}
	return n.raw()
}

func value(n node) publishing.CreateValue {
	if n.value == nil {
		n.fault("must be an object")
	}
	n.object()
	out := publishing.CreateValue{ID: n.get("id").text(), Content: n.get("content").text(), Delay: n.get("delay").number()}
	for _, m := range n.get("image").list() {
		out.Image = append(out.Image, image(m))
	}
	return out
}

// image takes an object with id, path or url, or one string that is an id or an address.
func image(n node) publishing.CreateImage {
	if _, ok := n.value.(string); ok {
		s := n.text()
		if s == "" {
			n.fault("must name an uploaded file")
		}
		if strings.Contains(s, "/") {
			return publishing.CreateImage{URL: s}
		}
		return publishing.CreateImage{ID: s}
	}
	if n.value == nil || !n.object() {
		if n.value == nil {
			n.fault("must be an object or a string")
		}
		return publishing.CreateImage{}
	}
	out := publishing.CreateImage{ID: n.get("id").text(), URL: n.get("path").text(), Alt: n.get("alt").text()}
	if url := n.get("url").text(); out.URL == "" {
		out.URL = url
	}
	if out.ID == "" && out.URL == "" {
		n.fault("must have an id, a path or a url")
	}
	return out
}

// hash tells a repeat from another request: canonical is JSON with its members in order, path is without the mount's prefix.
func hash(method, path string, canonical []byte) []byte {
	h := sha256.New()
	h.Write([]byte(method + "\n" + path + "\n"))
	h.Write(canonical)
	return h.Sum(nil)
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
