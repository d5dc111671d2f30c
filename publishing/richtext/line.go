package richtext

import "strings"

// whiteSpace holds the white space characters that HTML collapses. The no-break space is not one of
// them.
const whiteSpace = " \t\n\f\r"

// placeholder is the invisible character that editors put in an empty line to hold the cursor.
const placeholder = '\ufeff'

// line is the block that is being read. It holds the block's spans, and white space that may still
// have to be written.
type line struct {
	spans []Span
	text  strings.Builder // text of the last span
	form  form            // form of the last span
	// last is the last character of the block; 0 if the block is empty.
	last rune
	// pending is the form of white space that has not been written yet. It is written only if text
	// follows on the same line.
	pending *form
	// opened is set once the block contains text or a line break.
	opened bool
	// written counts the characters in all blocks so far.
	written int
	// linked counts the bytes of the link URLs in all blocks so far.
	linked int
}

// maxLinked limits the total length of all link URLs in bytes. The limit is needed because a link
// around many blocks is repeated in each block. Beyond the limit, links keep only their text.
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

// kept writes white space that must not collapse. Alternate spaces become no-break spaces, because
// ordinary spaces would collapse when the HTML is parsed again.
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

// space records white space that must be written only if text follows.
func (b *line) space(l look) {
	if b.pending == nil && b.last != 0 && b.last != '\n' && b.last != ' ' {
		b.pending = &l.form
	}
}

// writePending writes the recorded white space. It is called when text follows.
func (b *line) writePending() {
	if b.pending != nil {
		f := *b.pending
		b.pending = nil
		b.put(' ', f)
	}
}

// breakLine adds a line break. White space before the line break is dropped.
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

// end returns the spans of the block and begins a new block. ok is false if there is nothing to
// render. A line break at the end of the block is dropped, because it does not add a line.
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
