package media

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"crier/platform/fault"
)

// complete passes an image through and fails as Invalid when it ends before its end mark. What follows the mark is allowed: phones append films.
type complete struct {
	r    io.Reader
	walk *walk
}

func (c *complete) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.walk.pass(p[:n])
	if errors.Is(err, io.EOF) && !c.walk.ended {
		err = fault.New(fault.Invalid, "media.Read", "The image is incomplete: it breaks off before its end.")
	}
	return n, err
}

// walk follows the blocks of an image as its bytes pass, and keeps none but the block's head.
type walk struct {
	skip  int64        // bytes of a block's body still to come
	seek  bool         // pass over everything before the next 0xFF
	need  int          // bytes that step wants
	have  []byte       // those of them that came
	step  func([]byte) // looks at one head and says what follows
	ended bool
}

func newWalk(ext string) *walk {
	w := &walk{}
	switch ext {
	case "png":
		w.skip = 8
		w.want(8, w.pngChunk)
	case "gif":
		w.want(13, w.gifHeader)
	default:
		w.want(2, w.jpegMarker)
	}
	return w
}

func (w *walk) want(n int, step func([]byte)) { w.need, w.step = n, step }

func (w *walk) pass(p []byte) {
	for len(p) > 0 && !w.ended {
		switch {
		case w.skip > 0:
			n := min(w.skip, int64(len(p)))
			w.skip, p = w.skip-n, p[n:]
		case w.seek:
			i := bytes.IndexByte(p, 0xFF)
			if i < 0 {
				return
			}
			w.seek, p = false, p[i:]
		default:
			n := min(w.need-len(w.have), len(p))
			w.have, p = append(w.have, p[:n]...), p[n:]
			if len(w.have) == w.need {
				head := w.have
				w.have = w.have[:0]
				w.step(head)
			}
		}
	}
}

func (w *walk) end([]byte) { w.ended = true }

// pngChunk: length, type, body, checksum.
func (w *walk) pngChunk(head []byte) {
	body := int64(binary.BigEndian.Uint32(head)) + 4
	if string(head[4:]) == "IEND" {
		w.want(int(min(body, 1<<10)), w.end)
		return
	}
	w.skip = body
}

// jpegMarker: 0xFF and a code, at the start of a segment or somewhere in the picture's own bytes, where 0xFF 0x00 is a plain 0xFF.
func (w *walk) jpegMarker(head []byte) {
	code := head[1]
	switch {
	case head[0] != 0xFF, code == 0x00:
		w.seek = true
	case code == 0xFF: // filling
		w.have = append(w.have, code)
	case code == 0xD9:
		w.ended = true
	case code == 0x01, code >= 0xD0 && code <= 0xD8: // no body
		w.seek = true
	default:
		w.want(2, w.jpegLength)
	}
}

func (w *walk) jpegLength(head []byte) {
	w.skip = max(int64(binary.BigEndian.Uint16(head))-2, 0)
	w.seek = true
	w.want(2, w.jpegMarker)
}

// gifHeader: signature and screen; a table of colors may follow.
func (w *walk) gifHeader(head []byte) {
	w.skip = gifTable(head[10])
	w.want(1, w.gifBlock)
}

func gifTable(flags byte) int64 {
	if flags&0x80 == 0 {
		return 0
	}
	return 3 << (flags&7 + 1)
}

func (w *walk) gifBlock(head []byte) {
	switch head[0] {
	case 0x3B:
		w.ended = true
	case 0x21:
		w.skip = 1 // label
		w.want(1, w.gifData)
	case 0x2C:
		w.want(9, w.gifImage)
	}
}

func (w *walk) gifImage(head []byte) {
	w.skip = gifTable(head[8]) + 1 // and the code size
	w.want(1, w.gifData)
}

// gifData: a length and so many bytes, until a length of zero.
func (w *walk) gifData(head []byte) {
	if w.skip = int64(head[0]); w.skip == 0 {
		w.want(1, w.gifBlock)
	}
}
