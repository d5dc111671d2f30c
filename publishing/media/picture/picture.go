// Package picture makes an image small enough for a platform: a JPEG of limited size, as the image is shown.
//
// It decodes one image at a time, and only one whose header says that this takes at most MaxDecoded bytes.
package picture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"
	"strings"
)

const (
	// MaxPixels is the most pixels, width by height, of an image that is made smaller.
	MaxPixels = 40_000_000
	// MaxPNGPixels is the same for a PNG, whose decoder takes four bytes a pixel.
	MaxPNGPixels = 33_500_000
	// MaxDecoded is the most memory, in bytes, that a decoded image may take. A baseline JPEG of MaxPixels pixels needs
	// less, and so does a PNG of MaxPNGPixels pixels that is not interlaced, has 8 bits a channel and is at most 20
	// times as long as wide.
	MaxDecoded = 128 << 20

	largeDecoded = 16 << 20 // bytes; after more than this, memory is given back to the system at once
	smallestSide = 16       // pixels of the longer side; an image that is still too large then is refused
)

// Spec is what a platform takes: a JPEG of at most MaxBytes bytes, no side longer than MaxSide pixels.
type Spec struct {
	MaxBytes int
	MaxSide  int
}

// String formats the Spec for a key: letters, digits and dashes. ParseSpec reads it.
func (s Spec) String() string { return fmt.Sprintf("jpeg-%d-%d", s.MaxBytes, s.MaxSide) }

// ParseSpec reads what String wrote.
func ParseSpec(text string) (Spec, error) {
	sizes, isJPEG := strings.CutPrefix(text, "jpeg-")
	size, side, both := strings.Cut(sizes, "-")
	maxBytes, sizeErr := strconv.Atoi(size)
	maxSide, sideErr := strconv.Atoi(side)
	if !isJPEG || !both || sizeErr != nil || sideErr != nil || maxBytes <= 0 || maxSide <= 0 {
		return Spec{}, fmt.Errorf("%q is no picture format that this version makes", text)
	}
	return Spec{MaxBytes: maxBytes, MaxSide: maxSide}, nil
}

// Picture is an encoded image. Width and Height are in pixels, as it is shown.
type Picture struct {
	Bytes         []byte
	ContentType   string
	Width, Height int
}

// Refusal says that an image can never be made to fit, whoever tries. Every other error may pass.
type Refusal struct {
	// Reason follows the name of the file in a sentence for people, without the full stop.
	Reason string
	Err    error
}

// Error is for logs.
func (r *Refusal) Error() string { return fmt.Sprintf("the picture %s: %v", r.Reason, r.Err) }

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

// Fit reads an image from its beginning and returns it as s wants it. The same bytes give the same picture. It returns
// a *Refusal for an image that cannot be made to fit, also when a decoder panics; an error of r or the end of ctx is
// returned as it is. Large images need up to MaxDecoded bytes and some 40 MB beside: the caller decides how many are
// made at the same time. Garbage is collected before and after a large one, since a process that collects rarely would
// keep several of them.
func Fit(ctx context.Context, r io.ReadSeeker, s Spec) (p Picture, err error) {
	src := &source{ctx: ctx, r: r}
	defer func() {
		if e := recover(); e != nil {
			p, err = Picture{}, &Refusal{Reason: "cannot be decoded", Err: fmt.Errorf("panic: %v\n%s", e, debug.Stack())}
		}
		if src.err != nil { // decoders call a file that cannot be read a broken image
			p, err = Picture{}, src.err
		}
	}()
	h, err := Inspect(src)
	if err != nil {
		return Picture{}, &Refusal{Reason: "is no image that can be made smaller", Err: err}
	}
	if err := h.affordable(); err != nil {
		return Picture{}, err
	}
	if _, err := src.Seek(0, io.SeekStart); err != nil {
		return Picture{}, err
	}
	img, err := decodeSmall(ctx, src, h, s.MaxSide)
	if err != nil {
		return Picture{}, err
	}
	return encodeWithin(ctx, upright(img, h.Orientation), s.MaxBytes)
}

const (
	pixelsReason = "has too many pixels to be made smaller"
	costlyReason = pixelsReason +
		": save it with fewer, or not as a progressive JPEG, an interlaced PNG or a PNG with 16 bits a channel"
)

// affordable refuses what is not decoded at all.
func (h Header) affordable() error {
	most := MaxPixels
	if h.Format == "png" {
		most = MaxPNGPixels
	}
	switch {
	case h.Format == "gif":
		return &Refusal{Reason: "is a GIF, which cannot be made smaller", Err: errors.New("a GIF may be animated")}
	case h.Width <= 0 || h.Height <= 0 || h.Height > most/h.Width:
		return &Refusal{Reason: pixelsReason, Err: fmt.Errorf("%d x %d", h.Width, h.Height)}
	case h.decoded > MaxDecoded && h.costly:
		return &Refusal{Reason: costlyReason, Err: fmt.Errorf("%d x %d take %d bytes", h.Width, h.Height, h.decoded)}
	case h.decoded > MaxDecoded:
		return &Refusal{Reason: pixelsReason, Err: fmt.Errorf("%d x %d take %d bytes", h.Width, h.Height, h.decoded)}
	}
	return nil
}

// source is the file. It ends with its context, and keeps its own failure apart from what decoders say.
type source struct {
	ctx context.Context
	r   io.ReadSeeker
	err error
}

func (s *source) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		s.err = err
		return 0, err
	}
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

func (s *source) Seek(offset int64, whence int) (int64, error) {
	n, err := s.r.Seek(offset, whence)
	if err != nil {
		s.err = err
	}
	return n, err
}
