// Package mails writes the messages that people get about their accounts and organizations. It
// sends nothing: each method of Instance returns a message with its text and the same content as
// HTML.
//
// Names of people, organizations, keys and devices come from tenants. They are shown on one line,
// in at most 128 characters, without control characters, and in a form in which mail clients do not
// turn addresses into links.
package mails

import (
	_ "embed"
	htmltemplate "html/template"
	"io"
	"strings"
	texttemplate "text/template"
	"time"

	"crier/platform/mail"
	"crier/platform/text"
)

// Instance is the installation of the service that the messages are about.
type Instance struct {
	// Name is what the service calls itself in the messages.
	Name string
	// URL is the public http or https address of the service.
	URL string
	// Frontend is the address of the dashboard.
	Frontend string
	// Zone is the time zone of the reader, or nil for UTC. A message names it with each time.
	Zone *time.Location
	// Stop are the footer links that turn off mails. There are none in mails that nobody can turn
	// off.
	Stop []StopLink
}

// StopLink turns off the mails about what Words say.
type StopLink struct{ Words, URL string }

// content is what the layout shows.
type content struct {
	// To is the address of the recipient.
	To string
	// Name is the name of the recipient. It may be empty.
	Name    string
	Subject string
	// Paragraphs come before the buttons, and Notes after them.
	Paragraphs []string
	Buttons    []button
	Notes      []string
	// Reason is the sentence in the footer that says why the person got the message.
	Reason   string
	Instance Instance
}

// button is a button in HTML and an address on its own line in text. Its URL belongs to the
// service, never to a tenant.
type button struct{ Label, URL string }

var (
	//go:embed layout.html
	htmlSource string
	//go:embed layout.txt
	textSource string

	htmlLayout = htmltemplate.Must(htmltemplate.New("html").Parse(htmlSource))
	textLayout = texttemplate.Must(texttemplate.New("text").Parse(textSource))
)

// maxSubject is in characters. The limit of platform/mail is 500 bytes.
const maxSubject = 120

// message returns c as text and as HTML.
func (i Instance) message(c content) mail.Message {
	c.Instance = Instance{Name: text.Shorten(clean(i.Name), maxName), URL: i.URL, Stop: i.Stop}
	c.Subject = text.Shorten(clean(c.Subject), maxSubject)
	return mail.Message{To: c.To, Subject: c.Subject, Text: execute(textLayout, c), HTML: execute(htmlLayout, c)}
}

// execute returns "" if the layout has a fault. The mail sender rejects a message without text.
func execute(layout interface{ Execute(io.Writer, any) error }, c content) string {
	var out strings.Builder
	if err := layout.Execute(&out, c); err != nil {
		return ""
	}
	return out.String()
}

// at formats a time in the zone of the reader, such as "2 January 2026, 16:04 (Europe/Berlin)".
func (i Instance) at(t time.Time) string {
	if i.Zone == nil || i.Zone.String() == "UTC" {
		return t.UTC().Format("2 January 2006, 15:04 UTC")
	}
	zone := i.Zone.String()
	if strings.ContainsAny(zone[:1], "+-") {
		zone = "UTC" + zone
	}
	return t.In(i.Zone).Format("2 January 2006, 15:04") + " (" + zone + ")"
}

// span formats a duration in whole days, hours or minutes, rounded up.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 2*day && d%day == 0:
		return text.Count(int(d/day), "day")
	case d >= time.Hour && d%time.Hour == 0:
		return text.Count(int(d/time.Hour), "hour")
	}
	return text.Count(max(1, int((d+time.Minute-1)/time.Minute)), "minute")
}
