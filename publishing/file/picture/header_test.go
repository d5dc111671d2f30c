package picture

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const pngHeadSize = 33 // the bytes of the signature and the first chunk

func pngChunk(kind string, body []byte) []byte {
	out := slices.Concat(binary.BigEndian.AppendUint32(nil, uint32(len(body))), []byte(kind), body)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:]))
}

// pngHead returns the signature and the first chunk of a PNG with transparency.
func pngHead(w, h int, depth, interlaced byte) []byte {
	sizes := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(w)), uint32(h))
	return append([]byte("\x89PNG\r\n\x1a\n"), pngChunk("IHDR", append(sizes, depth, 6, 0, 0, interlaced))...)
}

// blankPNG returns a small file with a transparent image. The sides of an interlaced image must be
// multiples of 8.
func blankPNG(t testing.TB, w, h int, depth byte, interlaced bool) []byte {
	t.Helper()
	rows, flag := h, byte(0)
	if interlaced {
		rows, flag = h/8*15, 1 // the rows of all seven passes
	}
	var data bytes.Buffer
	z := zlib.NewWriter(&data)
	zeros := make([]byte, 64<<10)
	for left := rows + w*h*int(depth)/2; left > 0; left -= len(zeros) {
		if _, err := z.Write(zeros[:min(left, len(zeros))]); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return slices.Concat(pngHead(w, h, depth, flag), pngChunk("IDAT", data.Bytes()), pngChunk("IEND", nil))
}

// The cases cover every image type that image/png returns.
func TestInspect_CountsAtLeastTheBytesOfThePNGDecoder(t *testing.T) {
	t.Parallel()
	size := image.Rect(0, 0, 370, 230)
	withKey := func(raw, key []byte) []byte { // the key is the transparent color
		return slices.Concat(raw[:pngHeadSize], pngChunk("tRNS", key), raw[pngHeadSize:])
	}
	clear := func(img interface {
		image.Image
		Set(x, y int, c color.Color)
	}) image.Image {
		img.Set(0, 0, color.Transparent)
		return img
	}
	opaque := image.NewRGBA64(size)
	for i := range opaque.Pix {
		opaque.Pix[i] = 255
	}
	for name, raw := range map[string][]byte{
		"Gray":            pngOf(t, image.NewGray(size)),
		"NRGBA of gray":   withKey(pngOf(t, image.NewGray(size)), make([]byte, 2)),
		"Gray16":          pngOf(t, image.NewGray16(size)),
		"NRGBA64 of gray": withKey(pngOf(t, image.NewGray16(size)), make([]byte, 2)),
		"RGBA":            pngOf(t, noise(370, 230)),
		"NRGBA of RGB":    withKey(pngOf(t, noise(370, 230)), make([]byte, 6)),
		"RGBA64":          pngOf(t, opaque),
		"NRGBA64 of RGB":  withKey(pngOf(t, opaque), make([]byte, 6)),
		"NRGBA":           pngOf(t, clear(image.NewNRGBA(size))),
		"NRGBA64":         pngOf(t, clear(image.NewNRGBA64(size))),
		"Paletted":        pngOf(t, image.NewPaletted(size, color.Palette{color.Black, color.White})),
	} {
		img, err := png.Decode(bytes.NewReader(raw))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		value := reflect.ValueOf(img).Elem()
		kind, _, _ := strings.Cut(name, " ")
		if value.Type().Name() != kind {
			t.Errorf("%s: decoded as %T, want %s", name, img, kind)
		}
		h, err := Inspect(bytes.NewReader(raw))
		if err != nil || h.decoded < int64(value.FieldByName("Pix").Len()) {
			t.Errorf("%s: got %+v and error %v, want at least %d bytes", name, h, err, value.FieldByName("Pix").Len())
		}
	}
}

func TestInspect_InterlacedPNGCountsTwice(t *testing.T) {
	t.Parallel()
	plain, err := Inspect(bytes.NewReader(blankPNG(t, 80, 40, 8, false)))
	if err != nil || plain.costly {
		t.Fatalf("got %+v and error %v, want a header that is not costly", plain, err)
	}
	raw := blankPNG(t, 80, 40, 8, true)
	if _, err := png.Decode(bytes.NewReader(raw)); err != nil {
		t.Fatal(err)
	}
	interlaced, err := Inspect(bytes.NewReader(raw))
	if err != nil || !interlaced.costly || interlaced.decoded != 2*plain.decoded {
		t.Errorf("got %+v and error %v, want twice the bytes of %+v", interlaced, err, plain)
	}
}
