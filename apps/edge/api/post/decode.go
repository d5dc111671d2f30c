package post

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"crier/apps/edge/record"
	"crier/apps/edge/route"
	"crier/platform/fault"
	"crier/publishing"
)

const opCreate = "post.create"

// decodeCreate decodes a POST /posts body. It returns Invalid if the body is not a JSON object, or
// if any value has the wrong type. In the latter case, the error lists these values and the
// publishing rules that the request breaks. If all types are correct, decodeCreate leaves the rules
// to the use case.
//
// If a list is too long, decodeCreate reads one element more than the limit, so that the rule on
// its length can still report the problem.
func decodeCreate(body []byte) (publishing.CreatePosts, error) {
	n, err := parse(body, opCreate)
	if err != nil {
		return publishing.CreatePosts{}, err
	}
	var cmd publishing.CreatePosts
	createMembers.decode(n, &cmd)
	if err := withRules(n.faults, cmd); err != nil {
		return cmd, err
	}
	cmd.RequestHash, err = hashRequest("POST", "/posts", cmd)
	return cmd, err
}

// withRules returns an error that lists the type faults and the rules that cmd breaks. If there are
// no type faults, it returns nil.
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

// decodeDate returns the date in n, or the zero time if n is null. If n is not a date, decodeDate
// adds a fault and returns the zero time.
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

func decodeMethod(n node) publishing.CreationMethod {
	if n.value.Type != gjson.String {
		return publishing.MethodFromClient("")
	}
	return publishing.MethodFromClient(n.value.String())
}

// decodeTags returns the labels of the tags, or nil if the member is absent or null. If a tag has
// no label, its value is used instead.
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
		var names tagNames
		tagMembers.decode(t, &names)
		labels = append(labels, cmp.Or(names.label, names.value))
	}
	return labels
}

// counts holds the number of parts and the number of images read from a body so far. Decoding stops
// as soon as either number exceeds its limit.
type counts struct{ parts, images int }

// decodeEntries decodes the entries of a POST /posts body.
func decodeEntries(n node) (out []publishing.CreateEntry) {
	var read counts
	for _, e := range n.list(publishing.MaxEntries) {
		if e.null() {
			e.addFault("must be an object")
		}
		next := entry{read: &read}
		entryMembers.decode(e, &next)
		out = append(out, next.CreateEntry)
	}
	return out
}

func (c *counts) decodeParts(n node) (out []publishing.CreatePart) {
	for _, v := range n.list(min(publishing.MaxParts, publishing.MaxAllParts-c.parts)) {
		c.parts++
		if v.null() {
			v.addFault("must be an object")
		}
		next := part{read: c}
		partMembers.decode(v, &next)
		out = append(out, next.CreatePart)
	}
	return out
}

func (c *counts) decodeImages(n node) (out []publishing.CreateMedium) {
	for _, m := range n.list(min(publishing.MaxAttachments, publishing.MaxAllImages-c.images)) {
		c.images++
		out = append(out, decodeImage(m))
	}
	return out
}

// decodeSettings accepts a JSON object, or a string that contains one.
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

// decodeImage accepts an object with id, path or url, or a string with an id or a URL.
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
	var out publishing.CreateMedium
	imageMembers.decode(n, &out)
	if out.ID == "" && out.URL == "" {
		n.addFault("must have an id, a path or a url")
	}
	return out
}

// hashRequest returns a hash of a request's meaning, which identifies repeated requests. The hash
// does not depend on the order of members, white space, unused members or the mount prefix.
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
