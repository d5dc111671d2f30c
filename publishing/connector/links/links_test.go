package links_test

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"crier/publishing/connector/links"
)

// marked returns the text with ⸠ before and ⸡ after each link, like the test data of UTS #58.
func marked(text string) string {
	var b strings.Builder
	last := 0
	for _, l := range links.Find(text) {
		b.WriteString(text[last:l.Start] + "⸠" + text[l.Start:l.End] + "⸡")
		last = l.End
	}
	return b.String() + text[last:]
}

func checkMarked(t *testing.T, texts []string) {
	t.Helper()
	for _, want := range texts {
		text := strings.NewReplacer("⸠", "", "⸡", "").Replace(want)
		if got := marked(text); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestFind_EndsByUnicode(t *testing.T) {
	t.Parallel()
	checkMarked(t, []string{
		"⸠https://a.example/x⸡، b", "⸠https://a.example/x⸡। b", "⸠https://a.example/x⸡؟", "⸠https://a.example/x⸡。", "⸠https://a.example/x⸡．",
		"⸠https://a.example/x⸡۔", "⸠https://a.example/x⸡；次", "⸠https://a.example/x⸡。次の文", "⸠https://a.example/x⸡｡", "⸠https://a.example/x⸡។",
		"⸠https://a.example/x⸡… ⸠https://a.example/x⸡‽", "⸠https://a.example/x⸡?!...", "⸠https://a.example/x⸡?", "⸠https://a.example/x?y=1⸡?",
		"“⸠https://a.example/x⸡”, „⸠https://a.example/x⸡“, «⸠https://a.example/x⸡», »⸠https://a.example/x⸡«, ‹⸠https://a.example/x⸡›",
		"‘⸠https://a.example/x⸡’ '⸠https://a.example/x⸡' \"⸠https://a.example/x⸡\" 「⸠https://a.example/x⸡」 『⸠https://a.example/x⸡』。",
		"（⸠https://a.example/x⸡） [⸠https://a.example/x⸡] 【⸠https://a.example/x⸡】 ⟨⸠https://a.example/x⸡⟩ ﴾⸠https://a.example/x⸡﴿",
		"(⸠https://a.example/b_(c)⸡) ⸠https://a.example/(b)_[c]⸡] ⸠https://a.example/(b⸡]c ⸠https://a.example/b⸡(",
		"⸠https://a.example/日本（語）⸡） ⸠https://a.example/日本⸡）",
		"⸠https://ja.wikipedia.org/wiki/モーニング娘⸡。 ⸠https://ja.wikipedia.org/wiki/けいおん！の登場人物⸡",
		"⸠https://en.wikipedia.org/wiki/Levi’s⸡ ⸠https://en.wikipedia.org/wiki/Lista_d'articlos⸡'",
		"⸠https://ar.wikipedia.org/wiki/ويكيبيديا:قائمة⸡، ⸠https://bo.wikipedia.org/wiki/སྐད་རིགས⸡།",
		"\u2068⸠https://a.example/x⸡\u2069 \u202a⸠https://a.example/x⸡\u202c ⸠https://a.example/x⸡\u200b",
		"<⸠https://a.example/x⸡> `⸠https://a.example/x⸡` {\"url\":\"⸠https://a.example/x⸡\",\"b\":1}",
		"⸠HTTPS://A.example/B⸡ ⸠http://foo.example.com⸡. ⸠http://[::1]:80/x⸡ xhttps://a.example https:// http://.",
		"見て⸠https://a.example/x⸡、次 ⸠https://a.example⸡。次 ⸠https://例え.テスト/x⸡。",
	})
}

// TestFind_EndsBeforeEveryMark puts each Unicode mark after a link.
func TestFind_EndsBeforeEveryMark(t *testing.T) {
	t.Parallel()
	tested := 0
	for r := rune(1); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) || !unicode.In(r, unicode.Terminal_Punctuation, unicode.Sentence_Terminal, unicode.Quotation_Mark,
			unicode.Pi, unicode.Pf, unicode.Pe, unicode.White_Space, unicode.Bidi_Control) {
			continue
		}
		tested++
		for _, link := range []string{"https://a.example/x", "https://a.example/é", "https://a.example", "example.com", "example.com/x"} {
			for _, after := range []string{"", " b", string(r) + " "} {
				text := "(" + link + string(r) + after
				got := links.Find(text)
				if len(got) != 1 || text[got[0].Start:got[0].End] != link {
					t.Errorf("%+q: got %+v, want %s", text, got, link)
				}
			}
		}
	}
	if tested < 400 {
		t.Errorf("tested %d characters, want all marks", tested)
	}
}

func TestFind_KeepsPairsOfBrackets(t *testing.T) {
	t.Parallel()
	checkMarked(t, []string{"⸠https://a.example/é⦅x⦆⸡⦆", "⸠https://a.example/é〔x〕⸡〕", "⸠https://a.example/x(y[z])⸡)", "⸠https://a.example/é｢x｣⸡｣"})
}

func TestFind_BareDomains(t *testing.T) {
	t.Parallel()
	checkMarked(t, []string{
		"plain ⸠example.com/foo⸡", "⸠example.com⸡", "See ⸠example.com⸡. And ⸠my-site.co.uk/a?b#c⸡, (⸠example.org⸡)", "⸠example.com:8080/x⸡ ⸠example.com⸡: yes",
		"⸠example.com?q=1⸡ ⸠example.com#top⸡ ⸠9gag.com⸡ ⸠x.ai⸡ ⸠sub.domain.example.com⸡! “⸠example.com⸡”",
		"⸠münchen.de/straße⸡ ⸠пример.рф⸡ ⸠xn--mnchen-3ya.de⸡ ⸠example.xn--p1ai⸡", "⸠example.com⸡を見て", "見て、⸠example.com⸡。",
		"⸠example.com.ck⸡ ⸠example.com/@user⸡ ⸠example.com/x⸡) l'⸠example.com⸡",
		"me@example.com first.last@example.com john.me@example.com john.me+tag@example.com @alice.bsky.social #example.com",
		"photo.jpg main.go index.html 1.2.3 v1.2.3 3.14 e.g. i.e. a.example b.test localhost end.The done.In Example.COM",
		"a/example.com x:example.com .example.com example..com -example.com example-.com example.com- example.com_x example.coma example.comé foo_example.com",
	})
}

func TestFind_AddressHasScheme(t *testing.T) {
	t.Parallel()
	var got []string
	for _, l := range links.Find("example.com/foo HTTP://a.example") {
		got = append(got, l.Address)
	}
	if want := []string{"https://example.com/foo", "HTTP://a.example"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestFind_IsLinear measures texts that would take quadratic time if the search kept starting over.
func TestFind_IsLinear(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{"xhttps://a", "'a.de", "a.de ", "https://(", "(", "a.", "example.com!", "https://a.example/é)", "h"} {
		text := strings.Repeat(piece, 100_000/len(piece))
		start := time.Now()
		links.Find(text)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%q: %s for %d bytes", piece, took, len(text))
		}
	}
}

func FuzzFind(f *testing.F) {
	f.Add("see https://a.example/x、b (example.com/foo) me@example.com")
	f.Fuzz(func(t *testing.T, text string) {
		end := 0
		for _, l := range links.Find(text) {
			if l.Start < end || l.End <= l.Start || l.End > len(text) || !strings.HasSuffix(l.Address, text[l.Start:l.End]) {
				t.Fatalf("%q: got %+v after byte %d", text, l, end)
			}
			if strings.ContainsFunc(l.Address, unicode.IsSpace) || !utf8.ValidString(l.Address) {
				t.Fatalf("%q: got %+v, want no space and valid UTF-8", text, l)
			}
			end = l.End
		}
	})
}
