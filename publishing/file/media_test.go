package file_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"crier/platform/fault"
	"crier/publishing/file"
)

var limits = file.Limits{Image: 1 << 20, Video: 2 << 20}

func picture(t *testing.T, encode func(io.Writer, image.Image) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b, image.NewGray(image.Rect(0, 0, 7, 5))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func film() []byte {
	return append([]byte("\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom"), make([]byte, 64)...)
}

func TestSniff(t *testing.T) {
	t.Parallel()
	asPNG := picture(t, png.Encode)
	asJPEG := picture(t, func(w io.Writer, m image.Image) error { return jpeg.Encode(w, m, nil) })
	asGIF := picture(t, func(w io.Writer, m image.Image) error { return gif.Encode(w, m, nil) })
	for name, c := range map[string]struct {
		file  string
		bytes []byte
		want  string // the extension, or the kind of refusal
	}{
		"png":                         {file: "a.png", bytes: asPNG, want: "png"},
		"jpeg named jpeg":             {file: "a.JPEG", bytes: asJPEG, want: "jpg"},
		"gif":                         {file: "a.gif", bytes: asGIF, want: "gif"},
		"mp4":                         {file: "a.mp4", bytes: film(), want: "mp4"},
		"a bare extension as a name":  {file: "png", bytes: asJPEG, want: "jpg"},
		"no name at all":              {file: "undefined", bytes: asPNG, want: "png"},
		"a jpeg named png":            {file: "a.png", bytes: asJPEG, want: "invalid"},
		"a picture named html":        {file: "a.html", bytes: asPNG, want: "invalid"},
		"svg":                         {file: "a.svg", bytes: []byte(`<svg xmlns="http://www.w3.org/2000/svg"></svg>`), want: "invalid"},
		"html named png":              {file: "a.png", bytes: []byte("<html><script>x</script></html>"), want: "invalid"},
		"nothing":                     {file: "a.png", bytes: nil, want: "invalid"},
		"text":                        {file: "a.txt", bytes: []byte("hello"), want: "invalid"},
		"a picture past its limit":    {file: "a.png", bytes: append(append([]byte{}, asPNG...), make([]byte, 1<<20)...), want: "too_large"},
		"a film past its limit":       {file: "a.mp4", bytes: append(film(), make([]byte, 2<<20)...), want: "too_large"},
		"a film larger than pictures": {file: "a.mp4", bytes: append(film(), make([]byte, 1<<20)...), want: "mp4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind, r, err := file.Sniff(c.file, bytes.NewReader(c.bytes), limits)
			var got []byte
			if err == nil {
				got, err = io.ReadAll(r)
			}
			if err != nil {
				if string(fault.KindOf(err)) != c.want {
					t.Fatalf("refused as %v, want %s", err, c.want)
				}
				return
			}
			if kind.Ext != c.want || !bytes.Equal(got, c.bytes) {
				t.Fatalf("got %+v and %d bytes, want %s and %d bytes", kind, len(got), c.want, len(c.bytes))
			}
			if !kind.Video && (kind.Width != 7 || kind.Height != 5) {
				t.Errorf("the size is %dx%d, want 7x5", kind.Width, kind.Height)
			}
		})
	}
}

// reads returns the bytes from the reader that Sniff returns, or the error of Sniff or of that
// reader.
func reads(name string, r io.Reader) ([]byte, error) {
	_, r, err := file.Sniff(name, r, limits)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// Cameras store the pixels as the sensor delivers them and record in EXIF how to display them.
func TestSniff_SizeIsAsShown(t *testing.T) {
	t.Parallel()
	plain := picture(t, func(w io.Writer, m image.Image) error { return jpeg.Encode(w, m, nil) })
	turned := func(orientation byte) []byte {
		tiff := append([]byte("Exif\x00\x00II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00"), orientation, 0, 0, 0, 0, 0, 0, 0)
		segment := append([]byte{0xff, 0xe1, 0, byte(2 + len(tiff))}, tiff...)
		return slices.Concat(plain[:2], segment, plain[2:])
	}
	for orientation := range byte(10) {
		image := turned(orientation)
		kind, r, err := file.Sniff("a.jpg", bytes.NewReader(image), limits)
		if err != nil {
			t.Fatal(err)
		}
		want := [2]int{7, 5}
		if orientation > 4 && orientation < 9 {
			want = [2]int{5, 7}
		}
		if got := [2]int{kind.Width, kind.Height}; got != want {
			t.Errorf("orientation %d: got %v, want %v", orientation, got, want)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, image) {
			t.Errorf("orientation %d: got %d bytes, %v; want the whole file", orientation, len(got), err)
		}
	}
}

func TestSniff_RefusesIncompleteImages(t *testing.T) {
	t.Parallel()
	noisy := image.NewPaletted(image.Rect(0, 0, 40, 30), palette.WebSafe)
	for i := range noisy.Pix {
		noisy.Pix[i] = byte(i * i % len(palette.WebSafe))
	}
	encoded := func(encode func(io.Writer) error) []byte {
		var b bytes.Buffer
		if err := encode(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	asJPEG := encoded(func(w io.Writer) error { return jpeg.Encode(w, noisy, nil) })
	preview := append([]byte{0xFF, 0xE1, byte((len(asJPEG) + 2) >> 8), byte(len(asJPEG) + 2)}, asJPEG...)
	for name, whole := range map[string][]byte{
		"png":  encoded(func(w io.Writer) error { return png.Encode(w, noisy) }),
		"jpeg": asJPEG,
		"jpeg with a preview that has an end of its own": slices.Concat(asJPEG[:2], preview, asJPEG[2:]),
		"gif of two frames": encoded(func(w io.Writer) error {
			return gif.EncodeAll(w, &gif.GIF{Image: []*image.Paletted{noisy, noisy}, Delay: []int{1, 1}})
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, r := range []io.Reader{bytes.NewReader(whole), iotest.OneByteReader(bytes.NewReader(whole)), iotest.DataErrReader(bytes.NewReader(whole))} {
				if got, err := reads("", r); err != nil || !bytes.Equal(got, whole) {
					t.Fatalf("read %d bytes with error %v, want %d", len(got), err, len(whole))
				}
			}
			if got, err := reads("", io.MultiReader(bytes.NewReader(whole), strings.NewReader("a film of the phone"))); err != nil || len(got) != len(whole)+19 {
				t.Fatalf("with bytes after its end: %v, want no error", err)
			}
			for n := 1; n < len(whole); n++ {
				if _, err := reads("", bytes.NewReader(whole[:n])); !fault.Is(err, fault.Invalid) {
					t.Fatalf("%d of %d bytes: %v, want Invalid", n, len(whole), err)
				}
			}
		})
	}
}

// TestSniff_RefusesDamagedPNG covers unfinished downloads into a preallocated file, which have a
// gap in the middle.
func TestSniff_RefusesDamagedPNG(t *testing.T) {
	t.Parallel()
	whole := picture(t, png.Encode)
	pixels := bytes.Index(whole, []byte("IDAT"))
	note := pngChunk("tEXt", []byte("Comment\x00a"))
	note[len(note)-1]++
	size := pngChunk("pHYs", make([]byte, 9))
	size[len(size)-1]++
	for name, c := range map[string]struct {
		bytes []byte
		want  string // part of the message; "" if the file is accepted
	}{
		"zeros in the pixels":              {zeroed(whole, pixels+6, 5), "the checksum of its IDAT chunk is wrong"},
		"zeros in place of a chunk":        {zeroed(whole, pixels-4, 12), "it has unexpected bytes where a chunk should begin"},
		"a wrong checksum of a comment":    {slices.Concat(whole[:pixels-4], note, whole[pixels-4:]), ""},
		"a wrong checksum of the density":  {slices.Concat(whole[:pixels-4], size, whole[pixels-4:]), "the checksum of its pHYs chunk is wrong"},
		"wrong bytes after the end marker": {slices.Concat(whole, whole[8:40], make([]byte, 99)), ""},
	} {
		_, err := reads("a.png", iotest.OneByteReader(bytes.NewReader(c.bytes)))
		if c.want == "" && err != nil || c.want != "" && (!fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want an error with %q", name, err, c.want)
		}
	}
}

// zeroed returns a copy of b in which n bytes, starting at from, are zero.
func zeroed(b []byte, from, n int) []byte {
	out := bytes.Clone(b)
	clear(out[from : from+n])
	return out
}

func pngChunk(kind string, body []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	out = append(append(out, kind...), body...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:]))
}

func TestSniff_RefusesImpossibleImages(t *testing.T) {
	t.Parallel()
	sized := func(w, h uint32) []byte {
		b := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), make([]byte, 8)...)
		binary.BigEndian.PutUint32(b[16:], w)
		binary.BigEndian.PutUint32(b[20:], h)
		b = append(b, 1, 0, 0, 0, 0) // one bit per pixel
		b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[12:]))
		return append(b, "\x00\x00\x00\x00IEND\xaeB`\x82"...)
	}
	for name, c := range map[string]struct {
		file  string
		bytes []byte
		want  string // part of the message; "" if the file is accepted
	}{
		"as many pixels as allowed":       {file: "a.png", bytes: sized(10_000, 10_000), want: ""},
		"a row more":                      {file: "a.png", bytes: sized(10_000, 10_001), want: "too many pixels: 10000 x 10001"},
		"the most that a header can have": {file: "a.png", bytes: sized(1<<31-1, 1<<31-1), want: "cannot be read"},
		"no pixels":                       {file: "a.png", bytes: sized(0, 5), want: "cannot be read"},
		"a gif without pixels":            {file: "a.gif", bytes: []byte("GIF89a\x00\x00\x00\x00\x00\x00\x00;"), want: "no pixels"},
		"a png of nonsense":               {file: "a.png", bytes: append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte("nonsense"), 99)...), want: "cannot be read"},
		"a jpeg of nonsense":              {file: "a.jpg", bytes: append([]byte("\xff\xd8\xff\xe0"), bytes.Repeat([]byte("nonsense"), 99)...), want: "cannot be read"},
		"a png named as a jpeg":           {file: "a.jpg", bytes: sized(1, 1), want: "The file is named .jpg, but its content is a PNG image."},
		"a film named as a gif":           {file: "a.gif", bytes: film(), want: "The file is named .gif, but its content is an MP4 video."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := reads(c.file, bytes.NewReader(c.bytes))
			if c.want == "" && err != nil || c.want != "" && (!fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestSniff_FindsAHeaderFarFromTheBeginning(t *testing.T) {
	t.Parallel()
	plain := picture(t, func(w io.Writer, m image.Image) error { return jpeg.Encode(w, m, nil) })
	profile := append([]byte{0xFF, 0xE2, 0xFF, 0xFF}, make([]byte, 0xFFFD)...)
	// The size comes after about 590 KB.
	whole := slices.Concat(plain[:2], bytes.Repeat(profile, 9), plain[2:])
	kind, r, err := file.Sniff("a.jpg", bytes.NewReader(whole), limits)
	if err != nil || kind.Width != 7 || kind.Height != 5 {
		t.Fatalf("got %+v and error %v, want a size of 7x5", kind, err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, whole) {
		t.Fatalf("read %d bytes with error %v, want %d", len(got), err, len(whole))
	}
	endless := io.MultiReader(bytes.NewReader(plain[:2]), bytes.NewReader(bytes.Repeat(profile, 40)))
	if _, err := reads("a.jpg", endless); !fault.Is(err, fault.TooLarge) {
		t.Fatalf("a header past the limit: %v, want TooLarge", err)
	}
	broken := errors.New("connection lost")
	if _, err := reads("a.jpg", io.MultiReader(bytes.NewReader(whole[:100_000]), failing{err: broken})); !errors.Is(err, broken) {
		t.Fatalf("a connection lost within the header: %v, want the error of the reader", err)
	}
}

func FuzzSniff(f *testing.F) {
	for _, s := range []string{"", "\x89PNG\r\n\x1a\n", "GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;", "\xff\xd8\xff\xd9"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		at, err := reads("", bytes.NewReader(b))
		slow, slowErr := reads("", iotest.OneByteReader(bytes.NewReader(b)))
		if (err == nil) != (slowErr == nil) || err == nil && (!bytes.Equal(at, b) || !bytes.Equal(slow, b)) {
			t.Fatalf("read in one piece: %v; byte by byte: %v; want the same", err, slowErr)
		}
		if err != nil && fault.KindOf(err) == fault.Internal {
			t.Fatalf("got %v, want a fault of the file", err)
		}
	})
}

func TestSniff_ReturnsTheReadersError(t *testing.T) {
	t.Parallel()
	broken := errors.New("connection lost")
	if _, _, err := file.Sniff("a.png", io.MultiReader(strings.NewReader("\x89PNG"), failing{err: broken}), limits); !errors.Is(err, broken) {
		t.Fatalf("got %v, want the error of the reader", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
