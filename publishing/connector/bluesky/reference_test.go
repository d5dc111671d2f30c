package bluesky

import (
	_ "embed"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"crier/tests/richtext"
)

// reference has texts and the facets that @atproto/api 0.21.0 finds in them.
//
//go:embed testdata/reference.json
var reference []byte

type example struct {
	Text   string           `json:"text"`
	Facets []richtext.Facet `json:"facets"`
}

func examples(t *testing.T) []example {
	t.Helper()
	var out []example
	if err := json.Unmarshal(reference, &out); err != nil || len(out) < 50 {
		t.Fatalf("got %d examples, %v; want 50", len(out), err)
	}
	return out
}

// own returns the facets that the connector finds, in the order of the text.
func own(text string) []richtext.Facet {
	var out []richtext.Facet
	for _, f := range findFacets(text) {
		out = append(out, richtext.Facet{Start: f.Start, End: f.End, Target: f.URI + f.Mention + f.Tag})
	}
	return out
}

func inOrder(facets []richtext.Facet) []richtext.Facet {
	return slices.SortedFunc(slices.Values(facets), func(a, b richtext.Facet) int { return a.Start - b.Start })
}

func TestFindFacets_MatchesReferenceSample(t *testing.T) {
	t.Parallel()
	for _, e := range examples(t) {
		if got := own(e.Text); !slices.Equal(got, inOrder(e.Facets)) {
			t.Errorf("%q:\n got %+v\nwant %+v", e.Text, got, e.Facets)
		}
	}
}

// TestFindFacets_MatchesReference compares the facets of random texts with those that Bluesky's
// reference library finds. The texts contain no link that the library ends differently (see
// links.Find), no handle that it refuses without a lookup, and no tag that it cuts at a joiner.
func TestFindFacets_MatchesReference(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it installs a package of npm")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := writer{rand.New(rand.NewPCG(seed, 0))}
	var texts []string
	for _, e := range examples(t) {
		texts = append(texts, e.Text)
	}
	known := len(texts)
	for range 20_000 {
		texts = append(texts, g.text())
	}
	all := richtext.Facets(t, texts)
	if len(all) != len(texts) {
		t.Fatalf("got the facets of %d texts, want %d", len(all), len(texts))
	}
	found, differ := 0, 0
	for i, want := range all {
		found += len(want)
		if i < known && !slices.Equal(want, examples(t)[i].Facets) {
			t.Errorf("testdata has %+v for %q, the library says %+v", examples(t)[i].Facets, texts[i], want)
		}
		if got := own(texts[i]); !slices.Equal(got, inOrder(want)) {
			if differ++; differ <= 20 {
				t.Errorf("%q:\n got %+v\nwant %+v", texts[i], got, want)
			}
		}
	}
	if differ > 0 || found < len(texts) {
		t.Errorf("%d of %d texts differ, with %d facets", differ, len(texts), found)
	}
}

// writer generates random texts.
type writer struct{ *rand.Rand }

func (g writer) of(words string) string {
	all := strings.Fields(words)
	return all[g.IntN(len(all))]
}

func (g writer) text() string {
	var b strings.Builder
	for i := range 1 + g.IntN(8) {
		if i > 0 {
			b.WriteString([]string{" ", "\n", "  ", "\n\n"}[g.IntN(4)])
		}
		b.WriteString(g.token())
	}
	return b.String()
}

const (
	words = "and see été Straße привет سلام हिन्दी 日本語 한국어 👍 👩‍👩‍👧 🇩🇪 e.g. 3.14 1.2.3 v2.0.1 photo.jpg main.go index.html a.example " +
		"first.last@example.com me@example.org US$5 #1 #2026 # ## - — … (yes) can't “quote” end.The a/b C# @alice @@bob"
	tops  = "com org net de io ai app dev co.uk museum social xyz photography me tv us eu jp in museum travel ac ck bd"
	marks = ". , ; : ! ?"
)

func (g writer) token() string {
	end := ""
	if g.IntN(3) == 0 {
		end = g.of(marks)
	}
	switch g.IntN(8) {
	case 0:
		return g.of("https:// http://") + g.host() + g.path() + end
	case 1:
		return g.host() + g.path() + end
	case 2:
		return "(" + g.host() + ")"
	case 3:
		return "@" + g.of("alice.test bob.bsky.social my-site.com c3po.example.net") + end
	case 4:
		return "#" + g.of("Go 日本語 été हिन्दी 2026go go2026 on-call snake_case 🐈 a") + end
	case 5:
		return "$" + g.of("TSLA aapl BTC a A1 5 toolong") + end
	default:
		return g.of(words)
	}
}

func (g writer) host() string { return g.of("example test sub.domain a1 x") + "." + g.of(tops) }

func (g writer) path() string {
	return []string{"", "", "/", "/foo", "/foo/bar.html", "/a_(b)", "/x?y=1&z=2", "/x#top", "/@user", "/a~b-c%20d", "/1.2.3", "/x;y=z"}[g.IntN(12)]
}
