package picture

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"io"
)

// rows is an image that is read once, from the top.
type rows interface {
	size() (width, height int)
	// next returns the pixels of the next row, four bytes each: red, green, blue, and one that does not count.
	// Transparency has become white. They are valid until the next call.
	next() ([]byte, error)
}

// decodeSmall decodes an image and scales it down to maxSide.
func decodeSmall(ctx context.Context, src io.Reader, h Header, maxSide int) (*image.RGBA, error) {
	all, err := decode(bufio.NewReaderSize(src, 64<<10), h)
	if err != nil {
		return nil, &Refusal{Reason: "cannot be decoded", Err: err}
	}
	img, err := reduce(ctx, all, maxSide)
	if err != nil && ctx.Err() == nil {
		return nil, &Refusal{Reason: "cannot be decoded", Err: err}
	}
	return img, err
}

func decode(r io.Reader, h Header) (rows, error) {
	if h.Format == "png" && !h.layered {
		return newPNGRows(r)
	}
	whole := jpeg.Decode
	if h.Format == "png" {
		whole = png.Decode
	}
	img, err := whole(r)
	if err != nil {
		return nil, err
	}
	return newImageRows(img), nil
}

// imageRows are the rows of a decoded image.
type imageRows struct {
	img image.Image
	row *image.RGBA
	y   int
}

func newImageRows(img image.Image) *imageRows {
	return &imageRows{img: img, row: image.NewRGBA(image.Rect(0, 0, img.Bounds().Dx(), 1))}
}

func (r *imageRows) size() (width, height int) { return r.img.Bounds().Dx(), r.img.Bounds().Dy() }

func (r *imageRows) next() ([]byte, error) {
	at := r.img.Bounds().Min
	draw.Draw(r.row, r.row.Rect, image.NewUniform(color.White), image.Point{}, draw.Src)
	draw.Draw(r.row, r.row.Rect, r.img, image.Pt(at.X, at.Y+r.y), draw.Over)
	r.y++
	return r.row.Pix, nil
}

// reduce scales an image down so that no side is longer than maxSide. Every pixel of the source counts by the area
// that it covers.
func reduce(ctx context.Context, src rows, maxSide int) (*image.RGBA, error) {
	w, h := src.size()
	long := max(w, h)
	to := min(long, maxSide)
	size := image.Rect(0, 0, max(1, w*to/long), max(1, h*to/long))
	r := &reducer{
		width: w, height: h, dst: image.NewRGBA(size), line: make([]uint64, 3*size.Dx()), sum: make([]uint64, 3*size.Dx()),
	}
	for range h {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		row, err := src.next()
		if err != nil {
			return nil, err
		}
		r.add(row)
	}
	return r.dst, nil
}

// reducer adds up the rows of an image. It measures in fractions of pixels, so that all is exact: one pixel of the
// source is as wide as the result has columns, one column of the result as wide as the source has pixels; heights
// alike.
type reducer struct {
	width, height int // of the source
	dst           *image.RGBA
	line          []uint64 // one row of the source, scaled to the result's width
	sum           []uint64 // of the lines of the result's row y so far
	y             int
	below         int // height of the source that is above the next row
}

func (r *reducer) add(row []byte) {
	r.addColumns(row)
	for left, end := r.dst.Rect.Dy(), (r.y+1)*r.height; left > 0; end = (r.y + 1) * r.height {
		part := min(left, end-r.below)
		for i, v := range r.line {
			r.sum[i] += v * uint64(part)
		}
		left, r.below = left-part, r.below+part
		if r.below == end {
			r.finishRow()
		}
	}
}

// addColumns scales one row of the source to the result's width.
func (r *reducer) addColumns(row []byte) {
	clear(r.line)
	wide := r.dst.Rect.Dx()
	at, end, column := 0, r.width, r.line
	for x := range r.width {
		p := row[4*x : 4*x+3 : 4*x+3]
		next := at + wide
		if next > end { // the pixel covers the end of a column
			part := uint64(end - at)
			column[0] += uint64(p[0]) * part
			column[1] += uint64(p[1]) * part
			column[2] += uint64(p[2]) * part
			at, end, column = end, end+r.width, column[3:]
		}
		part := uint64(next - at)
		column[0] += uint64(p[0]) * part
		column[1] += uint64(p[1]) * part
		column[2] += uint64(p[2]) * part
		at = next
	}
}

// finishRow writes a row of the result.
func (r *reducer) finishRow() {
	area := uint64(r.width) * uint64(r.height)
	out := r.dst.Pix[r.y*r.dst.Stride:]
	for x := range r.dst.Rect.Dx() {
		for c := range 3 {
			out[4*x+c] = uint8((r.sum[3*x+c] + area/2) / area)
		}
		out[4*x+3] = 255
	}
	clear(r.sum)
	r.y++
}

// encodeWithin encodes an image as JPEG, with less quality and then with fewer pixels until it fits.
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
		var err error
		if img, err = reduce(ctx, newImageRows(img), side); err != nil {
			return Picture{}, err
		}
	}
}

var errFull = errors.New("the picture is too large")

// encode returns errFull when the file would have more than maxBytes.
func encode(img image.Image, quality, maxBytes int) ([]byte, error) {
	w := &within{left: maxBytes}
	err := jpeg.Encode(w, img, &jpeg.Options{Quality: quality})
	return w.b.Bytes(), err
}

// within takes so many bytes and no more.
type within struct {
	b    bytes.Buffer
	left int
}

func (w *within) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errFull
	}
	return w.b.Write(p)
}
