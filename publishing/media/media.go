// Package media looks at the bytes of an uploaded file: what it is, how big it may be, and what to call it.
package media

import (
	"bytes"
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

// head is how much is looked at before anything is stored: enough for the sizes in all but very odd JPEG headers.
const head = 256 << 10

// Sniff looks at the beginning of r and returns what it is, and a reader that yields the whole file and fails as TooLarge past its limit.
// A name whose extension says something else is refused; no extension, or a bare one, says nothing.
func Sniff(name string, r io.Reader, limits Limits) (Kind, io.Reader, error) {
	first, err := io.ReadAll(io.LimitReader(r, head))
	if err != nil {
		return Kind{}, nil, err
	}
	if len(first) == 0 {
		return Kind{}, nil, fault.New(fault.Invalid, "media.Sniff", "The file is empty.")
	}
	kind, ok := kindOf(first)
	if !ok {
		return Kind{}, nil, fault.New(fault.Invalid, "media.Sniff", "This type of file is not supported: send png, jpg, jpeg, gif or mp4.")
	}
	if told := Extension(name); told != "" && told != kind.Ext && !(told == "jpeg" && kind.Ext == "jpg") {
		return Kind{}, nil, fault.New(fault.Invalid, "media.Sniff", fmt.Sprintf("The file is named .%s but is a %s.", told, kind.ContentType))
	}
	limit, what := limits.Image, "image"
	if kind.Video {
		limit, what = limits.Video, "video"
	}
	return kind, &capped{r: io.MultiReader(bytes.NewReader(first), r), left: limit, limit: limit, what: what}, nil
}

func kindOf(first []byte) (Kind, bool) {
	detected := mimetype.Detect(first)
	switch {
	case detected.Is("image/png"):
		return measured(Kind{Ext: "png", ContentType: "image/png"}, first), true
	case detected.Is("image/jpeg"):
		return measured(Kind{Ext: "jpg", ContentType: "image/jpeg"}, first), true
	case detected.Is("image/gif"):
		return measured(Kind{Ext: "gif", ContentType: "image/gif"}, first), true
	case detected.Is("video/mp4") || detected.Parent() != nil && detected.Parent().Is("video/mp4") && strings.HasPrefix(detected.String(), "video/"):
		return Kind{Ext: "mp4", ContentType: "video/mp4", Video: true}, true
	default:
		return Kind{}, false
	}
}

func measured(k Kind, first []byte) Kind {
	if c, _, err := image.DecodeConfig(bytes.NewReader(first)); err == nil {
		k.Width, k.Height = c.Width, c.Height
	}
	return k
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
