// Package media looks at the bytes of an uploaded file: what it is, how big it may be, and what to call it.
package media

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	_ "image/gif"  // so that image.DecodeConfig knows them
	_ "image/jpeg" // "
	_ "image/png"  // "
	"io"
	"path"
	"strings"

	"github.com/gabriel-vasile/mimetype"

	"crier/platform/fault"
)

// Limits in bytes.
type Limits struct {
	Image int64
	Video int64
}

// Kind is what a file turned out to be.
type Kind struct {
	Ext         string // png, jpg, gif or mp4
	ContentType string
	Video       bool
	Width       int // pixels, 0 when the header does not tell
	Height      int
}

// MaxPixels is the most that an image may have, width by height: a few bytes can tell of a picture that fills the memory of everybody who opens it.
const MaxPixels = 100_000_000

const head = 3 << 10 // bytes that tell the type

// Sniff looks at the beginning of r and returns what it is, and a reader that yields the whole file. That reader fails as TooLarge past the file's
// limit, and as Invalid where an image ends before its own end mark; of a video only the type is looked at. It holds no more than an image's header.
// A name whose extension says something else is refused; no extension, or a bare one, says nothing.
func Sniff(name string, r io.Reader, limits Limits) (Kind, io.Reader, error) {
	first, err := io.ReadAll(io.LimitReader(r, head))
	if err != nil {
		return Kind{}, nil, err
	}
	if len(first) == 0 {
		return Kind{}, nil, refuse("The file is empty.")
	}
	kind, ok := kindOf(first)
	if !ok {
		return Kind{}, nil, refuse("This type of file is not supported: send png, jpg, jpeg, gif or mp4.")
	}
	if told := Extension(name); told != "" && told != kind.Ext && !(told == "jpeg" && kind.Ext == "jpg") {
		return Kind{}, nil, refuse("The file is named ." + told + ", but its content is " + kind.word() + ".")
	}
	whole := io.MultiReader(bytes.NewReader(first), r)
	if kind.Video {
		return kind, &capped{r: whole, left: limits.Video, limit: limits.Video, what: "video"}, nil
	}
	return measure(kind, &capped{r: whole, left: limits.Image, limit: limits.Image, what: "image"})
}

func kindOf(first []byte) (Kind, bool) {
	detected := mimetype.Detect(first)
	switch {
	case detected.Is("image/png"):
		return Kind{Ext: "png", ContentType: "image/png"}, true
	case detected.Is("image/jpeg"):
		return Kind{Ext: "jpg", ContentType: "image/jpeg"}, true
	case detected.Is("image/gif"):
		return Kind{Ext: "gif", ContentType: "image/gif"}, true
	case detected.Is("video/mp4") || detected.Parent() != nil && detected.Parent().Is("video/mp4") && strings.HasPrefix(detected.String(), "video/"):
		return Kind{Ext: "mp4", ContentType: "video/mp4", Video: true}, true
	default:
		return Kind{}, false
	}
}

// word is the type in a sentence, with its article.
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

// measure reads an image's size from its header, which can lie far back behind a profile or a preview.
func measure(k Kind, r io.Reader) (Kind, io.Reader, error) {
	var seen bytes.Buffer
	source := &remembering{r: io.TeeReader(r, &seen)}
	c, _, err := image.DecodeConfig(source)
	switch {
	case source.err != nil:
		return Kind{}, nil, source.err
	case err != nil:
		return Kind{}, nil, fault.Wrap(fault.Invalid, "media.Sniff", "The file begins like "+k.word()+", but it cannot be read: it is broken or of an unusual kind.", err)
	case c.Width <= 0 || c.Height <= 0:
		return Kind{}, nil, refuse("The image has no pixels.")
	case int64(c.Width)*int64(c.Height) > MaxPixels:
		return Kind{}, nil, refuse(fmt.Sprintf("The image has too many pixels: %d x %d, at most %d million in all are allowed.", c.Width, c.Height, MaxPixels/1_000_000))
	}
	k.Width, k.Height = c.Width, c.Height
	return k, &complete{r: io.MultiReader(&seen, r), walk: newWalk(k.Ext)}, nil
}

func refuse(words string) error { return fault.New(fault.Invalid, "media.Sniff", words) }

// remembering keeps the reader's own failure, which decoders call a broken image.
type remembering struct {
	r   io.Reader
	err error
}

func (m *remembering) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		m.err = err
	}
	return n, err
}

// Extension is the known extension that a file name tells, in lower case, or "".
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

// Name makes a file name safe for a URL: letters, digits, dash and underscore of the original, or "file".
func Name(original string) string {
	base := path.Base(strings.ReplaceAll(original, `\`, "/"))
	base = strings.TrimSuffix(base, path.Ext(base))
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		case r == ' ' || r == '.':
			return '-'
		default:
			return -1
		}
	}, base)
	safe = strings.Trim(safe, "-")
	if len(safe) > 80 {
		safe = safe[:80]
	}
	if safe == "" {
		return "file"
	}
	return safe
}

type capped struct {
	r           io.Reader
	left, limit int64
	what        string
}

func (c *capped) Read(p []byte) (int, error) {
	if int64(len(p)) > c.left+1 {
		p = p[:c.left+1]
	}
	n, err := c.r.Read(p)
	c.left -= int64(n)
	if c.left < 0 {
		return 0, fault.New(fault.TooLarge, "media.Read", fmt.Sprintf("The %s is too large: at most %d bytes are allowed.", c.what, c.limit))
	}
	return n, err
}
