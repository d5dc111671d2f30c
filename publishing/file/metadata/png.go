package metadata

import (
	"encoding/binary"
	"hash/crc32"

	"crier/publishing/file/picture"
)

// pngChunks are the chunks that stay. They are needed to show the pixels in the right colors or to
// play an animation.
var pngChunks = map[string]bool{
	"IHDR": true, "PLTE": true, "IDAT": true, "tRNS": true, "acTL": true, "fcTL": true, "fdAT": true, "cHRM": true,
	"gAMA": true, "iCCP": true, "sBIT": true, "sRGB": true, "bKGD": true, "pHYs": true, "cICP": true, "mDCV": true,
	"cLLI": true, "mDCv": true, "cLLi": true, "IEND": true,
}

// KeepsChunk reports whether PNG chunks of this kind are published with the picture.
func KeepsChunk(kind string) bool { return pngChunks[kind] }

// maxExif is the maximum size in bytes of the EXIF data from which an orientation is read.
const maxExif = 1 << 20

const pngHead, pngSum = 8, 4 // length and type, and the checksum

type pngFormat struct {
	w *walker
	// end is the position after IEND; -1 before IEND is reached.
	end int64
	// pixels means that an IDAT was seen. turned means that an orientation was read. Browsers
	// ignore an orientation after an IDAT.
	pixels, turned bool
}

func newPNG(w *walker) *pngFormat {
	f := &pngFormat{w: w, end: -1}
	w.skip = 8
	w.expect(pngHead, f.chunk)
	return f
}

func (f *pngFormat) chunk(head []byte) {
	from, body, kind := f.w.at-pngHead, int64(binary.BigEndian.Uint32(head)), string(head[4:])
	f.w.skip = body + pngSum
	switch {
	case kind == "IEND":
		f.end, f.w.skip, f.w.done = from+pngHead+body+pngSum, 0, true
	case kind == "IDAT":
		f.pixels = true
	case kind == "eXIf" && !f.pixels && !f.turned && body > 0 && body <= maxExif:
		f.turned, f.w.skip = true, 0
		f.w.expect(int(body), func(tiff []byte) { f.exif(from, tiff) })
		return
	case !pngChunks[kind]:
		f.w.cut(from, pngHead+body+pngSum, nil)
	}
}

func (f *pngFormat) exif(from int64, tiff []byte) {
	var put []byte
	if o := picture.Orientation(tiff); o > 1 {
		put = pngChunk("eXIf", minimalExif(o))
	}
	f.w.cut(from, pngHead+int64(len(tiff))+pngSum, put)
	f.w.skip = pngSum
	f.w.expect(pngHead, f.chunk)
}

func (f *pngFormat) finish(size int64) ([]Edit, error) { return f.w.tail(f.end, size), nil }

func pngChunk(kind string, body []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	out = append(append(out, kind...), body...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:]))
}

// minimalExif returns EXIF data with an orientation and nothing else.
func minimalExif(orientation int) []byte {
	return []byte{
		'M', 'M', 0, 42, 0, 0, 0, 8, // big endian; the directory follows
		0, 1, // one entry: a tag, its type, a short, their number, the value
		0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, byte(orientation), 0, 0,
		0, 0, 0, 0, // no further directory
	}
}
