package bluesky

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"math/rand/v2"
	"testing"

	"crier/publishing/connector"
)

func medium(contentType string, raw []byte) connector.Media {
	return connector.Media{ContentType: contentType, Size: int64(len(raw)), Name: "file",
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }}
}

// noise is a picture that hardly compresses.
func noise(w, h int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	r := rand.New(rand.NewPCG(1, 2))
	for i := range img.Pix {
		img.Pix[i] = byte(r.Uint32())
		if i%4 == 3 {
			img.Pix[i] = 255
		}
	}
	return img
}

func encoded(t *testing.T, write func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func pngOf(t *testing.T, img image.Image) []byte {
	enc := png.Encoder{CompressionLevel: png.NoCompression}
	return encoded(t, func(w io.Writer) error { return enc.Encode(w, img) })
}

// turnedJPEG carries an EXIF orientation.
func turnedJPEG(t *testing.T, img image.Image, orientation byte) []byte {
	t.Helper()
	raw := encoded(t, func(w io.Writer) error { return jpeg.Encode(w, img, &jpeg.Options{Quality: 100}) })
	tiff := append([]byte("Exif\x00\x00II*\x00\x08\x00\x00\x00\x01\x00"), 0x12, 0x01, 3, 0, 1, 0, 0, 0, orientation, 0, 0, 0, 0, 0, 0, 0)
	segment := append([]byte{0xff, 0xe1, 0, byte(len(tiff) + 2)}, tiff...)
	return append(append(bytes.Clone(raw[:2]), segment...), raw[2:]...)
}

func TestPictureThatFitsIsUntouched(t *testing.T) {
	t.Parallel()
	wide := image.NewRGBA(image.Rect(0, 0, 30, 20))
	for name, tc := range map[string]struct {
		raw  []byte
		w, h int
	}{
		"png":                  {pngOf(t, wide), 30, 20},
		"gif":                  {encoded(t, func(w io.Writer) error { return gif.Encode(w, wide, nil) }), 30, 20},
		"jpeg":                 {turnedJPEG(t, wide, 1), 30, 20},
		"jpeg upside down":     {turnedJPEG(t, wide, 3), 30, 20},
		"jpeg on its side":     {turnedJPEG(t, wide, 6), 20, 30},
		"what is no picture":   {[]byte("hello"), 0, 0},
		"exactly at the limit": {make([]byte, maxBlob), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pic, err := New().picture(t.Context(), medium("image/"+name, tc.raw))
			if err != nil || !bytes.Equal(pic.bytes, tc.raw) || pic.contentType != "image/"+name || pic.width != tc.w || pic.height != tc.h {
				t.Errorf("%d bytes of %s, %dx%d: %v", len(pic.bytes), pic.contentType, pic.width, pic.height, err)
			}
		})
	}
}

func TestPictureThatIsTooBigShrinks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		raw  []byte
		w, h int // their proportion
	}{
		"png":              {pngOf(t, noise(900, 600)), 3, 2},
		"large png":        {pngOf(t, image.NewRGBA(image.Rect(0, 0, 2600, 400))), 13, 2},
		"jpeg on its side": {turnedJPEG(t, noise(1000, 500), 6), 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if len(tc.raw) <= maxBlob {
				t.Fatalf("only %d bytes", len(tc.raw))
			}
			c := New()
			pic, err := c.picture(t.Context(), medium("image/png", tc.raw))
			if err != nil {
				t.Fatal(err)
			}
			cfg, format, err := image.DecodeConfig(bytes.NewReader(pic.bytes))
			if err != nil || format != "jpeg" || pic.contentType != "image/jpeg" || len(pic.bytes) > maxBlob || cfg.Width != pic.width || cfg.Height != pic.height {
				t.Fatalf("%d bytes of %s, %dx%d: %v", len(pic.bytes), format, pic.width, pic.height, err)
			}
			if max(pic.width, pic.height) > maxSide || max(pic.width, pic.height) < 300 {
				t.Errorf("%dx%d", pic.width, pic.height)
			}
			if off := pic.width*tc.h - pic.height*tc.w; off > 20 || off < -20 {
				t.Errorf("%dx%d is not %d:%d", pic.width, pic.height, tc.w, tc.h)
			}
			again, err := c.picture(t.Context(), medium("image/png", tc.raw))
			if err != nil || !bytes.Equal(again.bytes, pic.bytes) {
				t.Errorf("the same picture shrinks to other bytes: %v", err)
			}
		})
	}
}

func TestPictureThatCannotShrinkIsRefused(t *testing.T) {
	t.Parallel()
	bomb := pngOf(t, image.NewPaletted(image.Rect(0, 0, 1, 1), color.Palette{color.Black}))
	copy(bomb[16:], []byte{0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff}) // claims 65,535 x 65,535
	r := crcOf(bomb[12:29])
	copy(bomb[29:], r)
	for name, raw := range map[string][]byte{
		"a big gif":          append(encoded(t, func(w io.Writer) error { return gif.Encode(w, noise(40, 40), nil) }), make([]byte, maxBlob)...),
		"what is no picture": make([]byte, maxBlob+1),
		"a bomb":             append(bomb, make([]byte, maxBlob)...),
		"half a picture":     pngOf(t, noise(900, 600))[:maxBlob+1],
		"an empty file":      {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := New().picture(t.Context(), medium("image/png", raw))
			var e *connector.Error
			if !errors.As(err, &e) || e.Kind != connector.KindContent || e.Public == "" {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestTransparencyBecomesWhite(t *testing.T) {
	t.Parallel()
	got := scaled(image.NewNRGBA(image.Rect(0, 0, 8, 8)), 4)
	if got.Rect.Dx() != 4 || got.RGBAAt(1, 1) != (color.RGBA{255, 255, 255, 255}) {
		t.Errorf("%v %v", got.Rect, got.RGBAAt(1, 1))
	}
}

func TestUpright(t *testing.T) {
	t.Parallel()
	// The file's pixels, by orientation, of a picture that is shown as "12" above "34" above "56".
	for orientation, file := range map[int][]string{
		1: {"12", "34", "56"}, 2: {"21", "43", "65"}, 3: {"65", "43", "21"}, 4: {"56", "34", "12"},
		5: {"135", "246"}, 6: {"246", "135"}, 7: {"642", "531"}, 8: {"531", "642"},
	} {
		t.Run(fmt.Sprint(orientation), func(t *testing.T) {
			t.Parallel()
			src := image.NewRGBA(image.Rect(0, 0, len(file[0]), len(file)))
			for y, row := range file {
				for x, c := range []byte(row) {
					src.SetRGBA(x, y, color.RGBA{R: c})
				}
			}
			shown := ""
			dst := upright(src, orientation)
			for y := range dst.Rect.Dy() {
				for x := range dst.Rect.Dx() {
					shown += string(rune(dst.RGBAAt(x, y).R))
				}
			}
			if shown != "123456" || dst.Rect.Dx() != 2 {
				t.Errorf("shown as %s, %v", shown, dst.Rect)
			}
		})
	}
}

func FuzzOrientation(f *testing.F) {
	f.Add([]byte("\xff\xd8\xff\xe1\x00\x20Exif\x00\x00II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if o := orientationOf(raw); o < 1 || o > 8 {
			t.Fatal(o)
		}
	})
}

func crcOf(chunk []byte) []byte {
	return binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(chunk))
}
