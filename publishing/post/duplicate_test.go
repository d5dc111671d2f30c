package post_test

import (
	"errors"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/publishing"
)

func TestCreate_NoDuplicatesComparesTextsOfADay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := r.Connect(r.who.Org)
	dated := func(channel publishing.ChannelID, text string, after time.Duration) publishing.CreateEntry {
		e := entry(channel, text)
		e.Date = tomorrow().Add(after)
		return e
	}
	r.created(command(publishing.CreateSchedule, dated(r.channel, "a text", 0)))
	for name, c := range map[string]struct {
		entries   []publishing.CreateEntry
		duplicate bool
	}{
		"the same text in an hour":       {entries: []publishing.CreateEntry{dated(r.channel, "a text", time.Hour)}, duplicate: true},
		"the same text in 23 hours":      {entries: []publishing.CreateEntry{dated(r.channel, "a text", 23*time.Hour)}, duplicate: true},
		"the same text 23 hours earlier": {entries: []publishing.CreateEntry{dated(r.channel, "a text", -23*time.Hour)}, duplicate: true},
		"the same text in 25 hours":      {entries: []publishing.CreateEntry{dated(r.channel, "a text", 25*time.Hour)}},
		"another text":                   {entries: []publishing.CreateEntry{dated(r.channel, "another", 0)}},
		"another channel":                {entries: []publishing.CreateEntry{dated(other, "a text", 0)}},
		"twice in one command": {
			entries: []publishing.CreateEntry{dated(other, "twice", 0), dated(other, "twice", time.Hour)}, duplicate: true,
		},
	} {
		cmd := command(publishing.CreateDraft, c.entries...)
		cmd.NoDuplicates, cmd.DryRun = true, true
		_, err := r.create(cmd)
		var f *fault.Error
		if errors.As(err, &f); c.duplicate != (f != nil && f.Kind == fault.Conflict && len(f.Items) == 1) || !c.duplicate && err != nil {
			t.Errorf("%s: got %v, want a Conflict with one item: %t", name, err, c.duplicate)
		}
	}
	r.wantStored(1)
	r.created(command(publishing.CreateSchedule, dated(r.channel, "a text", time.Hour)))
}

func TestCreate_EntriesHaveDatesOfTheirOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	later := entry(r.channel, "later")
	later.Date = tomorrow().Add(48 * time.Hour)
	cmd := command(publishing.CreateSchedule, entry(r.channel, "first"), later)
	out, err := r.create(cmd)
	r.OK(err)
	for i, want := range []time.Time{cmd.Date, later.Date} {
		got := out.Created[i]
		if stored := r.get(got.Post).Root.PublishDate; !stored.Equal(want) || !got.Date.Equal(want) || got.Zone != "UTC" {
			t.Errorf("entry %d: got %+v, stored for %s, want %s", i, got, stored, want)
		}
	}
	r.wantWoken(cmd.Date)
	later.Date = time.Date(1999, time.May, 1, 0, 0, 0, 0, time.UTC)
	_, err = r.create(command(publishing.CreateSchedule, entry(r.channel, "first"), later))
	var f *fault.Error
	if !errors.As(err, &f) || len(f.Fields) != 1 || f.Fields[0].Name != "entries.1.date" {
		t.Errorf("a date in 1999: got %v, want a fault of entries.1.date", err)
	}
}

func TestCreate_DryRunStoresNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cmd := command(publishing.CreateNow, entry(r.channel, "a text"))
	cmd.DryRun = true
	out, err := r.create(cmd)
	if err != nil || len(out.Created) != 1 {
		t.Errorf("got %+v, %v; want what would be created", out, err)
	}
	r.wantStored(0)
	r.wantWoken()
	r.Deps.Quota = postsAMonth(0)
	r.posts = r.process()
	if _, err := r.create(cmd); !fault.Is(err, fault.Quota) {
		t.Errorf("over the quota: got %v, want a Quota fault", err)
	}
}
