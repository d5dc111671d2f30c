// Package bluesky publishes posts with images, and threads of posts, on Bluesky and any other AT
// Protocol server. It derives the record key from the publication, so a server cannot store the
// same publication twice.
package bluesky

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/file/picture"
)

const (
	collection   = "app.bsky.feed.post"
	entryway     = "https://bsky.social"
	maxGraphemes = 300
	maxBytes     = 3000
	maxImages    = 4
)

// Connector is the Bluesky connector. It holds no state. Its grade is GradeIdempotent.
type Connector struct{}

var _ interface {
	connector.Connector
	connector.Refresher
	connector.Deriver
	connector.Analyst
} = (*Connector)(nil)

// New returns a Bluesky connector.
func New() *Connector { return &Connector{} }

// Describe returns the descriptor. In the descriptor, only Rules mentions the byte limits. Media
// and MaxLength do not include them. Validate and Derived apply these limits.
func (c *Connector) Describe() connector.Descriptor {
	return connector.Descriptor{
		ID: "bluesky", Name: "Bluesky", ToolTip: "Connect with an app password, not with your account password.",
		Capabilities: []string{"text", "image"},
		Fields: []connector.Field{
			{
				Key: "service", Label: "Service", DefaultValue: entryway, Type: "text",
				Hint:       "Your account's server",
				Word:       true,
				Validation: `^(https:\/\/[^\s\/@?#]+|http:\/\/(localhost|127\.[0-9.]+|\[::1\])(:[0-9]+)?)\/?$`,
			},
			{
				Key: "identifier", Label: "Identifier", Type: "text", Hint: "Your handle or email address", Word: true,
				Validation: `^\s*\S{3,}\s*$`,
			},
			{
				Key: "password", Label: "App password", Type: "password", Validation: `^.{3,}$`,
				Hint: "Create one in Bluesky under Settings, Privacy and security, App passwords",
			},
		},
		Editor: "normal", MaxLength: maxGraphemes, Unit: connector.Graphemes,
		Media:   connector.MediaRules{MaxImages: maxImages},
		Grade:   publishing.GradeIdempotent,
		KeyOnly: true, Settings: json.RawMessage(settingsSchema),
		Rules: "Plain text of up to 300 characters (graphemes) and 3,000 bytes, " +
			"with up to 4 images (PNG, JPEG or GIF) and no video. " +
			"Images over 1,000,000 bytes are made smaller: a JPEG of at most 40 million pixels " +
			"(9 million if it is progressive), a PNG of at most 33.5 million " +
			"(16 million if it is interlaced or has 16 bits a channel, 8 million if both); " +
			"GIFs over that size are refused. " +
			"Links that begin with http:// or https://, domain names such as example.com, @handles and #hashtags " +
			"become links. " +
			"Threads are chains of replies. The langs setting lists up to 3 languages of the text.",
	}
}

// Validate applies the descriptor's rules, the text's byte limit, and the limits on images that
// must be scaled down.
func (c *Connector) Validate(draft connector.Draft) []connector.Problem {
	d := c.Describe()
	var out []connector.Problem
	for i, part := range draft.Parts {
		one := draft
		one.Parts = []connector.DraftPart{part}
		problems := append(connector.Check(d, one, 0), checkPart(part)...)
		for _, p := range problems {
			out = append(out, connector.Problem{Part: i, Message: p.Message})
		}
	}
	if _, err := langsOf(draft.Settings); err != nil {
		var e *connector.Error
		errors.As(err, &e)
		out = append(out, connector.Problem{Message: e.Public, Settings: true})
	}
	return out
}

// checkPart applies the rules that connector.Check does not cover.
func checkPart(part connector.DraftPart) []connector.Problem {
	var out []connector.Problem
	add := func(format string, args ...any) {
		out = append(out, connector.Problem{Message: fmt.Sprintf(format, args...)})
	}
	for _, m := range part.Media {
		switch {
		case m.Video || m.Size <= maxBlob:
		case m.ContentType == "image/gif":
			add("%s is too large for Bluesky: a GIF may have at most %d bytes, not %d.", m.Name, maxBlob, m.Size)
		case m.ContentType == "image/png" && m.Width*m.Height > picture.MaxPNGPixels:
			const format = "%s has too many pixels to be made smaller: %d x %d; a PNG may have at most 33.5 million."
			add(format, m.Name, m.Width, m.Height)
		case m.Width*m.Height > picture.MaxPixels:
			const format = "%s has too many pixels to be made smaller: %d x %d; at most 40 million are allowed."
			add(format, m.Name, m.Width, m.Height)
		}
	}
	if n := len(part.Text); n > maxBytes {
		add("The text is too long: it has %d bytes, and at most %d are allowed.", n, maxBytes)
	}
	if !utf8.ValidString(part.Text) {
		add("The text is not valid UTF-8.")
	}
	return out
}
