package file_test

import (
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"crier/publishing"
	"crier/publishing/file"
)

func TestName(t *testing.T) {
	t.Parallel()
	const bytes = 96
	for in, want := range map[string]string{
		"photo.png": "photo", "../../etc/passwd": "passwd", `C:\x\My cat.jpg`: "My-cat", "": "file", "...": "file",
		"png": "png", "<script>.png": "script", "a - b, c.png": "a-b-c", "version 2.0": "version-2-0",
		strings.Repeat("a", 300) + ".png": strings.Repeat("a", bytes),
		// Letters of every script, in one spelling.
		"Müller.png": "Müller", "Mu\u0308ller.png": "Müller", "日本.png": "日本", "ünïcode.png": "ünïcode",
		"Фото (1).jpg": "Фото-1", "صورة ٢.jpg": "صورة-٢", "चित्र.png": "चित्र", "사진.png": "사진", "ภาพถ่าย.png": "ภาพถ่าย",
		"\u1112\u1161\u11ab.png": "한", "スクリーンショット 2026.png": "スクリーンショット-2026",
		"می\u200cخواهم.png": "می\u200cخواهم", "👩\u200d👧 🎉.gif": "👩\u200d👧-🎉", "50 €.png": "50-€", "l·l.png": "l·l",
		"d’été – août.png": "d-été-août", "a\u3000b.png": "a-b",
		// Characters that have no place in a name.
		"a\u202egnp.exe.png": "agnp-exe", "a\r\nSet-Cookie: x.png": "aSet-Cookie-x", "a\x00b\x7f.png": "ab", "a\ufeffb\u2066.png": "ab",
		"a\"b;c%2f.png": "a-b-c-2f", "a\xffb.png": "ab", "a\ufffdb.png": "ab", "\u0301a.png": "a", "\u200d.png": "file",
		"\u202e.png": "file", "..": "file", ". .png": "file", "-.png": "file", "a\ue000\U000e0041.png": "a",
		// Names that Windows treats as devices.
		"con.png": "file", "COM1.jpg": "file", "lpt².gif": "file", "console.png": "console", "COM10.png": "COM10",
		// Cut between user-perceived characters, never inside a rune.
		strings.Repeat("日", 40) + ".png":         strings.Repeat("日", 32),
		strings.Repeat("a", 95) + "é.png":        strings.Repeat("a", 95),
		strings.Repeat("a", 90) + "👩\u200d👧.png": strings.Repeat("a", 90),
		"a\u1fefb.png": "a-b", // NFC turns it into the ASCII grave accent
		strings.Repeat("a", 94) + "q\u0323\u0307x.png": strings.Repeat("a", 94),
		strings.Repeat("a", 95) + " " + "b.png":        strings.Repeat("a", 95),
		// This is one character.
		"q" + strings.Repeat("\u0307", 100) + ".png":        norm.NFC.String("q" + strings.Repeat("\u0307", 46)),
		strings.Repeat("क\u094d", 30) + ".png":              strings.Repeat("क\u094d", 16),
		strings.Repeat("a", 93) + "\u1112\u1161\u11ab" + "": strings.Repeat("a", 93) + "한",
	} {
		if got := file.Name(in); got != want {
			t.Errorf("Name(%+q) is %+q, want %+q", in, got, want)
		}
	}
}

// TestName_IsSafe checks that a name is safe in a path, a header and a file system, and that Name
// returns it unchanged.
func TestName_IsSafe(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		in := strings.Join(rapid.SliceOf(rapid.OneOf(
			rapid.String(), rapid.StringOf(rapid.Rune()),
			rapid.SampledFrom([]string{"\xff", "\r\n", "\u202e", "\u200d", "\u0301", "/", `\`, "..", ".png", "CON", "%2f", "\u1112", "\u1161"}),
		)).Draw(rt, "parts"), "")
		name := file.Name(in)
		switch {
		case name == "" || len(name) > 96 || !utf8.ValidString(name) || !norm.NFC.IsNormalString(name):
			rt.Fatalf("Name(%+q) is %+q, want 1 to 96 bytes of NFC", in, name)
		case strings.ContainsAny(name, "/\\.\"'<>:|?*%;&#= "), strings.ContainsFunc(name, unicode.IsControl),
			strings.ContainsFunc(name, func(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }):
			rt.Fatalf("Name(%+q) is %+q, which has a character that is not safe", in, name)
		case file.Name(name+".png") != name:
			rt.Fatalf("Name(%+q) is %+q, and its own name is %+q", in, name, file.Name(name+".png"))
		}
		m := publishing.Medium{Key: "k", Name: name, Ext: "png"}
		u, err := url.Parse("https://crier.example" + m.Path())
		if err != nil || u.Path != "/files/k/"+name+".png" || strings.ContainsFunc(m.Path(), func(r rune) bool { return r > '~' || r <= ' ' }) {
			rt.Fatalf("%+q has the path %q: %v", name, m.Path(), err)
		}
	})
}
