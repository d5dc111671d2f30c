package file

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
	"golang.org/x/text/unicode/norm"

	"crier/platform/text"
)

const (
	// maxName is the maximum length of a file name in bytes, including its extension.
	maxName = 100
	// extension is the length in bytes of a stored file's extension, including the dot.
	extension = len(".png")
	// unnamed is the file name that is used if no part of the original name can be kept.
	unnamed = "file"
)

// Name returns a file name without an extension, for a file's URL and for downloads. It drops the
// folder and the extension from the original name. It keeps letters, digits and symbols in any
// script, in NFC. Spaces and punctuation become dashes. Control and formatting characters are
// removed. Example: `C:\x\My cat.jpg` becomes My-cat
//
// Together with an extension, the name has at most 100 bytes. A longer name is truncated between
// user-perceived characters. If nothing is left of the name, or if the name is reserved for a
// Windows device, Name returns "file".
func Name(original string) string {
	original = norm.NFC.String(strings.ToValidUTF8(strings.ReplaceAll(original, `\`, "/"), ""))
	name := norm.NFC.String(trimName(strings.Map(nameRune, stem(path.Base(original)))))
	name = trimName(cutName(dashes(name), maxName-extension))
	if name == "" || isDevice(name) {
		return unnamed
	}
	return name
}

// stem returns a file name without its extension. The text after the last dot counts as an
// extension only if it is short, is ASCII and contains a letter, so "version 2.0" has no extension.
func stem(base string) string {
	ext := strings.TrimPrefix(path.Ext(base), ".")
	isExt := len(ext) <= 5 && strings.ContainsFunc(ext, unicode.IsLetter)
	if ext == "" || !isExt || !isASCII(ext) {
		return base
	}
	return strings.TrimSuffix(base, "."+ext)
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}

const (
	zeroWidthNonJoiner = '\u200c' // between letters in Persian and Indic scripts
	zeroWidthJoiner    = '\u200d' // also inside emoji
)

func isJoiner(r rune) bool { return r == zeroWidthJoiner || r == zeroWidthNonJoiner }

// nameRune returns the rune itself, a dash if the rune separates words, or -1 if the rune is
// dropped.
func nameRune(r rune) rune {
	switch {
	case r == '_', isJoiner(r), r > unicode.MaxASCII && unicode.IsSymbol(r) && r != utf8.RuneError,
		unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.Other_ID_Continue):
		return r
	case unicode.IsSpace(r) && !unicode.IsControl(r), unicode.IsPunct(r), unicode.IsSymbol(r) && r != utf8.RuneError:
		return '-'
	}
	return -1
}

// dashes replaces each run of dashes with a single one.
func dashes(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '-' }), "-")
}

// trimName removes dashes and joiners from both ends, and combining marks from the beginning.
func trimName(s string) string {
	isEdge := func(r rune) bool { return r == '-' || isJoiner(r) }
	s = strings.TrimLeftFunc(s, func(r rune) bool { return isEdge(r) || unicode.IsMark(r) })
	return strings.TrimRightFunc(s, isEdge)
}

// cutName truncates s to as many whole grapheme clusters as fit into n bytes. If even the first
// cluster does not fit, cutName truncates it between runes.
func cutName(s string, n int) string {
	if len(s) <= n {
		return s
	}
	end := 0
	for clusters := graphemes.FromString(s); clusters.Next() && clusters.End() <= n; {
		end = clusters.End()
	}
	if end == 0 {
		return text.CutBytes(s, n)
	}
	return s[:end]
}

// isDevice reports whether Windows treats a file with this name as a device, regardless of its
// extension.
func isDevice(name string) bool {
	name = strings.ToUpper(name)
	switch name {
	case "CON", "PRN", "AUX", "NUL":
		return true
	}
	port, number := name[:min(3, len(name))], name[min(3, len(name)):]
	return (port == "COM" || port == "LPT") && len([]rune(number)) == 1 && strings.Contains("123456789¹²³", number)
}
