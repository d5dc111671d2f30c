package picture

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"runtime/debug"

	"golang.org/x/image/draw"
)

// decodeSmall decodes an image and scales it down to maxSide. For a large image, it runs the
// garbage collector three times:
//
//   - before decoding, so that garbage from earlier images does not add to peak memory
//   - after the first scaling step, which leaves at most a quarter of the pixels
//   - at the end, because the heap goal depends on the heap size at that time
func decodeSmall(ctx context.Context, src io.Reader, h Header, maxSide int) (*image.RGBA, error) {
	large := h.decoded >= largeDecoded
	if large {
		debug.FreeOSMemory()
		defer debug.FreeOSMemory()
	}
	img, size, err := decodeHalf(bufio.NewReaderSize(src, 64<<10), h, maxSide)
	if err != nil {
		return nil, &Refusal{Reason: "cannot be decoded", Err: err}
	}
	if large {
		debug.FreeOSMemory()
	}
	return reduce(ctx, img, size)
}

// decodeHalf decodes an image and performs the first scaling step. It returns the result, and the
// size of the image once it is scaled down to maxSide. After decodeHalf has returned, the decoded
// original can be garbage collected.
func decodeHalf(r io.Reader, h Header, maxSide int) (img *image.RGBA, size image.Point, err error) {
	decode := jpeg.Decode
	if h.Format == "png" {
		decode = png.Decode
	}
	whole, err := decode(r)
	if err != nil {
		return nil, image.Point{}, err
	}
	size = limited(whole.Bounds().Size(), maxSide)
	return halve(whole, size), size, nil
}

// limited returns the size of an image after it is scaled down so that neither side is longer than
// maxSide. The result is never larger than the original, and each side has at least one pixel.
func limited(size image.Point, maxSide int) image.Point {
	long := max(size.X, size.Y)
	to := min(long, maxSide)
	return image.Pt(max(1, size.X*to/long), max(1, size.Y*to/long))
}

// reduce scales an image down to size. It proceeds in steps, each of which at most halves the
// sides; see halve. If ctx is done, reduce returns ctx's error.
func reduce(ctx context.Context, img *image.RGBA, size image.Point) (*image.RGBA, error) {
	for img.Rect.Size() != size {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		img = halve(img, size)
	}
	return img, nil
}

// halve draws an image on a white background with each side halved, but no smaller than size. A
// step must not reduce the sides any further, because ApproxBiLinear interpolates between only four
// pixels and would skip some pixels of the source.
func halve(src image.Image, size image.Point) *image.RGBA {
	from := src.Bounds()
	dst := image.NewRGBA(image.Rect(0, 0, max(size.X, (from.Dx()+1)/2), max(size.Y, (from.Dy()+1)/2)))
	draw.Draw(dst, dst.Rect, image.White, image.Point{}, draw.Src)
	draw.ApproxBiLinear.Scale(dst, dst.Rect, src, from, draw.Over, nil)
	return dst
}

// encodeWithin encodes an image as JPEG. It first reduces the quality, and then the size, until the
// file has at most maxBytes bytes.
func encodeWithin(ctx context.Context, img *image.RGBA, maxBytes int) (Picture, error) {
	for {
		for _, quality := range []int{90, 80, 70} {
			if err := ctx.Err(); err != nil {
				return Picture{}, err
			}
			raw, err := encode(img, quality, maxBytes)
			if err == nil {
				return Picture{Bytes: raw, ContentType: "image/jpeg", Width: img.Rect.Dx(), Height: img.Rect.Dy()}, nil
			}
			if !errors.Is(err, errFull) {
				return Picture{}, &Refusal{Reason: "cannot be made smaller", Err: err}
			}
		}
		side := max(img.Rect.Dx(), img.Rect.Dy()) * 3 / 4
		if side < smallestSide {
			return Picture{}, &Refusal{Reason: "cannot be made smaller", Err: errors.New("a tiny picture does not fit")}
		}
		smaller, err := reduce(ctx, img, limited(img.Rect.Size(), side))
		if err != nil {
			return Picture{}, err
		}
		img = smaller
	}
}

var errFull = errors.New("the picture is too large")

// encode encodes an image as JPEG. It returns errFull if the file would have more than maxBytes
// bytes.
func encode(img image.Image, quality, maxBytes int) ([]byte, error) {
	w := &limitedBuffer{left: maxBytes}
	err := jpeg.Encode(w, img, &jpeg.Options{Quality: quality})
	return w.b.Bytes(), err
}

// limitedBuffer is a buffer of limited size. left is the number of bytes that can still be written.
// A write that exceeds it returns errFull.
type limitedBuffer struct {
	b    bytes.Buffer
	left int
}

func (w *limitedBuffer) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errFull
	}
	return w.b.Write(p)
}
