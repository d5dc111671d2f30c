package bluesky

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	_ "image/gif" // decoders of the types that Crier stores
	"image/jpeg"
	_ "image/png"
	"io"

	"golang.org/x/image/draw"

	"crier/publishing/connector"
)

const (
	maxBlob   = 1_000_000  // bytes of one image
	maxFile   = 64 << 20   // bytes that are read at all
	maxPixels = 40_000_000 // that are decoded
	maxSide   = 2000       // pixels of an image that had to be made smaller
)

// picture is an image as it is uploaded. Width and height are as it is shown, 0 when the bytes do not tell.
type picture struct {
	bytes         []byte
	contentType   string
	width, height int
}

// picture reads a medium and makes it smaller if it must. What fits goes out byte for byte.
func (c *Connector) picture(ctx context.Context, m connector.Media) (picture, error) {
	raw, err := readAll(m)
	if err != nil {
		return picture{}, err
	}
	pic := picture{bytes: raw, contentType: m.ContentType, width: m.Width, height: m.Height}
	orientation := orientationOf(raw)
	cfg, format, err := image.DecodeConfig(bytes.NewReader(raw))
	if err == nil {
		pic.width, pic.height = cfg.Width, cfg.Height
		if orientation > 4 {
			pic.width, pic.height = cfg.Height, cfg.Width
		}
	}
	switch {
	case len(raw) <= maxBlob:
		return pic, nil
	case err != nil:
		return picture{}, badImage(m, "is no image that can be made smaller", err)
	case format == "gif":
		return picture{}, badImage(m, "is a GIF of more than 1,000,000 bytes, which Bluesky does not take", nil)
	case cfg.Width <= 0 || cfg.Height <= 0 || cfg.Height > maxPixels/cfg.Width:
		return picture{}, badImage(m, "has too many pixels to be made smaller", nil)
	}
	return c.shrink(ctx, m, raw, orientation)
}

func badImage(m connector.Media, what string, err error) error {
	return &connector.Error{Kind: connector.KindContent, Public: m.Name + " " + what + ".", Err: err}
}

func readAll(m connector.Media) ([]byte, error) {
	file, err := m.Open()
	if err != nil {
		return nil, lostFile(err)
	}
	defer func() { _ = file.Close() }() // only read
	raw, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	switch {
	case err != nil:
		return nil, lostFile(err)
	case len(raw) > maxFile:
		return nil, badImage(m, "is too big", nil)
	case len(raw) == 0:
		return nil, badImage(m, "is empty", nil)
	}
	return raw, nil
}

func lostFile(err error) error {
	return &connector.Error{Kind: connector.KindTransient, Public: "An image of this post could not be read.", Err: err}
}

// shrink encodes an image as JPEG, smaller and coarser until it fits.
func (c *Connector) shrink(ctx context.Context, m connector.Media, raw []byte, orientation int) (picture, error) {
	select {
	case c.shrinking <- struct{}{}:
		defer func() { <-c.shrinking }()
	case <-ctx.Done():
		return picture{}, connector.FromSend(ctx.Err(), false)
	}
	src, _, err := image.Decode(bytes.NewReader(raw))
	if err != nil {
		return picture{}, badImage(m, "cannot be decoded", err)
	}
	img := upright(scaled(src, maxSide), orientation)
	for {
		for _, quality := range []int{90, 80, 70} {
			var b bytes.Buffer
			if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: quality}); err != nil {
				return picture{}, badImage(m, "cannot be made smaller", err)
			}
			if b.Len() <= maxBlob {
				return picture{b.Bytes(), "image/jpeg", img.Rect.Dx(), img.Rect.Dy()}, nil
			}
		}
		side := max(img.Rect.Dx(), img.Rect.Dy()) * 3 / 4
		if side < 16 {
			return picture{}, badImage(m, "cannot be made smaller", errors.New("a tiny picture does not fit"))
		}
		img = scaled(img, side)
	}
}

// scaled draws an image on white so that no side is longer than side. Halving first makes every pixel of a big picture count.
func scaled(src image.Image, side int) *image.RGBA {
	for {
		size := src.Bounds().Size()
		long := max(size.X, size.Y)
		to := min(long, max(side, (long+1)/2))
		dst := image.NewRGBA(image.Rect(0, 0, max(1, size.X*to/long), max(1, size.Y*to/long)))
		draw.Draw(dst, dst.Rect, image.NewUniform(color.White), image.Point{}, draw.Src)
		draw.ApproxBiLinear.Scale(dst, dst.Rect, src, src.Bounds(), draw.Over, nil)
		if to <= side {
			return dst
		}
		src = dst
	}
}
