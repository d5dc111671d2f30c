package contract

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// decode returns JSON as a T.
func decode[T any](t *testing.T, raw json.RawMessage) (out T) {
	t.Helper()
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatalf("got the JSON %s, want a %T: %v", raw, out, err)
	}
	return out
}

// raw returns the body of a response.
func (a answer) raw() json.RawMessage { return json.RawMessage(a.Body) }

// members returns the members of an object after comparing their names with the contract. Names of
// optional members end in "?".
func members(t *testing.T, object json.RawMessage, want ...string) map[string]json.RawMessage {
	t.Helper()
	got := decode[map[string]json.RawMessage](t, object)
	for name := range got {
		if !slices.Contains(want, name) && !slices.Contains(want, name+"?") {
			t.Errorf("the object has the member %q, want only %q: %s", name, want, object)
		}
	}
	for _, name := range want {
		if _, ok := got[name]; !ok && !strings.HasSuffix(name, "?") {
			t.Errorf("the object has no member %q, want %q: %s", name, want, object)
		}
	}
	return got
}

func elements(t *testing.T, array json.RawMessage) []json.RawMessage {
	t.Helper()
	return decode[[]json.RawMessage](t, array)
}

func channelShape(t *testing.T, channel json.RawMessage) {
	t.Helper()
	c := members(t, channel, "id", "name", "identifier", "providerIdentifier", "picture?", "profile", "disabled",
		"customer?", "refreshNeeded?")
	if got, want := string(c["providerIdentifier"]), string(c["identifier"]); got != want {
		t.Errorf("the channel has the providerIdentifier %s, want the identifier %s", got, want)
	}
}

var core = []string{
	"id", "status", "date", "posts", "state", "publishDate", "content", "group", "releaseURL", "releaseId",
	"intervalInDays", "creationMethod", "settings", "tags", "integration", "actualDate?",
}

// itemShape checks the shape of a record in a list.
func itemShape(t *testing.T, item json.RawMessage) {
	t.Helper()
	v := members(t, item, append(slices.Clone(core), "error?", "errorCode?")...)
	members(t, v["integration"], "id", "providerIdentifier", "name", "picture")
	entries := elements(t, v["posts"])
	if len(entries) != 1 {
		t.Fatalf("the record has %d entries, want 1: %s", len(entries), item)
	}
	entryShape(t, members(t, entries[0], "id", "integration", "value"))
	stateShape(t, item)
}

func entryShape(t *testing.T, entry map[string]json.RawMessage) {
	t.Helper()
	members(t, entry["integration"], "id", "name")
	for _, value := range elements(t, entry["value"]) {
		v := members(t, value, "id", "content", "contentType", "image", "delay")
		for _, image := range elements(t, v["image"]) {
			members(t, image, "id", "url", "path", "type?", "alt?", "thumbnail?")
		}
	}
}

func stateShape(t *testing.T, post json.RawMessage) {
	t.Helper()
	statuses := map[string]string{"DRAFT": "draft", "QUEUE": "scheduled", "PUBLISHED": "published", "ERROR": "failed"}
	v := decode[record](t, post)
	if want := statuses[v.State]; v.Status != want {
		t.Errorf("a post in the state %s has the status %q, want %q", v.State, v.Status, want)
	}
	if v.Date != v.PublishDate || len(v.Date) != len("2026-01-02T03:04:05.000Z") || !strings.HasSuffix(v.Date, "Z") {
		t.Errorf("got the dates %q and %q, want both alike, in UTC and milliseconds", v.Date, v.PublishDate)
	}
	if v.Settings == nil {
		t.Errorf("the post has no settings, want an object: %s", post)
	}
}

// fullShape checks the shape of a single post's record.
func fullShape(t *testing.T, a answer) {
	t.Helper()
	v := members(t, a.raw(), append(slices.Clone(core), "channels", "media", "timeline", "comments", "approval")...)
	channelShape(t, v["integration"])
	for _, c := range elements(t, v["channels"]) {
		channelShape(t, c)
	}
	for _, e := range elements(t, v["posts"]) {
		entryShape(t, members(t, e, "id", "integration", "value", "state", "releaseId", "releaseURL", "error", "errorCode",
			"outcomeUnknown", "createdAt", "updatedAt"))
	}
	stateShape(t, a.raw())
	for _, medium := range elements(t, v["media"]) {
		members(t, medium, "id", "url", "path", "type", "alt?", "thumbnail?")
	}
	timeline := elements(t, v["timeline"])
	if len(timeline) == 0 {
		t.Errorf("the timeline is empty, want at least one event: %v", a)
	}
	for _, e := range timeline {
		if by, ok := members(t, e, "at", "event", "node?", "by?", "reason?")["by"]; ok {
			members(t, by, "kind", "id", "name", "for?")
		}
	}
	members(t, v["approval"], "status")
}
