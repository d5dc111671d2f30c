package connector_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"

	"crier/publishing/connector"
	"crier/tests/segmenter"
)

// TestLength_CountsGraphemes checks counts that follow from the rules of Unicode.
func TestLength_CountsGraphemes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"": 0, "a": 1, "é": 1, "e\u0301": 1, "\r\n": 1, "👩‍👩‍👧": 1, "🇩🇪🇫🇷": 2, "각": 1, "\u1100\u1161\u11a8": 1,
		"नमस्ते": 3, "क्षत्रिय": 3, "বাংলা": 2, "മലയാളം": 4, "ગુજરાતી": 4, "తెలుగు": 3, "ଓଡ଼ିଆ": 3, "👍🏽": 1,
	} {
		if got := connector.Length(text, connector.Graphemes); got != want {
			t.Errorf("%q has %d graphemes, want %d", text, got, want)
		}
	}
}

// TestGraphemes_MatchNode compares the counts of random texts with those of Intl.Segmenter.
func TestGraphemes_MatchNode(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it installs Node.js")
	}
	texts := make([]string, 200_000)
	seed := rand.Uint64()
	g := newTexts(rand.New(rand.NewPCG(seed, 0)))
	for i := range texts {
		texts[i] = g.text()
	}
	version, counts := segmenter.Counts(t, texts)
	t.Logf("seed %d, Unicode %s", seed, version)
	if len(counts) != len(texts) {
		t.Fatalf("got %d counts, want %d", len(counts), len(texts))
	}
	differ := 0
	for i, want := range counts {
		if got := connector.Length(texts[i], connector.Graphemes); got != want {
			if differ++; differ <= 20 {
				t.Errorf("%+q has %d graphemes, want %d", texts[i], got, want)
			}
		}
	}
	if differ > 0 {
		t.Errorf("%d of %d texts have a different count", differ, len(texts))
	}
}

// texts generates texts in every script, mixed with characters that join or separate others.
type texts struct {
	*rand.Rand
	scripts []*unicode.RangeTable
}

func newTexts(r *rand.Rand) *texts {
	g := &texts{Rand: r}
	for _, name := range slices.Sorted(maps.Keys(unicode.Scripts)) {
		g.scripts = append(g.scripts, unicode.Scripts[name])
	}
	return g
}

// joiners are characters for which Unicode has special rules.
var joiners = []rune{
	'\u200d', '\u200c', '\u0301', '\u0308', '\ufe0f', '\ufe0e', '\u20e3', '\r', '\n', '\u094d', '\u09cd', '\u0d4d', '\u0acd', '\u0c4d',
	'\u0b4d', '\u1039', '\u17d2', '\u1b44', '\u0600', '\u06dd', 0x110bd, '\u0903', '\u0e33', '\u0eb3', '\u1100', '\u1161', '\u11a8',
	'\u00ad', '\u200b', '\u2028', '\u180e', 0x1f1e6, 0x1f1ff, 0x1f468, 0x1f469, 0x1f3fb, 0x1f3ff, 0x1f6d1, 0x2764, 0x00a9, 0xe0067,
	0xe007f, 0x1f3f4, 0x11f02, 0x113d1,
}

func (g *texts) text() string {
	script := g.scripts[g.IntN(len(g.scripts))]
	var b strings.Builder
	for range 1 + g.IntN(12) {
		switch n := g.IntN(10); {
		case n < 5:
			b.WriteRune(g.of(script))
		case n < 8:
			b.WriteRune(joiners[g.IntN(len(joiners))])
		case n < 9:
			b.WriteRune(g.of(g.scripts[g.IntN(len(g.scripts))]))
		default:
			r := rune(g.IntN(unicode.MaxRune + 1))
			if r >= 0xd800 && r <= 0xdfff {
				r = 'x'
			}
			b.WriteRune(r)
		}
	}
	return b.String()
}

// of returns a random character from a table.
func (g *texts) of(table *unicode.RangeTable) rune {
	n := g.IntN(len(table.R16) + len(table.R32))
	if n < len(table.R16) {
		r := table.R16[n]
		return rune(r.Lo) + rune(g.IntN(int((r.Hi-r.Lo)/r.Stride)+1))*rune(r.Stride)
	}
	r := table.R32[n-len(table.R16)]
	return rune(r.Lo) + rune(g.IntN(int((r.Hi-r.Lo)/r.Stride)+1))*rune(r.Stride)
}
