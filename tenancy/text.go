package tenancy

import (
	"strings"
	"unicode/utf8"
)

// Storable tells whether a text column of Postgres can hold the text: valid UTF-8 without NUL.
func Storable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }
