package conformance

import (
	"strings"
	"testing"

	"crier/publishing/connector"
)

// letters are single characters whose length differs between units.
var letters = []string{"a", "é", "e\u0301", "😀"}

func (s Suite) validate(t *testing.T) {
	r := s.onShared(t)
	d := r.c.Describe()
	maxLength := s.maxLength(d)
	for _, letter := range letters {
		s.length(r, letter, maxLength, d.Unit)
	}
	s.counts(r, d.Media)
	r.rule("an empty part", connector.DraftPart{}, true)
	r.rule("a part of spaces", connector.DraftPart{Text: " \t\n\u00a0"}, true)
	r.rule("a part of invisible characters", connector.DraftPart{Text: "\u200b\u2060\ufeff\u202e"}, true)
	r.rule("emoji that are joined", connector.DraftPart{Text: "👩\u200d👩\u200d👧"}, false)
	t.Run("problems of all parts are reported in order", func(t *testing.T) {
		parts := []connector.DraftPart{{}, {Text: "fine"}, {Text: strings.Repeat("a", maxLength+1)}}
		problems := r.c.Validate(connector.Draft{Account: r.s.Account, Settings: s.Settings, Parts: parts})
		if len(problems) < 2 || problems[0].Part != 0 || problems[len(problems)-1].Part != 2 {
			t.Fatalf("problems %+v, want some of part 0 and then some of part 2", problems)
		}
		for _, p := range problems {
			if p.Message == "" || p.Part == 1 {
				t.Errorf("problem %+v, want a message, and none of part 1", p)
			}
		}
	})
}

// length checks texts just below, at and just above the limit. If a text's length is not a multiple
// of the letter's length, the text is padded with "a"s at the beginning.
func (s Suite) length(r *rig, letter string, limit int, unit connector.Unit) {
	if limit == 0 {
		return
	}
	each := connector.Length(letter, unit)
	text := func(units int) string {
		return strings.Repeat("a", units%each) + strings.Repeat(letter, units/each)
	}
	r.rule("a text of limit-1 in "+letter, connector.DraftPart{Text: text(limit - 1)}, false)
	r.rule("a text of limit in "+letter, connector.DraftPart{Text: text(limit)}, false)
	r.rule("a text of limit+1 in "+letter, connector.DraftPart{Text: text(limit + 1)}, true)
}

// counts checks the limits on the number and the size of each kind of media.
func (s Suite) counts(r *rig, rules connector.MediaRules) {
	for _, k := range []struct {
		media connector.Media
		count int
		bytes int64
	}{
		{media: draftImage(), count: rules.MaxImages, bytes: rules.MaxImageBytes},
		{media: draftVideo(), count: rules.MaxVideos, bytes: rules.MaxVideoBytes},
	} {
		if k.count > 1 {
			r.rule(k.media.Name+" limit-1 times", carrying(k.media, k.count-1), false)
		}
		if k.count > 0 {
			r.rule(k.media.Name+" limit times", carrying(k.media, k.count), false)
		}
		r.rule(k.media.Name+" limit+1 times", carrying(k.media, k.count+1), true)
		if k.count == 0 || k.bytes == 0 {
			continue
		}
		for over, refused := range map[int64]bool{-1: false, 0: false, 1: true} {
			m := k.media
			m.Size = k.bytes + over
			name := m.Name + " with a size of limit" + map[int64]string{-1: "-1", 0: "", 1: "+1"}[over]
			r.rule(name, carrying(m, 1), refused)
		}
	}
	if rules.MaxImages > 0 && rules.MaxVideos > 0 {
		both := connector.DraftPart{Text: "both", Media: []connector.Media{draftImage(), draftVideo()}}
		r.rule("an image with a video", both, !rules.Mixed)
	}
}

// rule checks that Validate rejects the part if refused is true, and accepts it otherwise. In the
// draft, the part follows a valid part.
func (r *rig) rule(name string, part connector.DraftPart, refused bool) {
	want := map[bool]string{true: "refused", false: "accepted"}[refused]
	r.t.Run(name+" is "+want, func(t *testing.T) {
		parts := []connector.DraftPart{{Text: "fine"}, part}
		draft := connector.Draft{Account: r.s.Account, Settings: r.Settings, Parts: parts}
		problems := r.c.Validate(draft)
		if (len(problems) > 0) != refused {
			t.Fatalf("got the problems %+v, want the part %s", problems, want)
		}
		for _, p := range problems {
			if p.Part != 1 || p.Message == "" {
				t.Errorf("problem %+v, want one of part 1 with a message", p)
			}
		}
	})
}

func carrying(m connector.Media, count int) connector.DraftPart {
	part := connector.DraftPart{Text: "media"}
	for range count {
		part.Media = append(part.Media, m)
	}
	return part
}

func draftImage() connector.Media {
	return connector.Media{ContentType: "image/png", Size: 1000, Width: side, Height: side, Name: "image"}
}

func draftVideo() connector.Media {
	return connector.Media{
		ContentType: "video/mp4", Size: 1000, Width: side, Height: side, Name: "video", Video: true,
	}
}
