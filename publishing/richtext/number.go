package richtext

import (
	"strconv"
	"strings"
)

// NumberForm is the form in which a list's numbers are written. Its value is the type attribute of
// <ol>, or "" for digits.
type NumberForm string

// The forms of numbers other than digits.
const (
	LowerLetters NumberForm = "a"
	UpperLetters NumberForm = "A"
	LowerRoman   NumberForm = "i"
	UpperRoman   NumberForm = "I"
)

// write formats a number in this form. As in browsers, a number that cannot be written in this form
// is written in digits.
func (f NumberForm) write(n int) string {
	switch {
	case f == LowerLetters && n > 0:
		return letters(n)
	case f == UpperLetters && n > 0:
		return strings.ToUpper(letters(n))
	case f == LowerRoman && n > 0 && n < 4000:
		return roman(n)
	case f == UpperRoman && n > 0 && n < 4000:
		return strings.ToUpper(roman(n))
	default:
		return strconv.Itoa(n)
	}
}

// letters formats a number in the style of spreadsheet columns: a to z, then aa, ab and so on.
func letters(n int) (out string) {
	for ; n > 0; n = (n - 1) / 26 {
		out = string(rune('a'+(n-1)%26)) + out
	}
	return out
}

func roman(n int) string {
	var b strings.Builder
	for _, d := range []struct {
		value  int
		digits string
	}{
		{1000, "m"}, {900, "cm"}, {500, "d"}, {400, "cd"}, {100, "c"}, {90, "xc"},
		{50, "l"}, {40, "xl"}, {10, "x"}, {9, "ix"}, {5, "v"}, {4, "iv"}, {1, "i"},
	} {
		b.WriteString(strings.Repeat(d.digits, n/d.value))
		n %= d.value
	}
	return b.String()
}

// numberForm returns the form that a type attribute or a list-style-type specifies, or "" for any
// other value.
func numberForm(name string) NumberForm {
	switch f := NumberForm(name); f {
	case LowerLetters, UpperLetters, LowerRoman, UpperRoman:
		return f
	}
	switch strings.ToLower(name) {
	case "lower-alpha", "lower-latin":
		return LowerLetters
	case "upper-alpha", "upper-latin":
		return UpperLetters
	case "lower-roman":
		return LowerRoman
	case "upper-roman":
		return UpperRoman
	default:
		return ""
	}
}
