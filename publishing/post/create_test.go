package post_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/tag"
	"crier/tests/publishtest"
)

func TestCreate_NowIsDueAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	before := publishtest.Value[time.Time](r.Base, `select now()`)
	cmd := command(publishing.CreateNow, entry(r.channel, "a text"))
	root := r.get(r.created(cmd)).Root
	after := publishtest.Value[time.Time](r.Base, `select now()`)
	if root.State != publishing.StateQueue || root.Due.Before(before) || root.Due.After(after) {
		t.Errorf("got %s due at %v, want QUEUE due between %v and %v", root.State, root.Due, before, after)
	}
	if !root.PublishDate.Equal(*root.Due) {
		t.Errorf("its date is %v, want the due time %v and not the one that was sent", root.PublishDate, root.Due)
	}
	r.wantWoken(time.Time{})
}

func TestCreate_ScheduleIsDueAtItsDate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e := entry(r.channel, "a text")
	e.Settings = json.RawMessage(`{"__type": "another", "reply": "all"}`)
	cmd := command(publishing.CreateSchedule, e)
	d := r.get(r.created(cmd))
	root := d.Root
	if root.State != publishing.StateQueue || !root.Due.Equal(cmd.Date) || !root.PublishDate.Equal(cmd.Date) {
		t.Errorf("got %s due at %v for %v, want QUEUE at %v", root.State, root.Due, root.PublishDate, cmd.Date)
	}
	if root.Channel != r.channel || root.CreationMethod != publishing.MethodAPI ||
		!slices.Equal(texts(d), []string{"a text"}) {
		t.Errorf("got %+v, want the text in the channel %s by the API", root, r.channel)
	}
	var settings map[string]string
	r.OK(json.Unmarshal(root.Settings, &settings))
	if want := map[string]string{"__type": "sandbox", "reply": "all"}; !reflect.DeepEqual(settings, want) {
		t.Errorf("got the settings %v, want %v", settings, want)
	}
	if !slices.Equal(kinds(d), []publishing.EventKind{publishing.EventWritten}) || d.Events[0].By == nil {
		t.Errorf("got the timeline %+v, want that a person wrote it", d.Events)
	}
	r.wantWoken(cmd.Date)
}

func TestCreate_DraftKeepsItsDateAndWakesNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, date := range map[string]time.Time{
		"tomorrow": tomorrow(), "a date that has passed": time.Date(2001, time.May, 1, 12, 0, 0, 0, time.UTC),
	} {
		cmd := command(publishing.CreateDraft, entry(r.channel, "a text"))
		cmd.Date = date
		root := r.get(r.created(cmd)).Root
		if root.State != publishing.StateDraft || !root.Due.Equal(date) || !root.PublishDate.Equal(date) {
			t.Errorf("%s: got %s due at %v for %v", name, root.State, root.Due, root.PublishDate)
		}
	}
	r.wantWoken()
}

func TestCreate_PastDatePublishesNow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	before := publishtest.Value[time.Time](r.Base, `select now()`)
	cmd := command(publishing.CreateSchedule, entry(r.channel, "a text"))
	cmd.Date = time.Date(2001, time.May, 1, 12, 0, 0, 0, time.UTC)
	post := r.created(cmd)
	root := r.get(post).Root
	due := publishtest.Value[bool](r.Base, `select due <= now() from post where id = $1`, post)
	if root.State != publishing.StateQueue || !due || root.Due.Before(before) {
		t.Errorf("got %s due at %v, want QUEUE due now", root.State, root.Due)
	}
	if !root.PublishDate.Equal(cmd.Date) {
		t.Errorf("the calendar shows it at %v, want %v", root.PublishDate, cmd.Date)
	}
	if got := r.woken(); len(got) != 1 || got[0].After(before) {
		t.Errorf("the organization was woken for %v, want once for a time that has passed", got)
	}
}

func TestCreate_PartsWithADelayFollow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e := entry(r.channel, "one", "two", "three", "four")
	e.Parts[0].Delay = 7 // clients send the delay of the other parts with the first part too
	e.Parts[1].Delay = 5
	e.Parts[3].Delay = 10
	post := r.created(command(publishing.CreateSchedule, e))
	d := r.get(post)
	if !slices.Equal(texts(d), []string{"one", "two", "three", "four"}) {
		t.Errorf("got the parts %q", texts(d))
	}
	if first := d.Root.Parts[0].ID; first != id.FromUUID[publishing.PartTag](post.UUID()) {
		t.Errorf("the first part has the id %s, want that of its post %s", first, post)
	}
	if len(d.Followers) != 2 {
		t.Fatalf("got %d followers, want 2", len(d.Followers))
	}
	for i, f := range d.Followers {
		want := []time.Duration{5 * time.Minute, 10 * time.Minute}[i]
		if f.State != publishing.StateWaiting || f.Due != nil || f.Delay != want {
			t.Errorf("follower %d is %s due at %v after %s, want WAITING after %s", i, f.State, f.Due, f.Delay, want)
		}
	}
	if d.Followers[0].After != post || d.Followers[1].After != d.Followers[0].ID {
		t.Errorf("the followers wait for %s and %s", d.Followers[0].After, d.Followers[1].After)
	}
	r.wantStored(3)
}

func TestCreate_AnswersInTheOrderOfTheEntries(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := r.Connect(r.who.Org)
	channels := []publishing.ChannelID{other, r.channel, other}
	cmd := command(publishing.CreateSchedule)
	for i, c := range channels {
		cmd.Entries = append(cmd.Entries, entry(c, fmt.Sprint("text ", i)))
	}
	out, err := r.create(cmd)
	r.OK(err)
	groups := map[publishing.GroupID]bool{}
	for i, made := range out.Created {
		d := r.get(made.Post)
		groups[d.Root.Group] = true
		text := cmd.Entries[i].Parts[0].Content
		if made.Channel != channels[i] || d.Root.Channel != channels[i] || texts(d)[0] != text {
			t.Errorf("answer %d is %+v with the text %q, want the channel %s", i, made, texts(d), channels[i])
		}
	}
	if len(groups) != 3 || out.Replayed {
		t.Errorf("got %d groups, replayed is %t; want 3 new ones", len(groups), out.Replayed)
	}
	r.wantWoken(cmd.Date)
}

func TestCreate_RefusedEntryLeavesOutTheOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	disabled, stranger, away := r.Connect(r.who.Org), r.Connect(r.Organization().Org), r.Connect(r.who.Org)
	r.Tenant(r.who.Org, `update channel set disabled = true where id = $1`, disabled)
	r.Tenant(r.who.Org, `update channel set connector = 'gone' where id = $1`, away)
	none := id.New[publishing.ChannelTag]()
	noChannel := func(id string) fault.Item {
		return fault.Item{ID: id, Message: "Entry 2: There is no channel with the id " + connector.Quote(id) + "."}
	}
	of := func(c publishing.ChannelID, platform, message string) fault.Item {
		return fault.Item{ID: c.String(), Kind: platform, Name: "Channel", Message: message}
	}
	wrong := entry(r.channel, "a text")
	wrong.Settings = json.RawMessage(`{"wrong": true}`)
	for name, c := range map[string]struct {
		entry publishing.CreateEntry
		want  []fault.Item
	}{
		"an unknown channel": {entry: entry(none, "a text"), want: []fault.Item{noChannel(none.String())}},
		"another organization's channel": {
			entry: entry(stranger, "a text"), want: []fault.Item{noChannel(stranger.String())},
		},
		"what is no id": {
			entry: publishing.CreateEntry{Channel: "x", Parts: []publishing.CreatePart{{Content: "a text"}}},
			want:  []fault.Item{noChannel("x")},
		},
		"a disabled channel": {
			entry: entry(disabled, "a text"),
			want:  []fault.Item{of(disabled, "sandbox", "The channel is disabled.")},
		},
		"a platform that is not offered": {
			entry: entry(away, "a text"),
			want:  []fault.Item{of(away, "gone", "This instance no longer supports the channel's platform.")},
		},
		"a text that the platform refuses": {
			entry: entry(r.channel, "refused"), want: []fault.Item{of(r.channel, "sandbox", "The text is refused.")},
		},
		"two parts that the platform refuses": {
			entry: entry(r.channel, "refused", "a text", "refused"),
			want: []fault.Item{
				of(r.channel, "sandbox", "Part 1: The text is refused."),
				of(r.channel, "sandbox", "Part 3: The text is refused."),
			},
		},
		"settings that the platform refuses": {
			entry: wrong, want: []fault.Item{of(r.channel, "sandbox", "The settings are wrong.")},
		},
	} {
		_, err := r.create(command(publishing.CreateSchedule, entry(r.channel, "a text"), c.entry))
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != fault.Invalid || !reflect.DeepEqual(f.Items, c.want) {
			t.Errorf("%s: got %v with %+v, want Invalid with %+v", name, err, f, c.want)
		}
	}
	r.wantStored(0)
	r.wantWoken()
}

// A platform's rules apply to a draft once it is scheduled. Until then, only an empty draft is
// refused.
func TestCreate_DraftNeedsOnlyContent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	disabled := r.Connect(r.who.Org)
	r.Tenant(r.who.Org, `update channel set disabled = true where id = $1`, disabled)
	for _, e := range []publishing.CreateEntry{entry(r.channel, "refused"), entry(disabled, "a text")} {
		r.wantState(r.created(command(publishing.CreateDraft, e)), publishing.StateDraft)
	}
	_, err := r.create(command(publishing.CreateDraft, entry(r.channel, " ")))
	if !fault.Is(err, fault.Invalid) {
		t.Errorf("an empty draft: got %v, want Invalid", err)
	}
	r.wantStored(2)
}

func TestCreate_RefusesCommandsThatBreakALimit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	many := func(n int) (out []publishing.CreateEntry) {
		for range n {
			out = append(out, entry(r.channel, "a text"))
		}
		return out
	}
	for name, c := range map[string]struct {
		change func(*publishing.CreatePosts)
		field  string
	}{
		"no entry": {change: func(cmd *publishing.CreatePosts) { cmd.Entries = nil }, field: "entries"},
		"too many entries": {
			change: func(cmd *publishing.CreatePosts) { cmd.Entries = many(publishing.MaxEntries + 1) }, field: "entries",
		},
		"no date": {change: func(cmd *publishing.CreatePosts) { cmd.Date = time.Time{} }, field: "date"},
		"no type": {change: func(cmd *publishing.CreatePosts) { cmd.Type = "" }, field: "type"},
	} {
		cmd := command(publishing.CreateSchedule, entry(r.channel, "a text"))
		c.change(&cmd)
		_, err := r.create(cmd)
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != fault.Invalid || len(f.Fields) != 1 || f.Fields[0].Name != c.field {
			t.Errorf("%s: got %v with %+v, want Invalid for %s", name, err, f, c.field)
		}
	}
	r.wantStored(0)
	_, err := r.create(command(publishing.CreateDraft, many(publishing.MaxEntries)...))
	r.OK(err)
	r.wantStored(publishing.MaxEntries)
}

// A text may grow when it is sanitized.
func TestCreate_BoundsTextsAsTheyAreStored(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	grows := publishing.CreatePart{Type: publishing.ContentHTML, Content: "<p>" + strings.Repeat("&", 19_000) + "</p>"}
	for parts, refused := range map[int]bool{10: false, 11: true} {
		e := entry(r.channel)
		e.Parts = slices.Repeat([]publishing.CreatePart{grows}, parts)
		_, err := r.create(command(publishing.CreateSchedule, e))
		var f *fault.Error
		got := errors.As(err, &f) && f.Kind == fault.Invalid && len(f.Fields) == 1 && f.Fields[0].Name == "entries"
		if got != refused || !refused && err != nil {
			t.Errorf("%d parts of 95,000 characters: got %v, want refused: %t", parts, err, refused)
		}
	}
	r.wantStored(1)
}

// A channel may be disconnected after the entries were checked.
func TestCreate_ChannelDisconnectedDuringCheckIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.platform.before = func() {
		r.Tenant(r.who.Org, `update channel set deleted_at = now(), credential = null where id = $1`, r.channel)
	}
	_, err := r.create(command(publishing.CreateSchedule, entry(r.channel, "a text")))
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != fault.Invalid || f.Message != "The channel was disconnected." {
		t.Errorf("got %v, want Invalid because the channel was disconnected", err)
	}
	r.wantStored(0)
}

func TestCreate_TagsAreFoundByName(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	tags := map[string]publishing.TagID{}
	for _, name := range []string{"Alpha", "beta", "gamma"} {
		made, err := tag.New(r.Store).Create(t.Context(), r.who, publishing.SaveTag{Name: name, Color: "#000000"})
		r.OK(err)
		tags[name] = made.ID
	}
	theirs := publishing.SaveTag{Name: "theirs", Color: "#000000"}
	_, err := tag.New(r.Store).Create(t.Context(), r.Organization(), theirs)
	r.OK(err)
	cmd := command(publishing.CreateSchedule, entry(r.channel, "a text"))
	cmd.Tags = []string{"BETA", "none", "alpha", "theirs", "beta"}
	post := r.created(cmd)
	root := r.get(post).Root
	if want := []publishing.TagID{tags["beta"], tags["Alpha"]}; !slices.Equal(root.Tags, want) {
		t.Errorf("got the tags %v, want %v: those that exist, once each", root.Tags, want)
	}
	for _, c := range []struct {
		name string
		tags []string
		want []publishing.TagID
	}{
		{name: "without tags", tags: nil, want: []publishing.TagID{tags["beta"], tags["Alpha"]}},
		{name: "with another tag", tags: []string{"Gamma"}, want: []publishing.TagID{tags["gamma"]}},
		{name: "with no tags", tags: []string{}, want: nil},
	} {
		cmd.Entries[0].Group, cmd.Tags = root.Group.String(), c.tags
		if again := r.created(cmd); again != post {
			t.Fatalf("%s: the post %s was made, want %s replaced", c.name, again, post)
		}
		if got := r.get(post).Root.Tags; !slices.Equal(got, c.want) {
			t.Errorf("replaced %s: got the tags %v, want %v", c.name, got, c.want)
		}
	}
}
