package post

import (
	"errors"
	"slices"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"crier/platform/fault"
	"crier/publishing"
)

// unread returns the members that are documented but not read.
func unread[T any](m members[T]) (out []string) {
	for _, one := range m.list {
		if one.decode == nil {
			out = append(out, one.name)
		}
	}
	return out
}

func TestMembers_DocumentedAreRead(t *testing.T) {
	t.Parallel()
	if got := unread(createMembers); !slices.Equal(got, []string{"order"}) {
		t.Errorf("got %v, want order alone, which is documented as not used", got)
	}
	for name, got := range map[string][]string{
		"a tag": unread(tagMembers), "an entry": unread(entryMembers), "a part": unread(partMembers), "an image": unread(imageMembers),
	} {
		if len(got) > 0 {
			t.Errorf("%s: %v are not read", name, got)
		}
	}
}

func TestCheckDocs_NameMembers(t *testing.T) {
	t.Parallel()
	r := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	s := checkMembers.pick(r, checkPostDocs(), "posts")
	for name, doc := range checkPostDocs() {
		if p := s.Properties[name]; p == nil || p.Description != doc {
			t.Errorf("%s is %+v, want a member with the description %q", name, p, doc)
		}
	}
	if len(s.Properties) != len(checkPostDocs()) {
		t.Errorf("got %d members, want %d", len(s.Properties), len(checkPostDocs()))
	}
}

func TestDecodeCreate_FaultsFollowOrderOfMembers(t *testing.T) {
	t.Parallel()
	_, err := decodeCreate([]byte(`{"posts":[{"value":[{"image":[1],"delay":"x","id":2}],"integration":{"id":3}}],
		"tags":[{"value":4,"label":5}],"date":6,"shortLink":7,"interCount":8.5,"inter":9.5,"republish":10,"type":11}`))
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Fatalf("got %v, want a fault", err)
	}
	want := []string{
		"type", "republish", "inter", "interCount", "shortLink", "date", "tags.0.label", "tags.0.value",
		"posts.0.integration.id", "posts.0.value.0.id", "posts.0.value.0.delay", "posts.0.value.0.image.0",
	}
	var got []string
	for _, one := range f.Fields {
		got = append(got, one.Name)
	}
	if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		t.Errorf("got the faults of %v, want %v first", got, want)
	}
}

func TestDecodeCreate_LastDuplicateMemberCounts(t *testing.T) {
	t.Parallel()
	cmd, err := decodeCreate([]byte(`{"type":"draft","type":"now","date":"2030-01-01","posts":[{"integration":{"id":"a"},"value":[{}]}]}`))
	if err != nil || cmd.Type != publishing.CreateNow {
		t.Errorf("got %q and %v, want now", cmd.Type, err)
	}
}
