// Package picture converts an image to a JPEG that fits a platform's limits. The JPEG is upright
// and keeps the image's color profile.
//
// An image is decoded only if its header shows that the decoder will allocate at most MaxDecoded
// bytes.
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
	// MaxPixels is the maximum number of pixels (width times height) of an image that Fit decodes.
	MaxPixels = 40_000_000
	// MaxPNGPixels is the maximum number of pixels in a PNG. It is lower than MaxPixels, because
	// the PNG decoder usually allocates four bytes per pixel.
	MaxPNGPixels = 33_500_000
	// MaxDecoded is the maximum number of bytes that the decoder may allocate for an image. A
	// baseline JPEG with MaxPixels pixels needs less. So does a PNG with MaxPNGPixels pixels if it
	// is not interlaced, has 8 bits per channel, and is at most 20 times as long as it is wide.
	MaxDecoded = 128 << 20

	// largeDecoded is the decoded size, in bytes, at which an image counts as large. The memory of
	// a large image is returned to the operating system immediately.
	largeDecoded = 16 << 20
	// smallestSide is the minimum length, in pixels, to which the longer side is reduced. An image
	// that would have to be even smaller to fit is rejected.
	smallestSide = 16
)

// Spec describes the JPEG files that a platform accepts.
type Spec struct {
	// MaxBytes is the maximum size of the file in bytes.
	MaxBytes int
	// MaxSide is the maximum length of a side in pixels.
	MaxSide int
}

// String formats the Spec using only letters, digits and dashes, so that it can be part of a key.
// ParseSpec is its inverse. Example: jpeg-1000000-2000
func (s Spec) String() string { return fmt.Sprintf("jpeg-%d-%d", s.MaxBytes, s.MaxSide) }

// ParseSpec parses a Spec formatted by String. It returns an error for any other text.
func ParseSpec(text string) (Spec, error) {
	sizes, isJPEG := strings.CutPrefix(text, "jpeg-")
	size, side, both := strings.Cut(sizes, "-")
	maxBytes, sizeErr := strconv.Atoi(size)
	maxSide, sideErr := strconv.Atoi(side)
	if !isJPEG || !both || sizeErr != nil || sideErr != nil || maxBytes <= 0 || maxSide <= 0 {
		return Spec{}, fmt.Errorf("%q is not a picture format that this version creates", text)
	}
	return Spec{MaxBytes: maxBytes, MaxSide: maxSide}, nil
}

// Picture is the result of Fit. It is always a JPEG.
type Picture struct {
	Bytes       []byte
	ContentType string
	// Width and Height are in pixels.
	Width, Height int
}

// Refusal is the permanent error for an image that cannot be made to fit. All other errors are
// temporary.
type Refusal struct {
	// Reason completes a sentence for users that begins with the file name. It does not end with a
	// period.
	Reason string
	Err    error
}

// Error returns text for logs, which includes the cause. Only Reason is shown to users.
func (r *Refusal) Error() string { return fmt.Sprintf("the picture %s: %v", r.Reason, r.Err) }

// Unwrap returns the cause, such as an error from the decoder.
func (r *Refusal) Unwrap() error { return r.Err }

// Fit reads an image from r and returns a picture that meets s. r must be positioned at the
// beginning of the image. The same bytes always result in the same picture. Fit returns a *Refusal
// if the image cannot be made to fit or if the decoder panics. It returns errors from r and ctx
// unchanged.
//
// A large image takes up to MaxDecoded bytes plus about 40 MB of memory, so the caller must limit
// concurrent calls. Fit runs the garbage collector before and after a large image. Otherwise,
// several large images would remain in memory in a process that rarely collects garbage.
func Fit(ctx context.Context, r io.ReadSeeker, s Spec) (p Picture, err error) {
	src := &source{ctx: ctx, r: r}
	defer func() {
		if e := recover(); e != nil {
			cause := fmt.Errorf("panic: %v\n%s", e, debug.Stack())
			p, err = Picture{}, &Refusal{Reason: "cannot be decoded", Err: cause}
		}
		if src.err != nil { // decoders report a read error as a broken image
			p, err = Picture{}, src.err
		}
	}()
	h, err := Inspect(src)
	if err != nil {
		return Picture{}, &Refusal{Reason: "is not an image that can be made smaller", Err: err}
	}
	if err := h.checkAffordable(); err != nil {
		return Picture{}, err
	}
	if _, err := src.Seek(0, io.SeekStart); err != nil {
		return Picture{}, err
	}
	img, err := decodeSmall(ctx, src, h, s.MaxSide)
	if err != nil {
		return Picture{}, err
	}
	if _, err := src.Seek(0, io.SeekStart); err != nil {
		return Picture{}, err
	}
	profile := readProfile(src, h.Format)
	size := len(profileSegments(profile))
	if size > s.MaxBytes/profileShare {
		profile, size = nil, 0
	}
	p, err = encodeWithin(ctx, applyOrientation(img, h.Orientation), s.MaxBytes-size)
	if err == nil && size > 0 {
		p.Bytes = withProfile(p.Bytes, profile)
	}
	return p, err
}

const (
	pixelsReason = "has too many pixels to be made smaller"
	costlyReason = pixelsReason +
		": save it with fewer, or not as a progressive JPEG, an interlaced PNG or a PNG with 16 bits a channel"
)

// checkAffordable returns a *Refusal if decoding the image would take too much memory or if the
// image is a GIF.
func (h Header) checkAffordable() error {
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

// source reads the image. Reads fail once the context is done. source records any error, because
// image decoders report a read error as a broken image.
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
