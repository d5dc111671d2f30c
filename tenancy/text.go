package tenancy

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"crier/platform/fault"
	"crier/platform/paste"
)

// Storable reports whether a text can be stored in a Postgres text column. The text must be valid
// UTF-8 and must not contain NUL.
func Storable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

// CleanName removes surrounding spaces from the name of a person, an organization or a key. If the
// name breaks a rule, CleanName returns a description of the rule. Example: must be 3 to 128
// characters
//
// A name must have from least to most characters. Unless the name is empty, at least one character
// must be visible. A name must not contain control characters, line separators, characters without
// a width, or characters that change the text direction. Zero-width joiners and non-joiners are
// allowed because scripts and emoji need them, but they do not count toward least.
func CleanName(name string, least, most int) (clean, rule string) {
	clean = strings.TrimSpace(name)
	if !utf8.ValidString(clean) || strings.ContainsFunc(clean, isHidden) {
		return "", "must not contain control characters"
	}
	if clean != "" && !strings.ContainsFunc(clean, isShape) {
		return "", "must contain visible characters"
	}
	n := utf8.RuneCountInString(clean)
	if visible := n - strings.Count(clean, joiner) - strings.Count(clean, nonJoiner); visible < least || n > most {
		return "", "must be " + between(least, most)
	}
	return clean, ""
}

// The zero-width characters that names may contain.
const joiner, nonJoiner = "\u200d", "\u200c"

// isHidden reports whether a character in a name is invisible.
func isHidden(r rune) bool {
	if string(r) == joiner || string(r) == nonJoiner {
		return false
	}
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) || isFiller(r)
}

// isShape reports whether a character is visible on its own. A combining mark is not visible on its
// own, because it only changes another character.
func isShape(r rune) bool {
	const emptyBraille = '\u2800'
	return unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S) && r != emptyBraille
}

// isFiller reports whether a character is a letter that looks blank, or the replacement character
// for invalid text.
func isFiller(r rune) bool {
	return r == 0x115f || r == 0x1160 || r == 0x3164 || r == 0xffa0 || r == 0xfffd
}

// Mailbox returns the mailbox that an email address belongs to, in lower case. It removes the tag
// from local+tag@domain. For Gmail, it also removes dots from the local part and replaces the
// domain googlemail.com with gmail.com, because Gmail delivers mail for all these addresses to one
// mailbox. Example: Anna.Lee+news@googlemail.com becomes annalee@gmail.com.
//
// The result is used only to count and compare mailboxes. Emails are sent to the original address.
// The person.mailbox column follows the same rules.
func Mailbox(email string) string {
	local, domain, _ := strings.Cut(strings.ToLower(strings.TrimSpace(email)), "@")
	if untagged, _, _ := strings.Cut(local, "+"); untagged != "" {
		local = untagged
	}
	if domain == "gmail.com" || domain == "googlemail.com" {
		local, domain = strings.ReplaceAll(local, ".", ""), "gmail.com"
	}
	return local + "@" + domain
}

// CleanEmail returns an email address in its stored form: in lower case, without surrounding spaces
// or hidden characters. It returns false if the text cannot be an email address.
//
// An address that contains hidden characters in the middle is rejected, because removing them would
// produce the address of a different mailbox.
func CleanEmail(email string) (string, bool) {
	trimmed := paste.Trim(email)
	clean := strings.ToLower(trimmed)
	if foldsToASCII(trimmed) {
		return "", false
	}
	at := strings.LastIndexByte(clean, '@')
	unfit := func(r rune) bool {
		return r <= ' ' || r == 0x7f || unicode.IsControl(r) || unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || isFiller(r) ||
			strings.ContainsRune(`<>()[],;:"\`, r)
	}
	if at < 1 || at > 64 || at == len(clean)-1 || utf8.RuneCountInString(clean) > maxEmail || len(clean) > maxEmail {
		return "", false
	}
	domain := clean[at+1:]
	if strings.ContainsFunc(clean, unfit) || strings.Count(clean, "@") != 1 || strings.Contains(clean, "..") ||
		strings.HasPrefix(domain, ".") || strings.HasSuffix(domain, ".") || !utf8.ValidString(clean) {
		return "", false
	}
	return clean, true
}

// foldsToASCII reports whether a text contains a non-ASCII letter whose lower-case form is ASCII,
// such as the Kelvin sign. Converting an email address with this letter to lower case would produce
// the address of a different mailbox.
func foldsToASCII(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return r >= utf8.RuneSelf && strings.ToLower(string(r))[0] < utf8.RuneSelf
	})
}

// Text limits, in characters.
const (
	maxEmail    = 254
	MinPassword = 8
	MaxPassword = 128
)

// Inputs collects validation faults for the fields of an input.
type Inputs struct{ list fault.List }

// Name returns the cleaned name, and records a fault if the name breaks a rule; see CleanName.
func (i *Inputs) Name(field, name string, least, most int) string {
	clean, rule := CleanName(name, least, most)
	if rule != "" {
		i.list.Add(field, rule)
	}
	return clean
}

// Email returns the cleaned address, and records a fault if the address is invalid; see CleanEmail.
func (i *Inputs) Email(field, email string) string {
	clean, ok := CleanEmail(email)
	if !ok {
		i.list.Add(field, "must be an email address")
	}
	return clean
}

// Text returns the text without surrounding spaces. It records a fault if the text has more than
// most characters or cannot be stored. Line breaks are allowed.
func (i *Inputs) Text(field, text string, most int) string {
	clean := strings.TrimSpace(text)
	if !Storable(clean) {
		i.list.Add(field, "must not contain the character NUL")
	}
	if utf8.RuneCountInString(clean) > most {
		i.list.Add(field, "must be "+between(0, most))
	}
	return clean
}

// Password records a fault if a new password is too short, too long or not valid UTF-8.
func (i *Inputs) Password(field, password string) {
	if n := utf8.RuneCountInString(password); n < MinPassword || n > MaxPassword || !utf8.ValidString(password) {
		i.list.Add(field, "must be "+between(MinPassword, MaxPassword))
	}
}

// Check records a fault in the field unless ok is true.
func (i *Inputs) Check(ok bool, field, rule string) {
	if !ok {
		i.list.Add(field, rule)
	}
}

// Err returns Invalid with the recorded faults, or nil if there are none.
func (i *Inputs) Err(op string) error { return i.list.Err(op, "The input is not valid.") }

// between returns a rule that limits a length, in characters. Example: 3 to 128 characters
func between(least, most int) string {
	if least == 0 {
		return "at most " + strconv.Itoa(most) + " characters"
	}
	return strconv.Itoa(least) + " to " + strconv.Itoa(most) + " characters"
}
