package picture

import (
	"encoding/binary"
	"image"
)

const orientationTag = 0x0112

// Orientation returns the orientation, from 1 to 8, in the first directory of EXIF data. It returns
// 1 if there is none.
func Orientation(tiff []byte) int {
	const entry = 12 // bytes
	if len(tiff) < 8 {
		return 1
	}
	var order binary.ByteOrder = binary.BigEndian
	if tiff[0] == 'I' {
		order = binary.LittleEndian
	}
	at := int64(order.Uint32(tiff[4:]))
	if at+2 > int64(len(tiff)) {
		return 1
	}
	count := int(order.Uint16(tiff[at:]))
	for p := tiff[at+2:]; count > 0 && len(p) >= entry; p, count = p[entry:], count-1 {
		if order.Uint16(p) != orientationTag {
			continue
		}
		if o := int(order.Uint16(p[8:])); o >= 1 && o <= 8 {
			return o
		}
	}
	return 1
}

// applyOrientation rotates and mirrors an image so that its orientation becomes 1.
func applyOrientation(src *image.RGBA, orientation int) *image.RGBA {
	if orientation == 1 {
		return src
	}
	w, h := src.Rect.Dx(), src.Rect.Dy()
	size := image.Rect(0, 0, w, h)
	if orientation > 4 {
		size = image.Rect(0, 0, h, w)
	}
	dst := image.NewRGBA(size)
	for y := range h {
		for x := range w {
			to := uprightPosition(x, y, w-1, h-1, orientation)
			dst.SetRGBA(to.X, to.Y, src.RGBAAt(x, y))
		}
	}
	return dst
}

// uprightPosition returns where the stored pixel at x, y belongs in the upright image. right and
// bottom are the largest x and y of the stored pixels.
func uprightPosition(x, y, right, bottom, orientation int) image.Point {
	switch orientation {
	case 2:
		return image.Pt(right-x, y)
	case 3:
		return image.Pt(right-x, bottom-y)
	case 4:
		return image.Pt(x, bottom-y)
	case 5:
		return image.Pt(y, x)
	case 6:
		return image.Pt(bottom-y, x)
	case 7:
		return image.Pt(bottom-y, right-x)
	case 8:
		return image.Pt(y, right-x)
	default:
		return image.Pt(x, y)
	}
}
