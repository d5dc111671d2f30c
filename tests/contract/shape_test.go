package contract

import (
	"slices"
	"strings"
	"testing"
)

// keys compares the members of a record with those of the contract. Optional ones end in "?".
func keys(t *testing.T, got m, want ...string) {
	t.Helper()
	for k := range got {
		if !slices.Contains(want, k) && !slices.Contains(want, k+"?") {
			t.Errorf("the record has a member %q that the contract does not know: %v", k, got)
		}
	}
	for _, k := range want {
		if _, ok := got[k]; !ok && !strings.HasSuffix(k, "?") {
			t.Errorf("the record has no %q: %v", k, got)
		}
	}
}

func channelShape(t *testing.T, c m) {
	t.Helper()
	keys(t, c, "id", "name", "identifier", "providerIdentifier", "picture?", "profile", "disabled", "customer?", "refreshNeeded?")
	if c["identifier"] != c["providerIdentifier"] {
		t.Errorf("the two names of the platform differ: %v", c)
	}
}

var core = []string{"id", "status", "date", "posts", "state", "publishDate", "content", "group", "releaseURL", "releaseId", "intervalInDays", "creationMethod", "settings", "tags", "integration", "actualDate?"}

// itemShape checks a record of the list (3.2).
func itemShape(t *testing.T, v m) {
	t.Helper()
	keys(t, v, append(slices.Clone(core), "error?", "errorCode?")...)
	keys(t, v["integration"].(m), "id", "providerIdentifier", "name", "picture")
	entries := v["posts"].([]any)
	if len(entries) != 1 {
		t.Errorf("%d entries", len(entries))
	}
	keys(t, entries[0].(m), "id", "integration", "value")
	entryShape(t, entries[0].(m))
	stateShape(t, v)
}

func entryShape(t *testing.T, e m) {
	t.Helper()
	keys(t, e["integration"].(m), "id", "name")
	for _, p := range e["value"].([]any) {
		keys(t, p.(m), "id", "content", "contentType", "image", "delay")
		for _, i := range p.(m)["image"].([]any) {
			keys(t, i.(m), "id", "url", "path", "type?", "alt?", "thumbnail?")
		}
	}
}

func stateShape(t *testing.T, v m) {
	t.Helper()
	status := map[any]string{"DRAFT": "draft", "QUEUE": "scheduled", "PUBLISHED": "published", "ERROR": "failed"}
	date, _ := v["date"].(string)
	if status[v["state"]] != v["status"] || v["date"] != v["publishDate"] || len(date) != len("2026-01-02T03:04:05.000Z") || !strings.HasSuffix(date, "Z") {
		t.Errorf("state, status, date, publishDate: %v %v %v %v", v["state"], v["status"], v["date"], v["publishDate"])
	}
	if _, ok := v["settings"].(m); !ok {
		t.Errorf("settings: %v", v["settings"])
	}
}

// fullShape checks a record of one post (3.3).
func fullShape(t *testing.T, v m) {
	t.Helper()
	keys(t, v, append(slices.Clone(core), "channels", "media", "timeline", "comments", "approval")...)
	channelShape(t, v["integration"].(m))
	channelShape(t, v["channels"].([]any)[0].(m))
	e := v["posts"].([]any)[0].(m)
	keys(t, e, "id", "integration", "value", "state", "releaseId", "releaseURL", "error", "errorCode", "outcomeUnknown", "createdAt", "updatedAt")
	entryShape(t, e)
	stateShape(t, v)
	for _, i := range v["media"].([]any) {
		keys(t, i.(m), "id", "url", "path", "type", "alt?", "thumbnail?")
	}
	timeline := v["timeline"].([]any)
	if len(timeline) == 0 {
		t.Error("the timeline is empty")
	}
	for _, e := range timeline {
		keys(t, e.(m), "at", "event", "node?", "by?", "reason?")
	}
	keys(t, v["approval"].(m), "status")
}
