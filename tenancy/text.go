package tenancy

import (
	"strings"
	"unicode/utf8"
)

// Storable reports whether a text column of Postgres can hold the text: it must be valid UTF-8 without NUL.
func Storable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }
