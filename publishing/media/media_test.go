package media_test

import (
	"bytes"
	"errors"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"strings"
	"testing"

	"crier/platform/fault"
	"crier/publishing/media"
)

var limits = media.Limits{Image: 1 << 20, Video: 2 << 20}

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
		want  string // extension, or the kind of refusal
	}{
		"png":                         {"a.png", asPNG, "png"},
		"jpeg named jpeg":             {"a.JPEG", asJPEG, "jpg"},
		"gif":                         {"a.gif", asGIF, "gif"},
		"mp4":                         {"a.mp4", film(), "mp4"},
		"a bare extension as a name":  {"png", asJPEG, "jpg"},
		"no name at all":              {"undefined", asPNG, "png"},
		"a name that lies":            {"a.png", asJPEG, "invalid"},
		"a picture named as a page":   {"a.html", asPNG, "invalid"},
		"svg":                         {"a.svg", []byte(`<svg xmlns="http://www.w3.org/2000/svg"></svg>`), "invalid"},
		"html named png":              {"a.png", []byte("<html><script>x</script></html>"), "invalid"},
		"nothing":                     {"a.png", nil, "invalid"},
		"text":                        {"a.txt", []byte("hello"), "invalid"},
		"a picture past its limit":    {"a.png", append(append([]byte{}, asPNG...), make([]byte, 1<<20)...), "too_large"},
		"a film past its limit":       {"a.mp4", append(film(), make([]byte, 2<<20)...), "too_large"},
		"a film larger than pictures": {"a.mp4", append(film(), make([]byte, 1<<20)...), "mp4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind, r, err := media.Sniff(c.file, bytes.NewReader(c.bytes), limits)
			var got []byte
			if err == nil {
				got, err = io.ReadAll(r)
			}
			if err != nil {
				if string(fault.KindOf(err)) != c.want {
					t.Fatalf("refused as %v", err)
				}
				return
			}
			if kind.Ext != c.want || !bytes.Equal(got, c.bytes) {
				t.Fatalf("%+v, %d bytes of %d", kind, len(got), len(c.bytes))
			}
			if !kind.Video && (kind.Width != 7 || kind.Height != 5) {
				t.Errorf("measured %dx%d", kind.Width, kind.Height)
			}
		})
	}
}

func TestSniffPassesAReadErrorOn(t *testing.T) {
	t.Parallel()
	broken := errors.New("line cut")
	if _, _, err := media.Sniff("a.png", io.MultiReader(strings.NewReader("\x89PNG"), failing{broken}), limits); !errors.Is(err, broken) {
		t.Fatalf("%v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestName(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"photo.png": "photo", "../../etc/passwd": "passwd", `C:\x\My cat.jpg`: "My-cat", "ünïcode.png": "ncode", "": "file", "...": "file", "png": "png",
		strings.Repeat("a", 300) + ".png": strings.Repeat("a", 80), "<script>.png": "script",
	} {
		if got := media.Name(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
