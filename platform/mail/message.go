package mail

import (
	"crypto/rand"
	"net/mail"
	"net/url"
	"strings"
	"unicode/utf8"

	gomail "github.com/wneessen/go-mail"

	"crier/platform/fault"
)

// Message is an email to one recipient.
type Message struct {
	// To is an RFC 5322 address with an optional name.
	To string
	// Subject is one line of at most 500 bytes.
	Subject string
	// Text is required. Lines end with a line feed.
	Text string
	// HTML has the same content as Text. It is optional.
	HTML string
	// Unsubscribe is an https URL that ends the subscription when it receives the POST described in
	// RFC 8058. It is empty for messages that do not belong to a subscription.
	Unsubscribe string
}

// These limits, in bytes, apply to values that become header lines. RFC 5322 limits a line to 998
// bytes.
const (
	maxAddress     = 500
	maxSubject     = 500
	maxUnsubscribe = 900
)

// validate returns the parsed recipient, or a fault of kind Invalid. It rejects values that would
// add a line to the header.
func (m Message) validate() (*mail.Address, error) {
	invalid := func(message string) error { return fault.New(fault.Invalid, "mail.Send", message) }
	to, err := parseAddress(m.To)
	switch {
	case err != nil:
		return nil, invalid("The recipient is not an email address.")
	case m.Subject == "" || len(m.Subject) > maxSubject:
		return nil, invalid("The subject of a mail must have 1 to 500 bytes.")
	case hasControl(m.Subject):
		return nil, invalid("The subject of a mail must not have line breaks or other control characters.")
	case m.Text == "":
		return nil, invalid("The mail has no text.")
	case !utf8.ValidString(m.Subject + m.Text + m.HTML):
		return nil, invalid("The mail is not valid UTF-8.")
	case m.Unsubscribe != "" && !isUnsubscribe(m.Unsubscribe):
		return nil, invalid("The unsubscribe address is not an https address.")
	}
	return to, nil
}

// isUnsubscribe reports whether s is an https URL that fits between the brackets of
// List-Unsubscribe.
func isUnsubscribe(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" || u.Host == "" || len(s) > maxUnsubscribe {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune("<>,", r)
	})
}

// compose returns the message with all headers. It returns a fault of kind Invalid if the message
// is invalid.
func (s *SMTP) compose(m Message) (*gomail.Msg, error) {
	to, err := m.validate()
	if err != nil {
		return nil, err
	}
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(s.from)
	msg.ToMailAddress(to)
	// Email clients decode encoded words (RFC 2047) in the subject, and the decoded text may
	// contain hidden characters.
	msg.Subject(strings.ReplaceAll(m.Subject, "=?", "= ?"))
	msg.SetDateWithValue(s.clock.Now())
	msg.SetMessageIDWithValue(rand.Text() + s.from.Address[strings.LastIndex(s.from.Address, "@"):])
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	if m.Unsubscribe != "" {
		if err := msg.SetListUnsubscribeOneClick(m.Unsubscribe); err != nil {
			return nil, fault.Wrap(fault.Invalid, "mail.Send", "The unsubscribe address is not an https address.", err)
		}
	}
	msg.SetBodyString(gomail.TypeTextPlain, m.Text)
	if m.HTML != "" {
		msg.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	}
	return msg, nil
}
