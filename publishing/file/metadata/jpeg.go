package metadata

import (
	"bytes"
	"encoding/binary"

	"crier/publishing/file/picture"
)

// JPEG marker codes. Each code follows a 0xFF byte.
const (
	jpegSOF0, jpegSOF15 = 0xC0, 0xCF // frames and code tables
	jpegRST0, jpegRST7  = 0xD0, 0xD7
	jpegSOI, jpegEOI    = 0xD8, 0xD9
	jpegSOS             = 0xDA
	jpegEXP             = 0xDF // the last segment that decoders use
	jpegAPP0            = 0xE0
	jpegTEM             = 0x01
)

type jpegFormat struct {
	w *walker
	// end is the position after the end marker; -1 before the marker is reached.
	end int64
	// scan means that bytes between segments are scan data. If scan is false, decoders skip such
	// bytes.
	scan bool
	// gap is the start of a range that decoders skip; -1 if there is none.
	gap    int64
	turned bool
}

func newJPEG(w *walker) *jpegFormat {
	f := &jpegFormat{w: w, end: -1, gap: -1}
	w.skip = 2 // SOI
	w.expect(1, f.prefix)
	return f
}

// prefix parses a byte between segments. It is normally 0xFF, or a byte of scan data.
func (f *jpegFormat) prefix(b []byte) {
	if f.gap < 0 {
		f.gap = f.w.at - 1
	}
	if b[0] == 0xFF {
		f.w.expect(1, f.code)
		return
	}
	f.w.seek = true
}

// code parses the byte after 0xFF.
func (f *jpegFormat) code(b []byte) {
	code := b[0]
	switch {
	case code == 0xFF: // a fill byte
		return
	case f.scan && (code == 0 || code >= jpegRST0 && code <= jpegRST7):
		f.gap = -1
		f.w.expect(1, f.prefix)
		return
	case code == 0, code == jpegTEM, code >= jpegRST0 && code <= jpegSOI: // skipped by decoders
		f.w.expect(1, f.prefix)
		return
	}
	from := f.w.at - 2
	if !f.scan && f.gap >= 0 && f.gap < from {
		f.w.cut(f.gap, from-f.gap, nil)
	}
	f.gap, f.scan = -1, false
	if code == jpegEOI {
		f.end, f.w.done = f.w.at, true
		return
	}
	f.w.expect(2, func(b []byte) { f.length(from, code, b) })
}

func (f *jpegFormat) length(from int64, code byte, b []byte) {
	body := max(int64(binary.BigEndian.Uint16(b))-2, 0)
	switch {
	case code >= jpegSOF0 && code <= jpegEXP:
		f.scan = code == jpegSOS
		f.w.skip = body
		f.w.expect(1, f.prefix)
	case body == 0:
		f.w.cut(from, 4, nil)
		f.w.expect(1, f.prefix)
	default:
		f.w.expect(int(body), func(b []byte) { f.segment(from, code, b) })
	}
}

// segment parses the body of a segment that decoders can do without, or that only some files need.
func (f *jpegFormat) segment(from int64, code byte, body []byte) {
	f.w.expect(1, f.prefix)
	keep := 0
	tiff, isExif := bytes.CutPrefix(body, []byte("Exif\x00\x00"))
	switch {
	case code == jpegAPP0 && bytes.HasPrefix(body, []byte("JFIF\x00")) && len(body) >= 14:
		keep = 14 // without the thumbnail
	case code == jpegAPP0+2 && bytes.HasPrefix(body, []byte("ICC_PROFILE\x00")):
		keep = len(body)
	case code == jpegAPP0+14 && bytes.HasPrefix(body, []byte("Adobe")) && len(body) >= 12:
		keep = 12
	case code == jpegAPP0+1 && isExif && !f.turned:
		if o := picture.Orientation(tiff); o > 1 {
			f.turned = true
			f.w.cut(from, 4+int64(len(body)), jpegSegment(code, append([]byte("Exif\x00\x00"), minimalExif(o)...)))
			return
		}
	}
	rest := body[:keep:keep]
	if keep == 14 && (body[12] != 0 || body[13] != 0) {
		rest = append(rest[:12:12], 0, 0) // no thumbnail
	}
	if keep == len(body) && bytes.Equal(rest, body) {
		return
	}
	var put []byte
	if keep > 0 {
		put = jpegSegment(code, rest)
	}
	f.w.cut(from, 4+int64(len(body)), put)
}

func jpegSegment(code byte, body []byte) []byte {
	out := binary.BigEndian.AppendUint16([]byte{0xFF, code}, uint16(len(body)+2))
	return append(out, body...)
}

func (f *jpegFormat) finish(size int64) ([]Edit, error) { return f.w.tail(f.end, size), nil }
