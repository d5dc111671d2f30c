package picture

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"crier/tests/fixture"
)

var small = Spec{MaxBytes: 1_000_000, MaxSide: 2000}

// noise returns an image of random pixels, which hardly compresses.
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

func encoded(t testing.TB, write func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func pngOf(t testing.TB, img image.Image) []byte {
	t.Helper()
	enc := png.Encoder{CompressionLevel: png.NoCompression}
	return encoded(t, func(w io.Writer) error { return enc.Encode(w, img) })
}

// turnedJPEG returns a JPEG with an EXIF orientation.
func turnedJPEG(t testing.TB, img image.Image, orientation byte) []byte {
	t.Helper()
	raw := encoded(t, func(w io.Writer) error { return jpeg.Encode(w, img, &jpeg.Options{Quality: 100}) })
	tiff := append([]byte("Exif\x00\x00II*\x00\x08\x00\x00\x00\x01\x00"), 0x12, 0x01, 3, 0, 1, 0, 0, 0, orientation, 0, 0, 0, 0, 0, 0, 0)
	segment := append([]byte{0xff, 0xe1, 0, byte(len(tiff) + 2)}, tiff...)
	return append(append(bytes.Clone(raw[:2]), segment...), raw[2:]...)
}

func TestFit_TooLargeImageBecomesSmallJPEG(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		raw  []byte
		w, h int // their proportion
	}{
		"png":                      {raw: pngOf(t, noise(900, 600)), w: 3, h: 2},
		"wide png":                 {raw: pngOf(t, image.NewRGBA(image.Rect(0, 0, 2600, 400))), w: 13, h: 2},
		"jpeg on its side":         {raw: turnedJPEG(t, noise(1000, 500), 6), w: 1, h: 2},
		"jpeg of four full colors": {raw: fixture.BlankJPEG(3000, 2000, false, 0x11, "\x01\x02\x03"), w: 3, h: 2},
		"progressive jpeg":         {raw: fixture.BlankJPEG(3000, 2000, true, 0x22, "\x01\x02\x03"), w: 3, h: 2},
		"jpeg of red, green, blue": {raw: fixture.BlankJPEG(3000, 2000, false, 0x11, "RGB"), w: 3, h: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pic, err := Fit(t.Context(), bytes.NewReader(tc.raw), small)
			if err != nil {
				t.Fatal(err)
			}
			cfg, format, err := image.DecodeConfig(bytes.NewReader(pic.Bytes))
			if err != nil || format != "jpeg" || pic.ContentType != "image/jpeg" || len(pic.Bytes) > small.MaxBytes || cfg.Width != pic.Width || cfg.Height != pic.Height {
				t.Fatalf("got %d bytes of %s, %dx%d, error %v; want a JPEG of at most %d bytes",
					len(pic.Bytes), format, pic.Width, pic.Height, err, small.MaxBytes)
			}
			if max(pic.Width, pic.Height) > small.MaxSide || max(pic.Width, pic.Height) < 300 {
				t.Errorf("the size is %dx%d, want a longer side of 300 to %d", pic.Width, pic.Height, small.MaxSide)
			}
			if off := pic.Width*tc.h - pic.Height*tc.w; off > 20 || off < -20 {
				t.Errorf("the size is %dx%d, want a ratio of %d:%d", pic.Width, pic.Height, tc.w, tc.h)
			}
			again, err := Fit(t.Context(), bytes.NewReader(tc.raw), small)
			if err != nil || !bytes.Equal(again.Bytes, pic.Bytes) {
				t.Errorf("a second call returns other bytes, or the error %v", err)
			}
		})
	}
}

func TestFit_RefusesImagesThatCannotBeMadeSmaller(t *testing.T) {
	t.Parallel()
	bomb := pngOf(t, image.NewPaletted(image.Rect(0, 0, 1, 1), color.Palette{color.Black}))
	copy(bomb[16:], []byte{0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff}) // a size of 65,535 x 65,535
	copy(bomb[29:], binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(bomb[12:29])))
	whole := pngOf(t, noise(900, 600))
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	pngOfSize := func(w, h int, depth, interlaced byte) []byte {
		return append(pngHead(w, h, depth, interlaced), whole[33:]...)
	}
	for name, raw := range map[string][]byte{
		"a gif":                            encoded(t, func(w io.Writer) error { return gif.Encode(w, noise(40, 40), nil) }),
		"a file that is no picture":        make([]byte, 2_000_000),
		"a decompression bomb":             append(bomb, make([]byte, 1_000_000)...),
		"half a picture":                   whole[:len(whole)/2],
		"a picture with a bit flipped":     flipped,
		"an empty file":                    {},
		"a jpeg of too many pixels":        fixture.BlankJPEG(8000, 5001, false, 0x22, "\x01\x02\x03"),
		"a progressive jpeg of 40 million": fixture.BlankJPEG(8000, 5000, true, 0x22, "\x01\x02\x03"),
		"a png of too many pixels":         pngOfSize(6700, 5001, 8, 0),
		"a png of 16 bits, 17 million":     pngOfSize(4120, 4120, 16, 0),
		"an interlaced png of 17 million":  pngOfSize(4120, 4120, 8, 1),
		"an RGB jpeg of 40 million":        fixture.BlankJPEG(8000, 5000, false, 0x11, "RGB"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Fit(t.Context(), bytes.NewReader(raw), small)
			var refusal *Refusal
			if !errors.As(err, &refusal) || refusal.Reason == "" {
				t.Errorf("got %v, want a Refusal with a reason", err)
			}
		})
	}
}

// failing is a file whose Read calls fails once left bytes were read.
type failing struct {
	*bytes.Reader
	left  int
	fails func() error
}

func (f *failing) Read(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, f.fails()
	}
	return f.Reader.Read(p)
}

func TestFit_ReadErrorIsNotARefusal(t *testing.T) {
	t.Parallel()
	raw := pngOf(t, noise(900, 600))
	failsWith := func(fails func() error) *failing {
		return &failing{Reader: bytes.NewReader(raw), left: len(raw) / 2, fails: fails}
	}
	away := errors.New("the disk is not reachable")
	var refusal *Refusal
	_, err := Fit(t.Context(), failsWith(func() error { return away }), small)
	if !errors.Is(err, away) || errors.As(err, &refusal) {
		t.Errorf("a file that cannot be read: %v, want the error of the file", err)
	}
	_, err = Fit(t.Context(), failsWith(func() error { return []error{}[len(raw)] }), small)
	if !errors.As(err, &refusal) {
		t.Errorf("a panic: %v, want a Refusal", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = Fit(ctx, failsWith(func() error { cancel(); return io.ErrNoProgress }), small)
	if errors.As(err, &refusal) || err == nil {
		t.Errorf("a cancelled context: %v, want an error that is no Refusal", err)
	}
}

func TestInspect_ReturnsTheSizeAsShown(t *testing.T) {
	t.Parallel()
	wide := image.NewRGBA(image.Rect(0, 0, 30, 20))
	for name, tc := range map[string]struct {
		raw  []byte
		w, h int
	}{
		"png":              {raw: pngOf(t, wide), w: 30, h: 20},
		"gif":              {raw: encoded(t, func(w io.Writer) error { return gif.Encode(w, wide, nil) }), w: 30, h: 20},
		"jpeg":             {raw: turnedJPEG(t, wide, 1), w: 30, h: 20},
		"jpeg upside down": {raw: turnedJPEG(t, wide, 3), w: 30, h: 20},
		"jpeg on its side": {raw: turnedJPEG(t, wide, 6), w: 20, h: 30},
	} {
		h, err := Inspect(bytes.NewReader(tc.raw))
		if err != nil || h.Width != tc.w || h.Height != tc.h {
			t.Errorf("%s: got %+v and error %v, want %dx%d", name, h, err, tc.w, tc.h)
		}
	}
	if _, err := Inspect(strings.NewReader("hello")); err == nil {
		t.Error("a text is accepted as an image")
	}
}

func TestParseSpec(t *testing.T) {
	t.Parallel()
	if s, err := ParseSpec(small.String()); err != nil || s != small {
		t.Errorf("got %v and error %v, want %v", s, err, small)
	}
	for _, text := range []string{"", "jpeg", "jpeg-1", "jpeg-0-1", "jpeg-1-x", "webp-1-1", "jpeg-1-1-1"} {
		if s, err := ParseSpec(text); err == nil {
			t.Errorf("%q is parsed as %v, want an error", text, s)
		}
	}
}

func TestUpright(t *testing.T) {
	t.Parallel()
	// For each orientation, the pixels in the file of a picture that is displayed as the rows 12,
	// 34, 56.
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
			dst := applyOrientation(src, orientation)
			for y := range dst.Rect.Dy() {
				for x := range dst.Rect.Dx() {
					shown += string(rune(dst.RGBAAt(x, y).R))
				}
			}
			if shown != "123456" || dst.Rect.Dx() != 2 {
				t.Errorf("shown as %s in %v, want 123456 with a width of 2", shown, dst.Rect)
			}
		})
	}
}

func TestHalve_EveryPixelContributes(t *testing.T) {
	t.Parallel()
	for from := 1; from <= 33; from++ {
		for to := 1; to <= from; to++ {
			for at := range from {
				src := image.NewRGBA(image.Rect(0, 0, from, 1))
				draw.Draw(src, src.Rect, image.Black, image.Point{}, draw.Src)
				src.Set(at, 0, color.White)
				dst := halve(src, image.Pt(to, 1))
				lit := 0
				for x := range dst.Rect.Dx() {
					lit += int(dst.RGBAAt(x, 0).R)
				}
				if lit == 0 || dst.Rect.Dx() != max(to, (from+1)/2) {
					t.Fatalf("pixel %d of %d is lost in %v", at, from, dst.Rect)
				}
			}
		}
	}
}

func TestReduce_KeepsMeanAndProportion(t *testing.T) {
	t.Parallel()
	src := image.NewRGBA(image.Rect(0, 0, 640, 320))
	for i := range src.Pix {
		src.Pix[i] = byte(i / 4 % 2 * 200) // columns that alternate between 0 and 200
		if i%4 == 3 {
			src.Pix[i] = 255
		}
	}
	for _, side := range []int{320, 300, 100, 37, 1} {
		size := limited(src.Rect.Size(), side)
		dst, err := reduce(t.Context(), src, size)
		if err != nil || dst.Rect.Size() != size || size != image.Pt(side, max(1, side/2)) {
			t.Fatalf("a side of %d: got %v for %v, error %v", side, dst.Rect, size, err)
		}
		sum := 0
		for x := range size.X {
			sum += int(dst.RGBAAt(x, 0).G)
		}
		if mean := sum / size.X; mean < 95 || mean > 105 {
			t.Errorf("a side of %d: the mean is %d, want about 100", side, mean)
		}
	}
	same, err := reduce(t.Context(), src, src.Rect.Size())
	if err != nil || !bytes.Equal(same.Pix, src.Pix) {
		t.Errorf("an image that is small enough was changed, or has the error %v", err)
	}
}

func TestHalve_TransparencyBecomesWhite(t *testing.T) {
	t.Parallel()
	clear := color.NRGBA{R: 255}
	for name, src := range map[string]draw.Image{
		"nrgba":    image.NewNRGBA(image.Rect(0, 0, 8, 8)),
		"nrgba64":  image.NewNRGBA64(image.Rect(0, 0, 8, 8)),
		"paletted": image.NewPaletted(image.Rect(0, 0, 8, 8), color.Palette{clear}),
	} {
		dst := halve(src, image.Pt(4, 4))
		if got := dst.RGBAAt(1, 1); got != (color.RGBA{255, 255, 255, 255}) || dst.Rect.Dx() != 4 {
			t.Errorf("%s becomes %v in %v, want white in a width of 4", name, got, dst.Rect)
		}
	}
}

func FuzzOrientation(f *testing.F) {
	f.Add([]byte("II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if o := Orientation(raw); o < 1 || o > 8 {
			t.Fatalf("the orientation is %d, want 1 to 8", o)
		}
	})
}

// No input makes Inspect or the decoders panic.
func FuzzFit(f *testing.F) {
	f.Add(pngOf(f, noise(3, 2)))
	f.Add(turnedJPEG(f, noise(9, 9), 6))
	f.Add(fixture.BlankJPEG(20, 20, true, 0x21, "\x01\x02\x03"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, err := Inspect(bytes.NewReader(raw))
		if err != nil || h.Width*h.Height > 1_000_000 {
			return
		}
		var refusal *Refusal
		_, err = Fit(t.Context(), bytes.NewReader(raw), Spec{MaxBytes: 1000, MaxSide: 16})
		if errors.As(err, &refusal) && strings.Contains(refusal.Error(), "panic") {
			t.Fatal(err)
		}
	})
}

func BenchmarkFit(b *testing.B) {
	for name, raw := range map[string][]byte{
		"png of 10 MB":               pngOf(b, noise(2200, 1200)),
		"png of 33.5 million pixels": blankPNG(b, 6700, 5000, 8, false),
		"jpeg of 12 million pixels":  fixture.BlankJPEG(4000, 3000, false, 0x22, "\x01\x02\x03"),
		"jpeg of 40 million pixels":  fixture.BlankJPEG(8000, 5000, false, 0x11, "\x01\x02\x03"),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Fit(b.Context(), bytes.NewReader(raw), small); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A picture that is scaled down keeps the color profile of the image, so its colors stay the same.
func TestFit_KeepsTheColorProfile(t *testing.T) {
	t.Parallel()
	img := image.NewRGBA(image.Rect(0, 0, 40, 30))
	var raw bytes.Buffer
	if err := jpeg.Encode(&raw, img, nil); err != nil {
		t.Fatal(err)
	}
	profiled := func(size int, colors string) []byte {
		profile := make([]byte, size)
		copy(profile[16:], colors)
		out := slices.Clone(raw.Bytes()[:2])
		const most = 1<<16 - 1 - 2 - 14
		parts := slices.Collect(slices.Chunk(profile, most))
		for i, part := range parts {
			out = append(out, 0xff, 0xe2)
			out = binary.BigEndian.AppendUint16(out, uint16(2+14+len(part)))
			out = append(append(out, "ICC_PROFILE\x00"...), byte(i+1), byte(len(parts)))
			out = append(out, part...)
		}
		return append(out, raw.Bytes()[2:]...)
	}
	for _, test := range []struct {
		name   string
		size   int
		colors string
		kept   bool
	}{
		{name: "small", size: 600, colors: "RGB ", kept: true},
		{name: "of two parts", size: 100_000, colors: "RGB ", kept: true},
		{name: "for printers", size: 600, colors: "CMYK"},
		{name: "too large for the picture", size: 500_000, colors: "RGB "},
	} {
		got, err := Fit(t.Context(), bytes.NewReader(profiled(test.size, test.colors)), Spec{MaxBytes: 1_000_000, MaxSide: 2000})
		if err != nil {
			t.Fatal(err)
		}
		if kept := bytes.Count(got.Bytes, []byte("ICC_PROFILE\x00")) > 0; kept != test.kept {
			t.Errorf("%s: the profile is kept: %v, want %v", test.name, kept, test.kept)
		}
		if c, err := jpeg.DecodeConfig(bytes.NewReader(got.Bytes)); err != nil || c.Width != 40 || len(got.Bytes) > 1_000_000 {
			t.Errorf("%s: the picture is %+v, %v", test.name, c, err)
		}
	}
}
