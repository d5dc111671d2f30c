package bluesky

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// seen is a facet as its text and its target.
type seen struct{ text, target string }

func pieces(text string) []seen {
	var out []seen
	for _, f := range findFacets(text) {
		out = append(out, seen{text: text[f.Start:f.End], target: f.URI + f.Tag + f.Mention})
	}
	return out
}

func link(s string) seen { return seen{text: s, target: s} }

func tag(s string) seen { return seen{text: "#" + s, target: s} }

func mention(s string) seen { return seen{text: "@" + s, target: s} }

// facets is a text and the facets that it should have.
type facets struct {
	text string
	want []seen
}

func checkFacets(t *testing.T, texts map[string]facets) {
	t.Helper()
	for name, tc := range texts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := pieces(tc.text); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("facets of %q:\n got %q\nwant %q", tc.text, got, tc.want)
			}
		})
	}
}

func TestFindFacets_Links(t *testing.T) {
	t.Parallel()
	checkFacets(t, map[string]facets{
		"no facet":                        {text: "just words", want: nil},
		"an empty text":                   {text: "", want: nil},
		"a link":                          {text: "see https://a.example/b?c=d#e now", want: []seen{link("https://a.example/b?c=d#e")}},
		"a link alone":                    {text: "http://a.example", want: []seen{link("http://a.example")}},
		"a link behind emoji":             {text: "👩‍👩‍👧 https://a.example 👍", want: []seen{link("https://a.example")}},
		"a link before a full stop":       {text: "See https://a.example/b.", want: []seen{link("https://a.example/b")}},
		"a link before much punctuation":  {text: "https://a.example/b?!...", want: []seen{link("https://a.example/b")}},
		"a link in brackets":              {text: "(https://a.example/b)", want: []seen{link("https://a.example/b")}},
		"a link with brackets of its own": {text: "(https://a.example/b_(c))", want: []seen{link("https://a.example/b_(c)")}},
		"a link in quotes":                {text: "\"https://a.example\"", want: []seen{link("https://a.example")}},
		"a link in angle brackets":        {text: "<https://a.example>", want: []seen{link("https://a.example")}},
		"a link in Japanese quotes":       {text: "見て「https://a.example/b」。", want: []seen{link("https://a.example/b")}},
		"a scheme in capitals":            {text: "HTTPS://A.example/B", want: []seen{{text: "HTTPS://A.example/B", target: "https://A.example/B"}}},
		"an international host": {
			text: "https://münchen.example/straße?q=ä",
			want: []seen{{text: "https://münchen.example/straße?q=ä", target: "https://xn--mnchen-3ya.example/stra%C3%9Fe?q=%C3%A4"}},
		},
		"an international host with a port": {
			text: "https://例え.テスト:8443/",
			want: []seen{{text: "https://例え.テスト:8443/", target: "https://xn--r8jz45g.xn--zckzah:8443/"}},
		},
		"escapes are kept, percents escaped": {
			text: "https://a.example/%20/100%/%zz",
			want: []seen{{text: "https://a.example/%20/100%/%zz", target: "https://a.example/%20/100%25/%25zz"}},
		},
		"a line's end ends a link": {
			text: "https://a.example\nhttps://b.example",
			want: []seen{link("https://a.example"), link("https://b.example")},
		},
		"no host is no link":                      {text: "https:// http://. https:///x", want: nil},
		"a password is no link":                   {text: "https://me:secret@a.example/", want: nil},
		"another scheme is no link":               {text: "ftp://a.example javascript:alert(1)", want: nil},
		"a bare domain is a link":                 {text: "plain example.com/foo, yes", want: []seen{{text: "example.com/foo", target: "https://example.com/foo"}}},
		"a bare domain without a known top level": {text: "a.example photo.jpg 1.2.3", want: nil},
		"an e-mail address is no link":            {text: "john.me@example.com", want: nil},
		"a link in a tag belongs to the tag":      {text: "#a/(example.com)", want: []seen{tag("a/(example.com")}},
		"a comma of another script":               {text: "https://a.example/x، b", want: []seen{link("https://a.example/x")}},
		"a scheme inside a word is no link":       {text: "xhttps://a.example", want: nil},
		"an endless link stays plain":             {text: "https://a.example/" + strings.Repeat("a", 2000), want: nil},
		"all kinds together":                      {text: "#a @b.test https://c.example", want: []seen{tag("a"), mention("b.test"), link("https://c.example")}},
	})
}

func TestFindFacets_Mentions(t *testing.T) {
	t.Parallel()
	checkFacets(t, map[string]facets{
		"a mention":                          {text: "hi @alice.test!", want: []seen{mention("alice.test")}},
		"a mention before a full stop":       {text: "by @alice.test.", want: []seen{mention("alice.test")}},
		"a mention in brackets":              {text: "(@alice.test)", want: []seen{mention("alice.test")}},
		"a mention before Japanese":          {text: "@alice.bsky.socialさん", want: []seen{mention("alice.bsky.social")}},
		"two mentions":                       {text: "@alice.test, @bob-2.example.com", want: []seen{mention("alice.test"), mention("bob-2.example.com")}},
		"an e-mail address is no mention":    {text: "mail me@alice.test", want: nil},
		"a name without a dot is no mention": {text: "@alice @@bob", want: nil},
		"another network is no mention":      {text: "@alice@mastodon.example @al.ice@x.example", want: nil},
		"an underscore is no mention":        {text: "@alice.te_st", want: nil},
		"a hyphen at the edge is no mention": {text: "@-alice.test", want: nil},
		"a mention in isolates":              {text: "hi \u2068@alice.test\u2069!", want: []seen{mention("alice.test")}},
		"a mention copied from a profile":    {text: "hi @\u202aalice.test\u202c!", want: []seen{{text: "@\u202aalice.test", target: "alice.test"}}},
		"a mention with characters of no width": {
			text: "@alice\u200b.te\u00adst\ufeff, @\u2060bob.test\u200d.", want: []seen{{text: "@alice\u200b.te\u00adst", target: "alice.test"}, {text: "@\u2060bob.test", target: "bob.test"}},
		},
		"a hidden character does not split an e-mail address": {text: "me\u200b@alice.test", want: nil},
	})
}

func TestFindFacets_Tags(t *testing.T) {
	t.Parallel()
	checkFacets(t, map[string]facets{
		"a number is no top level":           {text: "@1.2.3.4", want: nil},
		"a tag":                              {text: "about #Go and #日本語", want: []seen{tag("Go"), tag("日本語")}},
		"a tag before punctuation":           {text: "#one, #two. #three!", want: []seen{tag("one"), tag("two"), tag("three")}},
		"a tag with a full-width sign":       {text: "＃猫", want: []seen{{text: "＃猫", target: "猫"}}},
		"a tag of an emoji":                  {text: "#🐈‍⬛", want: []seen{tag("🐈‍⬛")}},
		"a tag with digits":                  {text: "#2026go #go2026", want: []seen{tag("2026go"), tag("go2026")}},
		"a tag with a hyphen":                {text: "#on-call", want: []seen{tag("on-call")}},
		"a number is no tag":                 {text: "#1 #2026 #!", want: nil},
		"a sign alone is no tag":             {text: "# ## #", want: nil},
		"a keycap is no tag":                 {text: "#️⃣ one", want: nil},
		"a tag in isolates":                  {text: "\u2068#Go\u2069 #Go\u202c", want: []seen{tag("Go"), tag("Go")}},
		"a tag before marks of any script":   {text: "#سلام، #हिन्दी। #日本、次 #中文）", want: []seen{tag("سلام"), tag("हिन्दी"), tag("日本"), tag("中文")}},
		"a tag after quotes of any kind":     {text: "„#one“ «#two» 《#three》 ⟨#four⟩", want: []seen{tag("one"), tag("two"), tag("three"), tag("four")}},
		"a tag inside a word is no tag":      {text: "C#sharp a#b", want: nil},
		"a fragment is no tag":               {text: "https://a.example/#top", want: []seen{link("https://a.example/#top")}},
		"a tag of 64 characters":             {text: "#" + strings.Repeat("é", 64), want: []seen{tag(strings.Repeat("é", 64))}},
		"a tag of 65 characters stays plain": {text: "#" + strings.Repeat("é", 65), want: nil},
	})
}

func TestFindFacets_Cashtags(t *testing.T) {
	t.Parallel()
	checkFacets(t, map[string]facets{
		"a cashtag is in capitals":         {text: "($tsla) and $AAPL.", want: []seen{{text: "$tsla", target: "$TSLA"}, {text: "$AAPL", target: "$AAPL"}}},
		"a price is no cashtag":            {text: "$5 $1a US$ a$b $$ $", want: nil},
		"a longer word is no cashtag":      {text: "$variable $a_b $a-b", want: nil},
		"a cashtag before another's comma": {text: "$BTC، $ETH”", want: []seen{{text: "$ETH", target: "$ETH"}}},
	})
}

func TestFindFacets_OffsetsCountBytes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]int{
		"https://a.example":                   {0, 17},
		"é https://a.example":                 {3, 20},
		"日本 https://a.example":                {7, 24},
		"👍 https://a.example.":                {5, 22},
		"👩‍👩‍👧 #tag":                          {19, 23},
		"\n\t #tag ":                          {3, 7},
		"e\u0301 @alice.test yes":             {4, 15},
		"日 @\u202aalice\u200b.test\u202c yes": {4, 21},
	} {
		got := findFacets(text)
		if len(got) != 1 || got[0].Start != want[0] || got[0].End != want[1] {
			t.Errorf("%q: got %+v, want one facet at %v", text, got, want)
		}
	}
}

func FuzzFacets(f *testing.F) {
	f.Add("see https://a.example, @alice.test and #tag")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > maxBytes {
			t.Skip("Prepare refuses a longer text")
		}
		end := 0
		for _, f := range findFacets(text) {
			if f.Start < end || f.End <= f.Start || f.End > len(text) {
				t.Fatalf("got %+v, want a range after %d within %d bytes", f, end, len(text))
			}
			end = f.End
			kinds := 0
			for _, target := range []string{f.URI, f.Tag, f.Mention} {
				if target != "" {
					kinds++
				}
			}
			if kinds != 1 || f.DID != "" {
				t.Fatalf("got %+v, want exactly one target", f)
			}
			if piece := text[f.Start:f.End]; !utf8.ValidString(piece) || strings.ContainsAny(piece, " \n\t") {
				t.Fatalf("got %+v with the text %q, want valid UTF-8 without spaces", f, piece)
			}
			if strings.ContainsFunc(f.URI, func(r rune) bool { return r <= ' ' || r > '~' }) || len(f.URI) > maxURI {
				t.Fatalf("got %q, want a URI", f.URI)
			}
			if f.URI != "" && !strings.HasPrefix(f.URI, "http://") && !strings.HasPrefix(f.URI, "https://") {
				t.Fatalf("got %q, want http or https", f.URI)
			}
		}
	})
}
