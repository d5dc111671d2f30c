package smtptest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"strings"
)

// Received is a message that the server accepted.
type Received struct {
	// From and To are the envelope addresses.
	From, To string
	Header   mail.Header
	// Text and HTML are the decoded parts. Their lines end with a line feed.
	Text, HTML string
}

// Subject returns the decoded subject, and the raw one if it cannot be decoded.
func (r Received) Subject() string {
	raw := r.Header.Get("Subject")
	decoded, err := new(mime.WordDecoder).DecodeHeader(raw)
	if err != nil {
		return raw
	}
	return decoded
}

// parse returns the header and the parts of a message. It returns an error for anything other than
// text, HTML, or a multipart message that contains only these.
func parse(raw []byte) (Received, error) {
	msg, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return Received{}, err
	}
	out := Received{Header: msg.Header}
	kind, params, err := mime.ParseMediaType(msg.Header.Get("Content-Type"))
	if err != nil {
		return Received{}, fmt.Errorf("Content-Type: %w", err)
	}
	if !strings.HasPrefix(kind, "multipart/") {
		return out, out.take(textproto.MIMEHeader(msg.Header), msg.Body)
	}
	parts := multipart.NewReader(msg.Body, params["boundary"])
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return Received{}, err
		}
		if err := out.take(part.Header, part); err != nil {
			return Received{}, err
		}
	}
}

// take decodes one part and stores it.
func (r *Received) take(header textproto.MIMEHeader, body io.Reader) error {
	kind, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("Content-Type of a part: %w", err)
	}
	if charset := params["charset"]; !strings.EqualFold(charset, "utf-8") {
		return fmt.Errorf("a part has the charset %q", charset)
	}
	switch encoding := strings.ToLower(header.Get("Content-Transfer-Encoding")); encoding {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "", "7bit", "8bit":
	default:
		return fmt.Errorf("a part has the transfer encoding %q", encoding)
	}
	content, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	decoded := strings.ReplaceAll(string(content), "\r\n", "\n")
	switch kind {
	case "text/plain":
		r.Text += decoded
	case "text/html":
		r.HTML += decoded
	default:
		return fmt.Errorf("a part is %s", kind)
	}
	return nil
}
