package metadata

import (
	"bytes"
	"errors"
	"fmt"

	"crier/platform/fault"
)

// Scanner finds metadata in a file as the file's bytes are written to it. It buffers at most one
// segment of a picture, or a video's movie box.
type Scanner struct {
	walker
	format interface {
		// finish is called after the last byte.
		finish(size int64) ([]Edit, error)
	}
}

// NewScanner returns a Scanner for a file with the extension png, jpg, jpeg, gif or mp4. The caller
// must have checked that the file has that format; see file.Sniff.
func NewScanner(ext string) (*Scanner, error) {
	s := &Scanner{}
	switch ext {
	case "png":
		s.format = newPNG(&s.walker)
	case "jpg", "jpeg":
		s.format = newJPEG(&s.walker)
	case "gif":
		s.format = newGIF(&s.walker)
	case "mp4":
		s.format = newMovie(&s.walker)
	default:
		return nil, fmt.Errorf("metadata: no format %q", ext)
	}
	return s, nil
}

// Edits returns the edits to make to the file that was written. It returns fault.Invalid if a
// video's boxes cannot be read, are too large or are too numerous. It also returns fault.Invalid if
// the file has metadata in too many places.
func (s *Scanner) Edits() (Edits, error) {
	edits, err := s.format.finish(s.at)
	if err != nil {
		var f *fault.Error
		if errors.As(err, &f) {
			return nil, err
		}
		return nil, fault.Wrap(fault.Invalid, "metadata.Edits",
			"The video cannot be read: its movie box is damaged. Export it again as mp4.", err)
	}
	all := ordered(append(s.edits, edits...), s.at)
	if len(s.edits) > maxEdits || len(all) > maxEdits {
		return nil, fault.New(fault.Invalid, "metadata.Edits",
			"The file has metadata in too many places. Export it again without metadata.")
	}
	return all, nil
}

// walker parses a file step by step. It passes each step the bytes that the step expects, and skips
// the rest of the file.
type walker struct {
	// at is the number of bytes consumed so far.
	at    int64
	skip  int64        // remaining bytes that no step has requested
	seek  bool         // skip everything before the next 0xFF
	need  int          // number of bytes that step takes
	have  []byte       // the bytes for step that have arrived
	step  func([]byte) // takes need bytes, which it must not retain, and sets what follows
	done  bool         // the format has ended; further bytes are only counted
	edits []Edit
}

func (w *walker) expect(n int, step func([]byte)) { w.need, w.step = n, step }

// maxEdits is the maximum number of edits to a file. The edits are stored in the file's database
// row and read whenever the file is served.
const maxEdits = 1 << 14

// cut replaces n bytes with put, starting at position at.
func (w *walker) cut(at, n int64, put []byte) {
	w.add(Edit{At: at, Cut: n, Put: put})
}

// zero replaces n bytes with zeros, starting at position at.
func (w *walker) zero(at, n int64) {
	if n > 0 {
		w.add(Edit{At: at, Cut: n, Zero: true})
	}
}

// add appends an Edit. If the Edit continues the previous one, add merges the two. After more than
// maxEdits edits, the rest of the file is not parsed; see Scanner.Edits.
func (w *walker) add(x Edit) {
	if last := len(w.edits) - 1; last >= 0 && x.continues(w.edits[last]) {
		w.edits[last].Cut += x.Cut
		return
	}
	if w.edits = append(w.edits, x); len(w.edits) > maxEdits {
		w.done = true
	}
}

// Write implements io.Writer. It never fails.
func (w *walker) Write(p []byte) (int, error) {
	total := len(p)
	for {
		switch {
		case w.done:
			w.at += int64(len(p))
			return total, nil
		case w.skip > 0:
			n := min(w.skip, int64(len(p)))
			w.skip, w.at, p = w.skip-n, w.at+n, p[n:]
			if w.skip > 0 {
				return total, nil
			}
		case w.seek:
			n := bytes.IndexByte(p, 0xFF)
			w.seek = n < 0
			if n < 0 {
				n = len(p)
			}
			w.at, p = w.at+int64(n), p[n:]
			if w.seek {
				return total, nil
			}
		case w.need > len(w.have):
			if len(p) == 0 {
				return total, nil
			}
			n := min(w.need-len(w.have), len(p))
			w.have, w.at, p = append(w.have, p[:n]...), w.at+int64(n), p[n:]
		default:
			head := w.have
			w.have = w.have[:0]
			w.step(head)
		}
	}
}

// tail returns the Edit that removes everything from position end onward.
func (w *walker) tail(end, size int64) []Edit {
	if end < 0 || end >= size {
		return nil
	}
	return []Edit{{At: end, Cut: size - end}}
}
