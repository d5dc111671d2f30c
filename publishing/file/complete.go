package file

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash"
	"hash/crc32"
	"io"
	"strings"

	"crier/platform/fault"
	"crier/publishing/file/metadata"
)

// completeReader reads an image. It returns fault.Invalid if the image ends before its end marker,
// or if a checksum is wrong. A checksum is wrong, for example, after an unfinished download into a
// preallocated file. Bytes after the end marker are allowed, because phones append videos to
// images.
type completeReader struct {
	r      io.Reader
	kind   Kind
	parser *blockParser
}

// endOf describes, for each kind of image, what a complete file must contain at its end.
var endOf = map[string]string{
	"png": "its end (the IEND chunk)", "jpg": "its end (the EOI marker)", "gif": "its end (the trailer)",
}

func (c *completeReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.parser.parse(p[:n])
	if c.parser.broken != "" {
		return n, fault.New(fault.Invalid, "media.Read", "The file is "+c.kind.word()+", but it is damaged: "+
			c.parser.broken+".")
	}
	if errors.Is(err, io.EOF) && !c.parser.ended {
		err = fault.New(fault.Invalid, "media.Read",
			"The file is "+c.kind.word()+", but it is incomplete: it breaks off before "+endOf[c.kind.Ext]+".")
	}
	return n, err
}

// blockParser parses the blocks of an image as its bytes arrive. It buffers only the header of the
// current block.
type blockParser struct {
	skip  int64        // remaining bytes of a block's body
	seek  bool         // skip everything before the next 0xFF
	need  int          // size of the header that step parses
	have  []byte       // the header bytes that have arrived
	step  func([]byte) // parses one header and sets what follows
	ended bool         // the end marker has arrived
	// sum is the running checksum of the current PNG chunk. It is nil for other formats. broken
	// describes the damage and completes the error message. Once broken is set, parse ignores all
	// further bytes.
	sum    hash.Hash32
	broken string
}

func newBlockParser(ext string) *blockParser {
	w := &blockParser{}
	switch ext {
	case "png":
		w.skip = 8
		w.expect(8, w.pngChunk)
	case "gif":
		w.expect(13, w.gifHeader)
	default:
		w.expect(2, w.jpegMarker)
	}
	return w
}

func (w *blockParser) expect(n int, step func([]byte)) { w.need, w.step = n, step }

// parse parses the next bytes of the image. The caller may split the image at any byte. Bytes after
// the end marker are ignored.
func (w *blockParser) parse(p []byte) {
	for len(p) > 0 && !w.ended && w.broken == "" {
		switch {
		case w.skip > 0:
			n := min(w.skip, int64(len(p)))
			if w.sum != nil {
				_, _ = w.sum.Write(p[:n]) // a hash never returns an error
			}
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

// pngChunk parses the length and type of a chunk. The chunk's body and checksum follow.
func (w *blockParser) pngChunk(head []byte) {
	kind := string(head[4:])
	if !isChunk(kind) {
		w.broken = "it has unexpected bytes where a chunk should begin"
		return
	}
	w.sum = crc32.NewIEEE()
	_, _ = w.sum.Write(head[4:])
	w.skip = int64(binary.BigEndian.Uint32(head))
	w.expect(4, func(sum []byte) {
		switch {
		case isNeeded(kind) && binary.BigEndian.Uint32(sum) != w.sum.Sum32():
			w.broken = "the checksum of its " + kind + " chunk is wrong"
		case kind == "IEND":
			w.ended = true
		}
		w.sum = nil
		w.expect(8, w.pngChunk)
	})
}

// isChunk reports whether kind has the form of a PNG chunk type, which consists of four letters.
func isChunk(kind string) bool {
	return strings.Trim(kind, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == ""
}

// isNeeded reports whether a PNG chunk must have a correct checksum. It returns true if a decoder
// cannot do without the chunk, or if the chunk is published with the picture. Some old programs
// write wrong checksums into other chunks, such as comments.
func isNeeded(kind string) bool { return kind[0]&0x20 == 0 || metadata.KeepsChunk(kind) }

// jpegMarker parses a marker, which consists of 0xFF and a code. The marker may be at the start of
// a segment or in the scan data. In the scan data, 0xFF 0x00 stands for the byte 0xFF.
func (w *blockParser) jpegMarker(head []byte) {
	code := head[1]
	switch {
	case head[0] != 0xFF, code == 0x00:
		w.seek = true
	case code == 0xFF: // a fill byte
		w.have = append(w.have, code)
	case code == 0xD9:
		w.ended = true
	case code == 0x01, code >= 0xD0 && code <= 0xD8: // no body
		w.seek = true
	default:
		w.expect(2, w.jpegLength)
	}
}

func (w *blockParser) jpegLength(head []byte) {
	w.skip = max(int64(binary.BigEndian.Uint16(head))-2, 0)
	w.seek = true
	w.expect(2, w.jpegMarker)
}

// gifHeader parses the signature and the screen descriptor. A color table may follow.
func (w *blockParser) gifHeader(head []byte) {
	w.skip = gifTable(head[10])
	w.expect(1, w.gifBlock)
}

// gifTable returns the size in bytes of the color table declared by a descriptor's flags.
func gifTable(flags byte) int64 {
	if flags&0x80 == 0 {
		return 0
	}
	return 3 << (flags&7 + 1)
}

func (w *blockParser) gifBlock(head []byte) {
	switch head[0] {
	case 0x3B:
		w.ended = true
	case 0x21:
		w.skip = 1 // the label
		w.expect(1, w.gifData)
	case 0x2C:
		w.expect(9, w.gifImage)
	}
}

func (w *blockParser) gifImage(head []byte) {
	w.skip = gifTable(head[8]) + 1 // the color table and the code size
	w.expect(1, w.gifData)
}

// gifData parses the length of a data block. A length of zero ends the sequence.
func (w *blockParser) gifData(head []byte) {
	w.skip = int64(head[0])
	if w.skip == 0 {
		w.expect(1, w.gifBlock)
	}
}
