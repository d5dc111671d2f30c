package publishing_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/publishing"
)

func TestState_ValidListsEveryState(t *testing.T) {
	t.Parallel()
	for _, s := range publishing.States() {
		if !s.Valid() {
			t.Errorf("%s is not valid", s)
		}
	}
	if publishing.State("GONE").Valid() {
		t.Error("GONE is valid, want it unknown")
	}
}

func TestMove(t *testing.T) {
	t.Parallel()
	for _, s := range publishing.States() {
		for _, unknown := range []bool{false, true} {
			for _, published := range []bool{false, true} {
				for _, republish := range []bool{false, true} {
					for _, to := range []publishing.State{publishing.StateDraft, publishing.StateQueue} {
						unpublished := s != publishing.StatePublished && !published && (!unknown || to == publishing.StateDraft)
						allowed := !s.Claimed() && (republish || unpublished)
						err := publishing.Move(s, to, unknown, published, republish)
						if allowed != (err == nil) || !allowed && !fault.Is(err, fault.Conflict) {
							t.Errorf("%s to %s unknown=%v published=%v republish=%v: got %v, want it allowed: %v",
								s, to, unknown, published, republish, err, allowed)
						}
						var f *fault.Error
						if s.Claimed() && (!errors.As(err, &f) || (f.RetryAfter > 0) == republish) {
							t.Errorf("%s, republish=%v: got %+v, want a time to try again without republish only", s, republish, f)
						}
					}
				}
			}
		}
	}
}

func TestCreatePosts_Validate(t *testing.T) {
	t.Parallel()
	good := func() publishing.CreatePosts {
		return publishing.CreatePosts{Type: publishing.CreateSchedule, Date: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
			Entries: []publishing.CreateEntry{{Channel: "x", Parts: []publishing.CreatePart{{Content: "a"}, {Content: "b", Delay: 5}}}}}
	}
	if err := good().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		field string
		spoil func(*publishing.CreatePosts)
	}{
		"unknown type":        {field: "type", spoil: func(c *publishing.CreatePosts) { c.Type = "later" }},
		"no date":             {field: "date", spoil: func(c *publishing.CreatePosts) { c.Date = time.Time{} }},
		"a date out of reach": {field: "date", spoil: func(c *publishing.CreatePosts) { c.Date = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) }},
		"no entries":          {field: "entries", spoil: func(c *publishing.CreatePosts) { c.Entries = nil }},
		"no channel":          {field: "entries.0.channel", spoil: func(c *publishing.CreatePosts) { c.Entries[0].Channel = "" }},
		"no parts":            {field: "entries.0.parts", spoil: func(c *publishing.CreatePosts) { c.Entries[0].Parts = nil }},
		"NUL in a text": {
			field: "entries.0.parts.0.content",
			spoil: func(c *publishing.CreatePosts) { c.Entries[0].Parts[0].Content = "a\x00" },
		},
		"bytes that are no text": {
			field: "entries.0.parts.0.content",
			spoil: func(c *publishing.CreatePosts) { c.Entries[0].Parts[0].Content = "\xff" },
		},
		"a negative delay": {field: "entries.0.parts.1.delay", spoil: func(c *publishing.CreatePosts) { c.Entries[0].Parts[1].Delay = -1 }},
		"a long alt text": {field: "entries.0.parts.0.media.0.alt", spoil: func(c *publishing.CreatePosts) {
			c.Entries[0].Parts[0].Media = []publishing.CreateMedium{{ID: "i", Alt: strings.Repeat("x", 2001)}}
		}},
		"a negative interval":  {field: "repeat.days", spoil: func(c *publishing.CreatePosts) { c.Repeat.Days = -1 }},
		"a very long interval": {field: "repeat.days", spoil: func(c *publishing.CreatePosts) { c.Repeat.Days = 366 }},
		"a negative count":     {field: "repeat.count", spoil: func(c *publishing.CreatePosts) { c.Repeat = publishing.Repeat{Days: 1, Count: -1} }},
		"a count alone":        {field: "repeat.count", spoil: func(c *publishing.CreatePosts) { c.Repeat.Count = 2 }},
		"an end alone":         {field: "repeat.until", spoil: func(c *publishing.CreatePosts) { c.Repeat.Until = &c.Date }},
		"an end before its beginning": {field: "repeat.until", spoil: func(c *publishing.CreatePosts) {
			before := c.Date.Add(-time.Second)
			c.Repeat = publishing.Repeat{Days: 1, Until: &before}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := good()
			c.spoil(&cmd)
			var f *fault.Error
			if err := cmd.Validate(); !errors.As(err, &f) || f.Kind != fault.Invalid || len(f.Fields) != 1 || f.Fields[0].Name != c.field {
				t.Fatalf("got %+v, want Invalid with the field %s", err, c.field)
			}
		})
	}
}
