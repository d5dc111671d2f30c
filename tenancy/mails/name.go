package mails

import (
	"cmp"
	"regexp"
	"strings"
	"unicode"

	"crier/platform/paste"
	"crier/platform/text"
	"crier/tenancy"
)

// maxName is the maximum length, in characters, of a name in a message.
const maxName = 128

// plainAddress matches a string that consists only of an email address. Messages use a person's
// email address if the person has no name.
var plainAddress = regexp.MustCompile(`^[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$`)

// name cleans and shortens a name chosen by a tenant, for use in a message. It returns fallback if
// nothing is left after cleaning.
func name(s, fallback string) string {
	return cmp.Or(text.Shorten(unlink(clean(s)), maxName), fallback)
}

// quoted is like name, but puts the cleaned name in quotation marks. It does not put fallback in
// quotation marks.
func quoted(s, fallback string) string {
	shown := name(s, "")
	if shown == "" {
		return fallback
	}
	return "“" + quotationMarks.Replace(shown) + "”"
}

// roleName returns the word that messages use for a role.
func roleName(role string) string {
	switch tenancy.Role(role) {
	case tenancy.RoleSuperAdmin:
		return "owner"
	case tenancy.RoleAdmin:
		return "administrator"
	case tenancy.RoleUser:
		return "member"
	}
	return quoted(role, someRole)
}

// quotationMarks replaces typographic quotation marks with plain ones, so that quoted text cannot
// appear to end early.
var quotationMarks = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "‟", `"`)

// excerpt returns the beginning of a text written by a tenant, in quotation marks and on one line.
// It removes hidden characters and breaks up links. most is the maximum length in characters.
// excerpt returns "" if the text has no visible characters.
func excerpt(s string, most int) string {
	shown := text.Shorten(unlink(clean(paste.Line(quotationMarks.Replace(s)))), most)
	if shown == "" {
		return ""
	}
	return "“" + shown + "”"
}

// clean returns all of s on one line; see text.Line.
func clean(s string) string { return text.Line(s, len(s)) }

// unlink adds a space after "://" and after each dot between a word and a letter, so that mail
// clients do not turn parts of s into links. It leaves a plain email address unchanged. Example:
// "see evil.example" becomes "see evil. example".
func unlink(s string) string {
	if plainAddress.MatchString(s) {
		return s
	}
	in := []rune(strings.ReplaceAll(s, "://", ":// "))
	var out strings.Builder
	for i, r := range in {
		out.WriteRune(r)
		inside := i > 0 && in[i-1] != ' ' && i+1 < len(in) && unicode.IsLetter(in[i+1])
		if inside && strings.ContainsRune(".。．｡", r) { // the dots of domain names
			out.WriteByte(' ')
		}
	}
	return out.String()
}
