package richtext

import "strings"

// whiteSpace is what HTML collapses. A no-break space is none.
const whiteSpace = " \t\n\f\r"

// placeholder is what editors write into an empty line to have a place for the cursor. It is never drawn.
const placeholder = '\ufeff'

// line is an open block: its spans and the white space that may follow.
type line struct {
	spans []Span
	text  strings.Builder // of the last span
	form  form            // of the last span
	// last is the last character, 0 at the beginning.
	last rune
	// pending is the form of white space that is written if text follows in the line.
	pending *form
	// opened is set when the block is drawn: it has text or a break.
	opened bool
	// written counts the characters, across blocks.
	written int
	// linked counts the bytes of the addresses of links, across blocks.
	linked int
}

// maxLinked bounds the addresses of all links together: a link around many blocks is written in each of them. What is
// beyond keeps its text.
const maxLinked = 1 << 20

// write adds text as its look says.
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

// kept writes white space that is drawn as it is. HTML would collapse it when it is read again, so that every other space
// is a no-break space.
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

// space notes white space.
func (b *line) space(l look) {
	if b.pending == nil && b.last != 0 && b.last != '\n' && b.last != ' ' {
		b.pending = &l.form
	}
}

// writePending writes white space, because text follows it.
func (b *line) writePending() {
	if b.pending != nil {
		f := *b.pending
		b.pending = nil
		b.put(' ', f)
	}
}

// breakLine ends the line. White space before it is not drawn.
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

// end returns the spans of the block and begins the next one. ok is false when nothing of it is drawn. A break at the end
// of a block makes no further line.
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
