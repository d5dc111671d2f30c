package record

import (
	"testing"

	"crier/publishing"
)

func TestStateNames(t *testing.T) {
	t.Parallel()
	want := map[publishing.State][2]string{
		"DRAFT": {"DRAFT", "draft"}, "WAITING": {"QUEUE", "scheduled"}, "QUEUE": {"QUEUE", "scheduled"},
		"PUBLISHING": {"QUEUE", "scheduled"}, "UNKNOWN": {"QUEUE", "scheduled"}, "PUBLISHED": {"PUBLISHED", "published"},
		"ERROR": {"ERROR", "failed"},
	}
	for _, s := range publishing.States() {
		if got := [2]string{StateName(s), statusName(s)}; got != want[s] {
			t.Errorf("%s: got %v, want %v", s, got, want[s])
		}
	}
	if len(want) != len(publishing.States()) {
		t.Errorf("got %d states, want %d", len(publishing.States()), len(want))
	}
}

func TestJSONName(t *testing.T) {
	t.Parallel()
	for member, want := range map[string]string{
		"type": "type", "date": "date", "entries": "posts", "entries.0.channel": "posts.0.integration.id",
		"entries.3.settings": "posts.3.settings", "entries.0.parts": "posts.0.value",
		"entries.0.parts.2.type": "posts.0.value.2.contentType", "entries.0.parts.2.content": "posts.0.value.2.content",
		"entries.0.parts.2.media": "posts.0.value.2.image", "entries.0.parts.2.media.1.alt": "posts.0.value.2.image.1.alt",
		"repeat.days": "inter", "repeat.count": "interCount", "repeat.until": "interUntil", "to": "status",
	} {
		if got := jsonName(member); got != want {
			t.Errorf("%s: got %s, want %s", member, got, want)
		}
	}
}
