// Package file detects the type of an uploaded file, checks its size and completeness, and makes
// safe file names.
package file

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"
	"io"
	"path"
	"strings"

	"github.com/gabriel-vasile/mimetype"

	"crier/platform/fault"
	"crier/publishing/file/picture"
)

// Limits are the maximum sizes of files in bytes.
type Limits struct {
	// Image is the limit for png, jpg and gif.
	Image int64
	// Video is the limit for mp4.
	Video int64
}

// Kind is the type of a file, determined by its content, not its name.
type Kind struct {
	// Ext is png, jpg, gif or mp4.
	Ext         string
	ContentType string
	Video       bool
	// Width and Height are the image's dimensions in pixels after any EXIF rotation. They are 0 for
	// a video.
	Width, Height int
}

// MaxPixels is the maximum number of pixels (width times height) of an image. The limit is needed
// because a tiny file can declare an image so large that decoding it exhausts memory.
const MaxPixels = 100_000_000

// maxAfterSize is how many bytes of an image are read after its dimensions are known, to find the
// rest of the header.
const maxAfterSize = 256 << 10

const sniffLen = 3 << 10 // bytes from which the type is detected

// Sniff detects a file's type from its beginning. It returns the type and a reader for the whole
// file. The reader returns fault.TooLarge if the file exceeds the limit for its type, and
// fault.Invalid if an image ends before its end marker. Sniff buffers at most an image's header.
// For a video, it checks only the type; VideoProbe checks everything else.
//
// Sniff returns fault.Invalid if the file is empty, cannot be decoded, or has an unsupported type.
// It also returns fault.Invalid if an image has more than MaxPixels pixels, or if the extension in
// name contradicts the type. A name without a known extension is not checked. Sniff returns errors
// from r unchanged.
func Sniff(name string, r io.Reader, limits Limits) (Kind, io.Reader, error) {
	first, err := io.ReadAll(io.LimitReader(r, sniffLen))
	if err != nil {
		return Kind{}, nil, err
	}
	if len(first) == 0 {
		return Kind{}, nil, refuse("The file is empty.")
	}
	detected := mimetype.Detect(first)
	kind, ok := kindOf(detected)
	ext := Extension(name)
	if !ok || ext == "mov" && isQuickTime(detected) {
		return Kind{}, nil, refuseForeign(name, detected, first)
	}
	if ext != "" && ext != kind.Ext && !(ext == "jpeg" && kind.Ext == "jpg") {
		return Kind{}, nil, refuse("The file is named ." + ext + ", but its content is " + kind.word() + ".")
	}
	whole := io.MultiReader(bytes.NewReader(first), r)
	if kind.Video {
		return kind, &limitedReader{r: whole, left: limits.Video, limit: limits.Video, what: "video"}, nil
	}
	return measure(kind, &limitedReader{r: whole, left: limits.Image, limit: limits.Image, what: "image"})
}

func kindOf(detected *mimetype.MIME) (Kind, bool) {
	switch {
	case detected.Is("image/png"), detected.Is("image/apng"): // an animated PNG is a PNG
		return Kind{Ext: "png", ContentType: "image/png"}, true
	case detected.Is("image/jpeg"):
		return Kind{Ext: "jpg", ContentType: "image/jpeg"}, true
	case detected.Is("image/gif"):
		return Kind{Ext: "gif", ContentType: "image/gif"}, true
	case isQuickTime(detected) || isVariantOfMP4(detected):
		return Kind{Ext: "mp4", ContentType: "video/mp4", Video: true}, true
	default:
		return Kind{}, false
	}
}

// isQuickTime reports whether a file begins like a QuickTime movie. QuickTime movies consist of the
// same boxes as MP4 files, and Apple phones use MP4 codecs in them.
func isQuickTime(m *mimetype.MIME) bool { return m.Is("video/quicktime") }

// isVariantOfMP4 reports whether m is MP4 or a subtype of MP4. Picture formats such as AVIF, which
// are also subtypes, do not count. Audio subtypes do count, because the first brand is only a hint:
// VideoProbe determines what the file actually contains.
func isVariantOfMP4(m *mimetype.MIME) bool {
	return m.Is("video/mp4") || m.Parent() != nil && m.Parent().Is("video/mp4") && !strings.HasPrefix(m.String(), "image/")
}

// word returns the name of the type, with an article, for use in a sentence.
func (k Kind) word() string {
	switch k.Ext {
	case "mp4":
		return "an MP4 video"
	case "jpg":
		return "a JPEG image"
	default:
		return "a " + strings.ToUpper(k.Ext) + " image"
	}
}

// measure reads the dimensions of an image from its header. The dimensions can be far from the
// beginning of the file, after a color profile or a preview. measure returns the kind with the
// dimensions, and a reader for the whole image.
func measure(k Kind, r io.Reader) (Kind, io.Reader, error) {
	var seen bytes.Buffer
	source := &errorRecorder{r: io.TeeReader(r, &seen)}
	c, _, err := image.DecodeConfig(source)
	switch {
	case source.err != nil:
		return Kind{}, nil, source.err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return Kind{}, nil, fault.Wrap(fault.Invalid, "media.Sniff",
			"The file begins like "+k.word()+", but it cannot be read: it is cut off in its header, or damaged.", err)
	case err != nil:
		return Kind{}, nil, fault.Wrap(fault.Invalid, "media.Sniff",
			"The file begins like "+k.word()+", but it cannot be read: it is damaged or of an unusual kind.", err)
	case c.Width <= 0 || c.Height <= 0:
		return Kind{}, nil, refuse("The image has no pixels.")
	case int64(c.Width)*int64(c.Height) > MaxPixels:
		return Kind{}, nil, refuse(fmt.Sprintf(
			"The image has too many pixels: %d x %d; at most %d million in total are allowed.",
			c.Width, c.Height, MaxPixels/1_000_000))
	}
	k.Width, k.Height = c.Width, c.Height
	// If picture.Inspect cannot parse a header that image.DecodeConfig could parse, the stored
	// dimensions are kept.
	header := io.MultiReader(bytes.NewReader(seen.Bytes()), io.LimitReader(source, maxAfterSize))
	if h, err := picture.Inspect(header); err == nil {
		k.Width, k.Height = h.Width, h.Height
	}
	if source.err != nil {
		return Kind{}, nil, source.err
	}
	return k, &completeReader{r: io.MultiReader(&seen, r), parser: newBlockParser(k.Ext), kind: k}, nil
}

func refuse(message string) error { return fault.New(fault.Invalid, "media.Sniff", message) }

// errorRecorder records an error from its reader, because image decoders report a read error as a
// broken image.
type errorRecorder struct {
	r   io.Reader
	err error
}

func (m *errorRecorder) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		m.err = err
	}
	return n, err
}

// Extension returns the extension of a file name in lower case and without the dot, or "" if no
// known type has that extension.
func Extension(name string) string {
	ext := strings.ToLower(strings.TrimPrefix(path.Ext(name), "."))
	switch ext {
	case "":
		return ""
	case "png", "jpg", "jpeg", "gif", "mp4", "webp", "svg", "mov", "avi", "webm", "pdf", "html", "bmp", "tiff", "heic":
		return ext
	default:
		return ""
	}
}

// limitedReader returns fault.TooLarge if its reader returns more than limit bytes.
type limitedReader struct {
	r           io.Reader
	left, limit int64
	what        string
}

func (c *limitedReader) Read(p []byte) (int, error) {
	if int64(len(p)) > c.left+1 {
		p = p[:c.left+1]
	}
	n, err := c.r.Read(p)
	c.left -= int64(n)
	if c.left < 0 {
		return 0, fault.New(fault.TooLarge, "media.Read",
			fmt.Sprintf("The %s is too large: at most %d bytes are allowed.", c.what, c.limit))
	}
	return n, err
}
