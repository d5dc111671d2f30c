package picture

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image/color"
	"image/gif"
	"image/png"
	"io"
)

// Header describes an image and the cost of decoding it, as read from the file's header.
type Header struct {
	// Format is jpeg, png or gif.
	Format string
	// Width and Height are the displayed image's dimensions in pixels.
	Width, Height int
	// Orientation is the EXIF orientation, from 1 to 8. It is 1 if the file does not specify one.
	Orientation int

	decoded int64 // bytes that the decoder allocates
	costly  bool  // a progressive JPEG, or a PNG that is interlaced or has 16 bits per channel
}

var (
	errFormat = errors.New("the bytes are not a PNG, JPEG or GIF")
	errBroken = errors.New("the header is damaged")
)

// Inspect parses the header of a PNG, JPEG or GIF. It reads at most 4 KB beyond the header. It
// returns an error if the file has any other format.
func Inspect(r io.Reader) (Header, error) {
	b := bufio.NewReaderSize(r, 4<<10)
	first, err := b.Peek(8)
	switch {
	case string(first) == "\x89PNG\r\n\x1a\n":
		return inspectPNG(b)
	case bytes.HasPrefix(first, []byte{0xff, 0xd8}):
		return inspectJPEG(b)
	case bytes.HasPrefix(first, []byte("GIF8")):
		c, err := gif.DecodeConfig(b)
		return Header{Format: "gif", Width: c.Width, Height: c.Height, Orientation: 1}, err
	case err != nil && !errors.Is(err, io.EOF):
		return Header{}, err
	}
	return Header{}, errFormat
}

// inspectPNG parses the header of a PNG. It sets Header.decoded to an upper bound, because the
// exact value for a gray image depends on a later chunk. A gray image takes 1 or 2 bytes per pixel,
// but 4 or 8 if a later chunk declares a transparent color.
func inspectPNG(b *bufio.Reader) (Header, error) {
	const interlaceAt = 28 // offset of the last byte of the first chunk
	first, err := b.Peek(interlaceAt + 1)
	if err != nil {
		return Header{}, err
	}
	head, interlaced := bytes.NewBuffer(bytes.Clone(first[:pngSignature])), first[interlaceAt] == 1
	h, turned := Header{Format: "png", Orientation: 1, costly: interlaced}, false
	err = pngChunks(b, func(kind string, body []byte) {
		switch kind {
		case "IHDR", "PLTE", "tRNS": // what DecodeConfig needs
			writeChunk(head, kind, body)
		case "eXIf":
			// later eXIf chunks are ignored
			if !turned {
				h.Orientation, turned = Orientation(body), true
			}
		}
	})
	if err != nil {
		return Header{}, err
	}
	writeChunk(head, "IDAT", nil)
	c, err := png.DecodeConfig(head)
	if err != nil {
		return Header{}, err
	}
	perPixel := int64(4)
	switch c.ColorModel {
	case color.Gray16Model, color.RGBA64Model, color.NRGBA64Model:
		perPixel, h.costly = 8, true
	}
	// The decoder allocates two more rows than the image has. The two extra columns account for
	// images that are one pixel wide, in which the first scaling step leaves half of the pixels
	// instead of a quarter.
	h.decoded = perPixel * (int64(c.Width) + 2) * (int64(c.Height) + 2)
	if interlaced {
		h.decoded *= 2 // the seven passes together have as many pixels as the image
	}
	h.setSize(c.Width, c.Height)
	return h, nil
}

// setSize sets the dimensions of the image as displayed. width and height are the stored
// dimensions.
func (h *Header) setSize(width, height int) {
	h.Width, h.Height = width, height
	if h.Orientation > 4 {
		h.Width, h.Height = height, width
	}
}

const (
	pngSignature = 8
	// maxChunk is the size in bytes of the largest chunk that is read. No palette, orientation or
	// color profile is larger.
	maxChunk = 1 << 20
)

// pngChunks calls visit for each chunk before the pixels, except chunks larger than maxChunk.
func pngChunks(b *bufio.Reader, visit func(kind string, body []byte)) error {
	if _, err := b.Discard(pngSignature); err != nil {
		return err
	}
	for {
		var head [8]byte
		if _, err := io.ReadFull(b, head[:]); err != nil {
			return err
		}
		size, kind := int64(binary.BigEndian.Uint32(head[:])), string(head[4:])
		if kind == "IDAT" || kind == "IEND" {
			return nil
		}
		const sum = 4
		if size > maxChunk {
			if _, err := io.CopyN(io.Discard, b, size+sum); err != nil {
				return err
			}
			continue
		}
		body := make([]byte, size+sum)
		if _, err := io.ReadFull(b, body); err != nil {
			return err
		}
		visit(kind, body[:size])
	}
}

func writeChunk(to *bytes.Buffer, kind string, body []byte) {
	chunk := append([]byte(kind), body...)
	out := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	to.Write(binary.BigEndian.AppendUint32(append(out, chunk...), crc32.ChecksumIEEE(chunk)))
}

// JPEG marker codes. Each code follows a 0xff byte.
const (
	markerSOF0  = 0xc0 // baseline
	markerSOF2  = 0xc2 // progressive
	markerDHT   = 0xc4
	markerJPG   = 0xc8
	markerDAC   = 0xcc
	markerSOF15 = 0xcf
	markerRST0  = 0xd0
	markerEOI   = 0xd9
	markerSOS   = 0xda // the scan data follows
	markerAPP1  = 0xe1 // EXIF
	markerAPP14 = 0xee // Adobe
)

// inspectJPEG parses the segments before a JPEG's scan data. It does not use image/jpeg, because
// image/jpeg reports neither the orientation nor the properties that determine the cost of
// decoding.
func inspectJPEG(b *bufio.Reader) (Header, error) {
	h := Header{Format: "jpeg", Orientation: 1}
	var frame jpegFrame
	if _, err := b.Discard(2); err != nil {
		return h, err
	}
	for {
		marker, body, err := segment(b)
		switch {
		case err != nil:
			return h, err
		case marker == markerSOS && frame.components == 0, marker == markerEOI:
			return h, errBroken
		case marker == markerSOS:
			h.decoded, h.costly = frame.decoded(), frame.progressive
			h.setSize(frame.width, frame.height)
			return h, nil
		case marker == markerAPP1:
			if tiff, ok := bytes.CutPrefix(body, []byte("Exif\x00\x00")); ok && h.Orientation == 1 {
				h.Orientation = Orientation(tiff)
			}
		case marker == markerAPP14:
			adobe := len(body) >= 12 && string(body[:5]) == "Adobe"
			frame.rgb = frame.rgb || adobe && body[11] == 0
		case isFrame(marker):
			if err := frame.parse(marker, body); err != nil {
				return h, err
			}
		}
	}
}

func isFrame(marker byte) bool {
	return marker >= markerSOF0 && marker <= markerSOF15 &&
		marker != markerDHT && marker != markerJPG && marker != markerDAC
}

// segment returns the next marker and its body. It skips markers that have no body, except the end
// marker. For the end marker and the scan marker, the returned body is nil.
func segment(b *bufio.Reader) (marker byte, body []byte, err error) {
	for {
		// bytes between segments are ignored, as in image/jpeg
		for marker != 0xff {
			marker, err = b.ReadByte()
			if err != nil {
				return 0, nil, err
			}
		}
		for marker == 0xff {
			marker, err = b.ReadByte()
			if err != nil {
				return 0, nil, err
			}
		}
		if marker == markerEOI || marker > 0x01 && (marker < markerRST0 || marker > markerEOI) {
			break
		}
	}
	if marker == markerEOI || marker == markerSOS {
		return marker, nil, nil
	}
	var size [2]byte
	if _, err := io.ReadFull(b, size[:]); err != nil {
		return 0, nil, err
	}
	n := int(binary.BigEndian.Uint16(size[:])) - 2
	if n < 0 {
		return 0, nil, errBroken
	}
	body = make([]byte, n) // at most 64 KB
	_, err = io.ReadFull(b, body)
	return marker, body, err
}

// jpegFrame is the frame header of a JPEG. The field rgb is also set if an Adobe segment, before or
// after the frame header, declares RGB colors.
type jpegFrame struct {
	width, height int
	components    int
	progressive   bool
	rgb           bool
	across, down  int   // 8 x 8 pixel blocks of the first component per coding unit
	unit          int64 // blocks of all components per coding unit
}

// parse parses the body of a frame segment. It returns errBroken if there is already a frame, or if
// the dimensions or the components are impossible.
func (f *jpegFrame) parse(marker byte, body []byte) error {
	if len(body) < 6 || f.components != 0 {
		return errBroken
	}
	f.height, f.width = int(binary.BigEndian.Uint16(body[1:])), int(binary.BigEndian.Uint16(body[3:]))
	f.components, f.progressive = int(body[5]), marker == markerSOF2
	rest := body[6:]
	if f.components == 0 || f.components > 4 || len(rest) < 3*f.components || f.width == 0 || f.height == 0 {
		return errBroken
	}
	f.rgb = f.rgb || f.components == 3 && rest[0] == 'R' && rest[3] == 'G' && rest[6] == 'B'
	for i := range f.components {
		h, v := int(rest[3*i+1]>>4), int(rest[3*i+1]&15)
		if h == 0 || v == 0 || h > 4 || v > 4 {
			return errBroken
		}
		if i == 0 {
			f.across, f.down = h, v
		}
		f.unit += int64(h * v)
	}
	if f.components == 1 { // a single component has units of one block
		f.across, f.down, f.unit = 1, 1, 1
	}
	return nil
}

// decoded returns the number of bytes that image/jpeg allocates. It allocates one byte for every
// sample, and four more for every sample of a progressive image. If the colors are not YCbCr, it
// also allocates a copy of the image.
func (f *jpegFrame) decoded() int64 {
	units := int64((f.width+8*f.across-1)/(8*f.across)) * int64((f.height+8*f.down-1)/(8*f.down))
	samples := 64 * f.unit * units
	n := samples
	if f.progressive {
		n += 4 * samples
	}
	if f.rgb || f.components == 4 {
		n += 4 * int64(f.width) * int64(f.height)
	}
	return n
}
