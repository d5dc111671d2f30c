package bluesky

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// seen is a facet as text and target.
type seen struct{ text, target string }

func pieces(text string) []seen {
	var out []seen
	for _, f := range findFacets(text) {
		out = append(out, seen{text[f.Start:f.End], f.URI + f.Tag + f.Mention})
	}
	return out
}

func link(s string) seen    { return seen{s, s} }
func tag(s string) seen     { return seen{"#" + s, s} }
func mention(s string) seen { return seen{"@" + s, s} }

func TestFindFacets_Kinds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		want []seen
	}{
		"no facet":                           {"just words", nil},
		"an empty text":                      {"", nil},
		"a link":                             {"see https://a.example/b?c=d#e now", []seen{link("https://a.example/b?c=d#e")}},
		"a link alone":                       {"http://a.example", []seen{link("http://a.example")}},
		"a link behind emoji":                {"👩‍👩‍👧 https://a.example 👍", []seen{link("https://a.example")}},
		"a link before a full stop":          {"See https://a.example/b.", []seen{link("https://a.example/b")}},
		"a link before much punctuation":     {"https://a.example/b?!...", []seen{link("https://a.example/b")}},
		"a link in brackets":                 {"(https://a.example/b)", []seen{link("https://a.example/b")}},
		"a link with brackets of its own":    {"(https://a.example/b_(c))", []seen{link("https://a.example/b_(c)")}},
		"a link in quotes":                   {"\"https://a.example\"", []seen{link("https://a.example")}},
		"a link in angle brackets":           {"<https://a.example>", []seen{link("https://a.example")}},
		"a link in Japanese quotes":          {"見て「https://a.example/b」。", []seen{link("https://a.example/b")}},
		"a scheme in capitals":               {"HTTPS://A.example/B", []seen{{"HTTPS://A.example/B", "https://A.example/B"}}},
		"an international host":              {"https://münchen.example/straße?q=ä", []seen{{"https://münchen.example/straße?q=ä", "https://xn--mnchen-3ya.example/stra%C3%9Fe?q=%C3%A4"}}},
		"an international host with a port":  {"https://例え.テスト:8443/", []seen{{"https://例え.テスト:8443/", "https://xn--r8jz45g.xn--zckzah:8443/"}}},
		"escapes are kept, percents escaped": {"https://a.example/%20/100%/%zz", []seen{{"https://a.example/%20/100%/%zz", "https://a.example/%20/100%25/%25zz"}}},
		"a line's end ends a link":           {"https://a.example\nhttps://b.example", []seen{link("https://a.example"), link("https://b.example")}},
		"no host is no link":                 {"https:// http://. https:///x", nil},
		"a password is no link":              {"https://me:secret@a.example/", nil},
		"another scheme is no link":          {"ftp://a.example javascript:alert(1)", nil},
		"a bare domain is no link":           {"a.example", nil},
		"a scheme inside a word is no link":  {"xhttps://a.example", nil},
		"an endless link stays plain":        {"https://a.example/" + strings.Repeat("a", 2000), nil},
		"a mention":                          {"hi @alice.test!", []seen{mention("alice.test")}},
		"a mention before a full stop":       {"by @alice.test.", []seen{mention("alice.test")}},
		"a mention in brackets":              {"(@alice.test)", []seen{mention("alice.test")}},
		"a mention before Japanese":          {"@alice.bsky.socialさん", []seen{mention("alice.bsky.social")}},
		"two mentions":                       {"@alice.test, @bob-2.example.com", []seen{mention("alice.test"), mention("bob-2.example.com")}},
		"an e-mail address is no mention":    {"mail me@alice.test", nil},
		"a name without a dot is no mention": {"@alice @@bob", nil},
		"another network is no mention":      {"@alice@mastodon.example @al.ice@x.example", nil},
		"an underscore is no mention":        {"@alice.te_st", nil},
		"a number is no top level":           {"@1.2.3.4", nil},
		"a hyphen at the edge is no mention": {"@-alice.test", nil},
		"a tag":                              {"about #Go and #日本語", []seen{tag("Go"), tag("日本語")}},
		"a tag before punctuation":           {"#one, #two. #three!", []seen{tag("one"), tag("two"), tag("three")}},
		"a tag with a full-width sign":       {"＃猫", []seen{{"＃猫", "猫"}}},
		"a tag of an emoji":                  {"#🐈‍⬛", []seen{tag("🐈‍⬛")}},
		"a tag with digits":                  {"#2026go #go2026", []seen{tag("2026go"), tag("go2026")}},
		"a tag with a hyphen":                {"#on-call", []seen{tag("on-call")}},
		"a number is no tag":                 {"#1 #2026 #!", nil},
		"a sign alone is no tag":             {"# ## #", nil},
		"a keycap is no tag":                 {"#️⃣ one", nil},
		"a tag inside a word is no tag":      {"C#sharp a#b", nil},
		"a fragment is no tag":               {"https://a.example/#top", []seen{link("https://a.example/#top")}},
		"a tag of 64 characters":             {"#" + strings.Repeat("é", 64), []seen{tag(strings.Repeat("é", 64))}},
		"a tag of 65 characters stays plain": {"#" + strings.Repeat("é", 65), nil},
		"all kinds together":                 {"#a @b.test https://c.example", []seen{tag("a"), mention("b.test"), link("https://c.example")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := pieces(tc.text); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("facets of %q:\n got %q\nwant %q", tc.text, got, tc.want)
			}
		})
	}
}

func TestFindFacets_OffsetsCountBytes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]int{
		"https://a.example":       {0, 17},
		"é https://a.example":     {3, 20},
		"日本 https://a.example":    {7, 24},
		"👍 https://a.example.":    {5, 22},
		"👩‍👩‍👧 #tag":              {19, 23},
		"\n\t #tag ":              {3, 7},
		"e\u0301 @alice.test yes": {4, 15},
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
