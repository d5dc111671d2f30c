// Package mails writes the messages that people receive about their accounts and organizations. It
// sends nothing: each method of Instance returns a message as plain text and as HTML.
//
// The names of people, organizations, keys and devices come from tenants. Messages show each name
// on one line, truncated to 128 characters and without control characters. They also break up URLs
// in names, so that mail clients do not turn them into links.
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

// Instance describes the installation of the service that sends the messages.
type Instance struct {
	// Name is what the service calls itself in the messages.
	Name string
	// URL is the service's public http or https URL.
	URL string
	// Frontend is the dashboard's URL.
	Frontend string
	// Zone is the reader's time zone, or nil for UTC. Messages name the zone next to each time.
	Zone *time.Location
	// Stop holds the footer links for opting out of emails. It is empty in emails that recipients
	// cannot opt out of.
	Stop []StopLink
}

// StopLink is a footer link that turns off emails about a topic. Words describes the topic.
type StopLink struct{ Words, URL string }

// content is the data that the layouts render.
type content struct {
	// To is the recipient's address.
	To string
	// Name is the recipient's name. It may be empty.
	Name    string
	Subject string
	// Paragraphs come before the buttons, and Notes after them.
	Paragraphs []string
	Buttons    []button
	Notes      []string
	// Reason is the footer sentence that explains why the person received the message.
	Reason   string
	Instance Instance
}

// button is rendered as a button in HTML, and as a URL on its own line in plain text. The URL
// always points to the service, never to a tenant's site.
type button struct{ Label, URL string }

var (
	//go:embed layout.html
	htmlSource string
	//go:embed layout.txt
	textSource string

	htmlLayout = htmltemplate.Must(htmltemplate.New("html").Parse(htmlSource))
	textLayout = texttemplate.Must(texttemplate.New("text").Parse(textSource))
)

// maxSubject is the maximum length of a subject, in characters. It keeps subjects below the limit
// of platform/mail, which is 500 bytes.
const maxSubject = 120

// message renders c as plain text and as HTML.
func (i Instance) message(c content) mail.Message {
	c.Instance = Instance{Name: text.Shorten(clean(i.Name), maxName), URL: i.URL, Stop: i.Stop}
	c.Subject = text.Shorten(clean(c.Subject), maxSubject)
	return mail.Message{To: c.To, Subject: c.Subject, Text: execute(textLayout, c), HTML: execute(htmlLayout, c)}
}

// execute returns "" if the layout fails. The mail sender then rejects the message because it has
// no text.
func execute(layout interface{ Execute(io.Writer, any) error }, c content) string {
	var out strings.Builder
	if err := layout.Execute(&out, c); err != nil {
		return ""
	}
	return out.String()
}

// at formats a time in the reader's time zone. Example: 2 January 2026, 16:04 (Europe/Berlin)
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

// span formats a duration in whole days, whole hours or minutes. It rounds minutes up.
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
