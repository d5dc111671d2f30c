package nostr

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"crier/tests/relay"
)

func TestHashtags_InText(t *testing.T) {
	t.Parallel()
	many := make([]string, maxHashtags+1)
	for i := range many {
		many[i] = fmt.Sprintf("#tag%d", i)
	}
	for name, tc := range map[string]struct {
		text string
		want string // words separated by spaces
	}{
		"are in lower case, also without ASCII": {text: "about #Go, #日本語 and #ÉTÉ", want: "go 日本語 été"},
		"end before punctuation":                {text: "#one, #two. (#three) “#four”! #five-", want: "one two three four five"},
		"are each named once":                   {text: "#go #GO #Go", want: "go"},
		"may hold digits, hyphens, emoji":       {text: "#2026go #on-call #snake_case #🐈", want: "2026go on-call snake_case 🐈"},
		"may be on any line":                    {text: "first\n#second\n#third", want: "second third"},
		"may begin with a full-width sign":      {text: "＃東京", want: "東京"},
		"are no numbers":                        {text: "we are #1 of #2026", want: ""},
		"are no signs, headings or keycaps":     {text: "# a ## b #️⃣ #!", want: ""},
		"are not inside of words and addresses": {text: "C#sharp a#b https://a.example/#top", want: ""},
		"end at the largest number": {
			text: strings.Join(many, " "),
			want: strings.ReplaceAll(strings.Join(many[:maxHashtags], " "), "#", ""),
		},
		"may have the longest word": {text: "#" + strings.Repeat("é", maxHashtag), want: strings.Repeat("é", maxHashtag)},
		"are no longer than that":   {text: "#" + strings.Repeat("é", maxHashtag+1), want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want [][]string
			for _, word := range strings.Fields(tc.want) {
				want = append(want, []string{"t", word})
			}
			if got := hashtags(tc.text); !reflect.DeepEqual(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// A query for a hashtag finds the note, and the text is unchanged.
func TestCommit_TagsHashtags(t *testing.T) {
	t.Parallel()
	r := relay.Start(t)
	s := session(t, r)
	commit(t, s, prepared(t, s, item("Look: #Cats and #Dogs", photo("a cat"))))
	got := notes(r)
	if len(got) != 1 || !strings.HasPrefix(got[0].Content, "Look: #Cats and #Dogs\n") {
		t.Fatalf("the relay has %+v, want the note", got)
	}
	var tagged []string
	for _, tag := range got[0].Tags {
		if tag[0] == "t" {
			tagged = append(tagged, tag[1])
		}
	}
	if want := []string{"cats", "dogs"}; !slices.Equal(tagged, want) {
		t.Errorf("got the hashtags %q, want %q", tagged, want)
	}
}

// Every tag of a note is defined by a NIP, so nothing internal is published.
func TestCommit_PublishesOnlyTagsDefinedByNIPs(t *testing.T) {
	t.Parallel()
	r := relay.Start(t)
	s := session(t, r)
	root := commit(t, s, prepared(t, s, item("first #one by nostr:"+npub+" in nostr:"+nip19(t, "note", eventID), photo("a cat"))))
	reply := item("second #two")
	reply.Root, reply.Parent = &root, &root
	commit(t, s, prepared(t, s, reply))
	defined := map[string]string{"e": "NIP-10", "p": "NIP-10", "q": "NIP-18", "t": "NIP-24", "imeta": "NIP-92", "nonce": "NIP-13"}
	for _, e := range notes(r) {
		for _, tag := range e.Tags {
			if defined[tag[0]] == "" {
				t.Errorf("got the tag %q, want only tags of a NIP", tag)
			}
		}
		if e.Tag("nonce") == "" {
			t.Errorf("the note %q has no nonce, want one", e.Content)
		}
	}
}
