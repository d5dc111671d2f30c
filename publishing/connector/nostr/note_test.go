package nostr

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"crier/publishing/connector"
	"crier/tests/relay"
)

func testSigner(t *testing.T) signer {
	t.Helper()
	key, err := parseKey(nsec)
	if err != nil {
		t.Fatal(err)
	}
	return signer{key: key, pub: publicKey(key)}
}

func photo(alt string) connector.Media {
	return connector.Media{
		ContentType: "image/png", Size: 1234, Width: 640, Height: 480, Alt: alt, Name: "photo.png",
		URL: "https://crier.example/files/k/photo.png",
	}
}

func TestNote_MediaAreLinesAndTags(t *testing.T) {
	t.Parallel()
	film := connector.Media{ContentType: "video/mp4", Video: true, URL: "https://crier.example/files/k/film.mp4"}
	e, err := testSigner(t).note(item("Look", photo("A \"cat\" & a dog"), film))
	if err != nil {
		t.Fatal(err)
	}
	if want := "Look\n\nhttps://crier.example/files/k/photo.png\nhttps://crier.example/files/k/film.mp4"; e.Content != want {
		t.Errorf("got the content %q, want %q", e.Content, want)
	}
	want := [][]string{
		{"imeta", "url https://crier.example/files/k/photo.png", "m image/png", "alt A \"cat\" & a dog", "dim 640x480", "size 1234"},
		{"imeta", "url https://crier.example/files/k/film.mp4", "m video/mp4"},
	}
	if !reflect.DeepEqual([][]string(e.Tags[:2]), want) || e.Tags[2][0] != "nonce" || len(e.Tags) != 3 {
		t.Errorf("got the tags %q, want %q and a nonce", e.Tags, want)
	}
	if got := content("", []connector.Media{film}); got != film.URL {
		t.Errorf("without a text: got %q, want the address", got)
	}
	film.URL = ""
	_, err = testSigner(t).note(item("Look", film))
	wantKind(t, err, connector.KindOperator)
}

func TestNote_MarksThreadOfThree(t *testing.T) {
	t.Parallel()
	r := relay.Start(t)
	s := session(t, r)
	var refs []connector.Ref
	for i := range 3 {
		it := item("part")
		if i > 0 {
			it.Root, it.Parent = &refs[0], &refs[i-1]
		}
		refs = append(refs, commit(t, s, prepared(t, s, it)))
	}
	me := s.Account.ID
	want := [][][]string{
		{},
		{{"e", refs[0].ID, r.URL(), "root", me}, {"p", me}},
		{{"e", refs[0].ID, r.URL(), "root", me}, {"e", refs[1].ID, r.URL(), "reply", me}, {"p", me}},
	}
	for i, e := range notes(r) {
		if e.ID != refs[i].ID || !reflect.DeepEqual([][]string(e.Tags[:len(e.Tags)-1]), want[i]) {
			t.Errorf("part %d: got %s with the tags %q, want %s with %q", i, e.ID, e.Tags, refs[i].ID, want[i])
		}
	}
}

// Clients order the parts of a thread by their seconds.
func TestNote_SecondsIncreaseByPart(t *testing.T) {
	t.Parallel()
	r := relay.Start(t)
	s := session(t, r)
	var refs []connector.Ref
	for i := range 5 {
		// Every other part is too large for the handle and is built a second time.
		it := item(strings.Repeat("part ", 1+4_000*(i%2)))
		it.Due = it.Due.Add(time.Duration(i) * time.Millisecond)
		it.CreatedAt = it.Due
		if i == 4 {
			// The last part has a delay.
			it.Due, it.CreatedAt = it.Due.Add(time.Minute), it.CreatedAt.Add(time.Minute)
		}
		if i > 0 {
			it.Root, it.Parent = &refs[0], &refs[i-1]
		}
		it = prepared(t, s, it)
		first, again := commit(t, s, it), commit(t, s, it)
		if v := wantOutcome(t, s, it, connector.Published); first.ID != again.ID || v.Ref.ID != first.ID {
			t.Errorf("part %d: got %s, %s and %s; want one event", i, first.ID, again.ID, v.Ref.ID)
		}
		refs = append(refs, first)
	}
	begin := item("").CreatedAt.Unix()
	var got []int64
	for _, e := range notes(r) {
		got = append(got, e.CreatedAt-begin)
	}
	if want := []int64{0, 1, 2, 3, 60}; !slices.Equal(got, want) {
		t.Errorf("got the seconds %v, want %v", got, want)
	}
}

func TestCommit_InSameSecond(t *testing.T) {
	t.Parallel()
	r := relay.Start(t)
	s := session(t, r)
	first := item("hello")
	second := first
	renew(&second.Publication)
	first, second = prepared(t, s, first), prepared(t, s, second)
	t.Run("two publications are two events", func(t *testing.T) {
		if commit(t, s, first).ID == commit(t, s, second).ID || len(notes(r)) != 2 {
			t.Errorf("the relay has %+v, want 2 notes", notes(r))
		}
	})
	t.Run("one publication sent twice is one event", func(t *testing.T) {
		once, again := commit(t, s, first), commit(t, s, first)
		if once.ID != again.ID || len(notes(r)) != 2 {
			t.Errorf("the relay has %+v, want 2 notes", notes(r))
		}
	})
	t.Run("the internal identifier is not published", func(t *testing.T) {
		raw, err := json.Marshal(notes(r))
		if err != nil || bytes.Contains(raw, []byte(first.Publication.String())) {
			t.Errorf("got %s, %v; want no internal identifier", raw, err)
		}
	})
}

func TestPrepare_IsDeterministic(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"small": "hello <>&", "large": strings.Repeat("é<", 40_000)} {
		t.Run("a "+name+" note is the same each time", func(t *testing.T) {
			t.Parallel()
			who := testSigner(t)
			it := item(text, photo("a"))
			one, err1 := who.prepare(it)
			two, err2 := who.prepare(it)
			if err1 != nil || err2 != nil || !bytes.Equal(one, two) || len(one) > maxHandle {
				t.Fatalf("got handles of %d and %d bytes, %v, %v; want the same, of at most %d", len(one), len(two), err1, err2, maxHandle)
			}
			it.Handle = one
			a, err1 := who.prepared(it)
			b, err2 := who.note(it)
			if err1 != nil || err2 != nil || !reflect.DeepEqual(a, b) || !a.valid() {
				t.Errorf("got %+v, %v, want the valid event %+v, %v", a, err1, b, err2)
			}
		})
	}
	t.Run("a large note that was changed is not sent", func(t *testing.T) {
		t.Parallel()
		r := relay.Start(t)
		s := session(t, r)
		it := prepared(t, s, item(strings.Repeat("x", 20_000)))
		it.Text += "y"
		_, err := New().Commit(t.Context(), s, it)
		wantKind(t, err, connector.KindContent)
		if r.Received() != 0 {
			t.Error("the event was sent, want it refused before")
		}
	})
	t.Run("a post that was never prepared is not sent", func(t *testing.T) {
		t.Parallel()
		r := relay.Start(t)
		_, err := New().Commit(t.Context(), session(t, r), item("x"))
		wantKind(t, err, connector.KindOperator)
		if r.Received() != 0 {
			t.Error("the event was sent, want it refused before")
		}
	})
}

func TestCommit_LongestNoteIsFound(t *testing.T) {
	t.Parallel()
	r := relay.Start(t)
	s := session(t, r)
	it := prepared(t, s, item(strings.Repeat("😀", maxLength)))
	ref := commit(t, s, it)
	if v := wantOutcome(t, s, it, connector.Published); v.Ref.ID != ref.ID {
		t.Errorf("got %s, want %s", v.Ref.ID, ref.ID)
	}
}

func TestValidate_ChecksWholeNote(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		part connector.DraftPart
		want string
	}{
		"a blank text is refused": {part: connector.DraftPart{Text: " \n\u200b"}, want: "empty"},
		"addresses that do not fit are refused": {
			part: connector.DraftPart{Text: strings.Repeat("x", maxLength), Media: []connector.Media{photo("")}}, want: "together",
		},
		"a control character is refused":           {part: connector.DraftPart{Text: "a\x01b"}, want: "control"},
		"a control character in an alt is refused": {part: connector.DraftPart{Text: "a", Media: []connector.Media{photo("\x00")}}, want: "control"},
		"invalid UTF-8 is refused":                 {part: connector.DraftPart{Text: "a\xff"}, want: "UTF-8"},
		"a text that is too long is reported once": {
			part: connector.DraftPart{Text: strings.Repeat("x", maxLength+1), Media: []connector.Media{photo("")}}, want: "too long",
		},
		"line breaks, tabs and emoji are accepted": {part: connector.DraftPart{Text: "a\r\n\tb 👩‍🚀", Media: []connector.Media{photo("x")}}, want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := New().Validate(connector.Draft{Parts: []connector.DraftPart{tc.part}})
			if tc.want == "" {
				if len(got) != 0 {
					t.Errorf("got the problems %+v, want none", got)
				}
			} else if len(got) != 1 || !strings.Contains(got[0].Message, tc.want) {
				t.Errorf("got the problems %+v, want one with %q", got, tc.want)
			}
		})
	}
}

func TestRef_OmitsRelaysWithTokens(t *testing.T) {
	t.Parallel()
	e, err := testSigner(t).note(item("x"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := ref(e, []string{"wss://paid.example/?token=s3cret", "wss://open.example"})
	if err != nil || strings.Contains(string(got.Data)+host("wss://paid.example/?token=s3cret"), "s3cret") {
		t.Errorf("got %+v, %v; want no token", got, err)
	}
	if relays := parseRef(got, "").Relays; !slices.Equal(relays, []string{"wss://open.example"}) {
		t.Errorf("got the relays %q, want only the one without a token", relays)
	}
	name, data, err := decodeBech32(strings.TrimPrefix(got.URL, "https://njump.me/"))
	if err != nil || name != "nevent" || bytes.Contains(data, []byte("s3cret")) {
		t.Errorf("got the %s %q, %v; want a nevent without the token", name, data, err)
	}
	if !bytes.Contains(data, []byte("\x01\x12wss://open.example")) || !bytes.HasSuffix(data, []byte{3, 4, 0, 0, 0, 1}) {
		t.Errorf("got the nevent %q, want the open relay and kind 1", data)
	}
	if words := cleanReason("a\x07b \n c" + strings.Repeat("x", 500)); !strings.HasPrefix(words, "ab c") || len([]rune(words)) != 200 {
		t.Errorf("got %q, want a cut line", words)
	}
}
