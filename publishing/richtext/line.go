package richtext

import "strings"

// whiteSpace is the white space that HTML collapses. It does not include the no-break space.
const whiteSpace = " \t\n\f\r"

// placeholder is the character that editors put in an empty line to hold the cursor. It is never
// drawn.
const placeholder = '\ufeff'

// line is the open block: its spans, and the white space that may follow.
type line struct {
	spans []Span
	text  strings.Builder // text of the last span
	form  form            // form of the last span
	// last is the last character; 0 at the beginning.
	last rune
	// pending is the form of white space that is written only if text follows on the line.
	pending *form
	// opened is set once the block has text or a break to draw.
	opened bool
	// written counts the characters in all blocks so far.
	written int
	// linked counts the bytes of the link URLs in all blocks so far.
	linked int
}

// maxLinked limits the total length of all link URLs in bytes, because a link around many blocks is
// written in each block. Links beyond the limit keep only their text.
const maxLinked = 1 << 20

// write adds text with its look.
func (b *line) write(text string, l look) {
	for _, r := range text {
		b.char(r, l)
	}
}

func (b *line) char(r rune, l look) {
	isFeed := r == '\n' || r == '\r'
	switch {
	case r == placeholder:
	case !strings.ContainsRune(whiteSpace, r):
		b.writePending()
		b.put(r, l.form)
	case isFeed && l.space.keepsLines():
		b.breakLine(l)
	case l.space == keepAll || l.space == wrapAll:
		b.kept(r, l)
	default:
		b.space(l)
	}
}

// kept writes white space that is drawn unchanged. Alternate spaces become no-break spaces, because
// the spaces would otherwise collapse when the HTML is read again.
func (b *line) kept(r rune, l look) {
	b.writePending()
	n := 1
	if r == '\t' {
		n = 4
	}
	for range n {
		if b.last == 0 || b.last == '\n' || b.last == ' ' {
			b.put('\u00a0', l.form)
		} else {
			b.put(' ', l.form)
		}
	}
}

// space records white space that is written if text follows.
func (b *line) space(l look) {
	if b.pending == nil && b.last != 0 && b.last != '\n' && b.last != ' ' {
		b.pending = &l.form
	}
}

// writePending writes the pending white space, because text follows.
func (b *line) writePending() {
	if b.pending != nil {
		f := *b.pending
		b.pending = nil
		b.put(' ', f)
	}
}

// breakLine ends the line. White space before the break is not drawn.
func (b *line) breakLine(l look) {
	b.pending = nil
	b.put('\n', l.form)
}

func (b *line) put(r rune, f form) {
	if f != b.form {
		b.endSpan()
		b.form = f
	}
	b.text.WriteRune(r)
	b.last, b.opened = r, true
	b.written++
}

func (b *line) endSpan() {
	if b.text.Len() > 0 {
		if b.linked += len(b.form.Href); b.linked > maxLinked {
			b.form.Href = ""
		}
		b.spans = append(b.spans, Span{Text: b.text.String(), form: b.form})
		b.text.Reset()
	}
}

// end returns the spans of the block and begins the next block. ok is false if the block draws
// nothing. A break at the end of a block does not add a line.
func (b *line) end() (spans []Span, ok bool) {
	b.endSpan()
	spans, ok = b.spans, b.opened
	if n := len(spans); n > 0 && b.last == '\n' {
		last := &spans[n-1]
		if last.Text = strings.TrimSuffix(last.Text, "\n"); last.Text == "" {
			spans = spans[:n-1]
		}
	}
	*b = line{written: b.written, linked: b.linked}
	return spans, ok
}
