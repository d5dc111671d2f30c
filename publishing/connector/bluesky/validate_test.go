package bluesky

import (
	"strings"
	"testing"

	"crier/publishing/connector"
)

func TestValidate_Langs(t *testing.T) {
	t.Parallel()
	for settings, refused := range map[string]bool{
		"": false, "{}": false, `{"langs":null}`: false, `{"langs":[]}`: false, `{"langs":["de"]}`: false, `{"langs":["zh-Hant-TW","sr-Latn","pt-BR"]}`: false,
		`{"langs":["de","fr","it","en"]}`: true, `{"langs":["german"]}`: true, `{"langs":["de_DE!"]}`: true, `{"langs":[""]}`: true, `{"langs":"de"}`: true, `{"langs":[1]}`: true,
	} {
		problems := New().Validate(connector.Draft{Settings: []byte(settings), Parts: []connector.DraftPart{{Text: "x"}}})
		if (len(problems) > 0) != refused || refused && (!problems[0].Settings || problems[0].Message == "") {
			t.Errorf("%s: got %+v, want refused: %t", settings, problems, refused)
		}
	}
}

func TestValidate_Limits(t *testing.T) {
	t.Parallel()
	family := "👩‍👩‍👧" // one grapheme of 18 bytes
	image := connector.Media{ContentType: "image/png", Name: "a.png", Size: 5_000_000, Width: 4000, Height: 3000}
	with := func(change func(*connector.Media)) connector.DraftPart {
		m := image
		change(&m)
		return connector.DraftPart{Media: []connector.Media{m}}
	}
	for name, tc := range map[string]struct {
		part    connector.DraftPart
		refused bool
	}{
		"299 graphemes": {part: connector.DraftPart{Text: strings.Repeat("é", 299)}, refused: false},
		"300 graphemes": {part: connector.DraftPart{Text: strings.Repeat("e\u0301", 300)}, refused: false},
		"301 graphemes": {part: connector.DraftPart{Text: strings.Repeat("a", 301)}, refused: true},
		"2,999 bytes":   {part: connector.DraftPart{Text: strings.Repeat(family, 166) + strings.Repeat("a", 11)}, refused: false},
		"3,000 bytes":   {part: connector.DraftPart{Text: strings.Repeat(family, 166) + strings.Repeat("a", 12)}, refused: false},
		"3,001 bytes":   {part: connector.DraftPart{Text: strings.Repeat(family, 166) + strings.Repeat("a", 13)}, refused: true},
		"broken UTF-8":  {part: connector.DraftPart{Text: "a\xff"}, refused: true},
		"a big image":   {part: with(func(*connector.Media) {}), refused: false},
		"a big jpeg of 40 million": {
			part:    with(func(m *connector.Media) { m.ContentType, m.Width, m.Height = "image/jpeg", 8000, 5000 }),
			refused: false,
		},
		"a big jpeg of more pixels": {
			part:    with(func(m *connector.Media) { m.ContentType, m.Width, m.Height = "image/jpeg", 8000, 5001 }),
			refused: true,
		},
		"a big png of 33.5 million":  {part: with(func(m *connector.Media) { m.Width, m.Height = 6700, 5000 }), refused: false},
		"a big png of more pixels":   {part: with(func(m *connector.Media) { m.Width, m.Height = 6700, 5001 }), refused: true},
		"a small one of more pixels": {part: with(func(m *connector.Media) { m.Size, m.Width = maxBlob, 80000 }), refused: false},
		"a gif at the limit":         {part: with(func(m *connector.Media) { m.Size, m.ContentType = maxBlob, "image/gif" }), refused: false},
		"a gif above the limit":      {part: with(func(m *connector.Media) { m.Size, m.ContentType = maxBlob+1, "image/gif" }), refused: true},
		"a video":                    {part: with(func(m *connector.Media) { m.Video, m.ContentType = true, "video/mp4" }), refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problems := New().Validate(connector.Draft{Parts: []connector.DraftPart{{Text: "fine"}, tc.part}})
			if (len(problems) > 0) != tc.refused {
				t.Fatalf("got the problems %+v, want refused: %t", problems, tc.refused)
			}
			for _, p := range problems {
				if p.Part != 1 || p.Message == "" {
					t.Errorf("got %+v, want part 1 and a message", p)
				}
			}
			err := checkItem(connector.Item{Text: tc.part.Text, Media: tc.part.Media})
			if err != nil && !tc.refused {
				t.Errorf("Prepare: got %v, want it accepted as by Validate", err)
			}
		})
	}
}
