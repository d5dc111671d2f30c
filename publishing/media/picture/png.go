package picture

import (
	"bufio"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
)

const pngSignature = "\x89PNG\r\n\x1a\n"

// Color types of PNG.
const (
	pngGray      = 0
	pngRGB       = 2
	pngPalette   = 3
	pngGrayAlpha = 4
	pngRGBA      = 6
)

// pngHeader is the IHDR chunk.
type pngHeader struct {
	width, height int
	depth, color  byte
	interlaced    bool
}

func parsePNGHeader(body []byte) (pngHeader, error) {
	h := pngHeader{
		width: int(binary.BigEndian.Uint32(body)), height: int(binary.BigEndian.Uint32(body[4:])),
		depth: body[8], color: body[9], interlaced: body[12] == 1,
	}
	depths := map[byte]string{
		pngGray: "\x01\x02\x04\x08\x10", pngRGB: "\x08\x10", pngPalette: "\x01\x02\x04\x08", pngGrayAlpha: "\x08\x10", pngRGBA: "\x08\x10",
	}[h.color]
	known := false
	for i := range len(depths) {
		known = known || depths[i] == h.depth
	}
	sized := h.width > 0 && h.height > 0 && h.width <= 1<<31-1 && h.height <= 1<<31-1
	if !known || !sized || body[10] != 0 || body[11] != 0 || body[12] > 1 {
		return h, errBroken
	}
	return h, nil
}

// bits is how many bits a pixel has.
func (h pngHeader) bits() int {
	samples := map[byte]int{pngGray: 1, pngRGB: 3, pngPalette: 1, pngGrayAlpha: 2, pngRGBA: 4}[h.color]
	return samples * int(h.depth)
}

func inspectPNG(b *bufio.Reader) (Header, error) {
	var head [33]byte
	if _, err := io.ReadFull(b, head[:]); err != nil {
		return Header{}, err
	}
	if string(head[12:16]) != "IHDR" {
		return Header{}, errBroken
	}
	p, err := parsePNGHeader(head[16:29])
	h := Header{Format: "png", Width: p.width, Height: p.height, Orientation: 1, layered: p.interlaced}
	if err == nil && p.interlaced && p.height <= MaxPixels/p.width {
		// image/png holds the whole image and the largest of its passes, which has half the pixels.
		h.decoded = int64(p.width) * int64(p.height) * int64(max(4, p.depth/8*4)) * 3 / 2
	}
	return h, err
}

// pngRows decodes a PNG that is not interlaced, holding two rows of it.
type pngRows struct {
	pngHeader
	data      io.Reader // the filtered rows
	step      int       // bytes from a byte to the one that its filter looks at
	row, last []byte    // the filter's number and the bytes
	out       []byte
	palette   [256][4]byte
	key       []byte // the one color that is transparent, of gray and RGB images; nil for none
}

func newPNGRows(r io.Reader) (*pngRows, error) {
	c := &pngChunks{r: r, crc: crc32.NewIEEE()}
	var signature [len(pngSignature)]byte
	if _, err := io.ReadFull(r, signature[:]); err != nil || string(signature[:]) != pngSignature {
		return nil, errors.Join(errBroken, err)
	}
	p := &pngRows{}
	for i := range p.palette {
		p.palette[i] = [4]byte{0, 0, 0, 255}
	}
	for {
		if err := c.open(); err != nil {
			return nil, err
		}
		switch {
		case c.kind == "IHDR" && p.width == 0:
			if err := p.header(c); err != nil {
				return nil, err
			}
		case p.width == 0 || c.kind == "IEND":
			return nil, errBroken
		case c.kind == "PLTE":
			body, err := c.body(3 * len(p.palette))
			if err != nil || len(body)%3 != 0 {
				return nil, errors.Join(errBroken, err)
			}
			for i := range len(body) / 3 {
				copy(p.palette[i][:3], body[3*i:])
			}
		case c.kind == "tRNS":
			if err := p.transparency(c); err != nil {
				return nil, err
			}
		case c.kind == "IDAT":
			c.joined = true
			var err error
			p.data, err = zlib.NewReader(c)
			return p, err
		default:
			if err := c.skip(); err != nil {
				return nil, err
			}
		}
	}
}

func (p *pngRows) header(c *pngChunks) error {
	body, err := c.body(13)
	if err != nil || len(body) != 13 {
		return errors.Join(errBroken, err)
	}
	if p.pngHeader, err = parsePNGHeader(body); err != nil {
		return err
	}
	if p.interlaced || p.height > MaxPixels/p.width {
		return fmt.Errorf("%d x %d pixels, interlaced %t, cannot be read row by row", p.width, p.height, p.interlaced)
	}
	n := 1 + (p.width*p.bits()+7)/8
	p.row, p.last, p.out, p.step = make([]byte, n), make([]byte, n), make([]byte, 4*p.width), max(1, p.bits()/8)
	return nil
}

func (p *pngRows) transparency(c *pngChunks) error {
	body, err := c.body(len(p.palette))
	if err != nil {
		return err
	}
	switch {
	case p.color == pngPalette:
		for i, a := range body {
			p.palette[i][3] = a
		}
	case p.color == pngGray && len(body) >= 2, p.color == pngRGB && len(body) >= 6:
		p.key = body
	}
	return nil
}

func (p *pngRows) size() (width, height int) { return p.width, p.height }

func (p *pngRows) next() ([]byte, error) {
	p.row, p.last = p.last, p.row
	if _, err := io.ReadFull(p.data, p.row); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	if err := p.unfilter(); err != nil {
		return nil, err
	}
	p.convert(p.row[1:])
	return p.out, nil
}

// unfilter makes the row's bytes what they were before the encoder filtered them.
func (p *pngRows) unfilter() error {
	row, up := p.row[1:], p.last[1:]
	switch filter := p.row[0]; filter {
	case 0:
	case 1:
		for i := p.step; i < len(row); i++ {
			row[i] += row[i-p.step]
		}
	case 2:
		for i, u := range up {
			row[i] += u
		}
	case 3:
		for i := range row {
			left := 0
			if i >= p.step {
				left = int(row[i-p.step])
			}
			row[i] += uint8((left + int(up[i])) / 2)
		}
	case 4:
		for i := range row {
			left, corner := 0, 0
			if i >= p.step {
				left, corner = int(row[i-p.step]), int(up[i-p.step])
			}
			row[i] += paeth(left, int(up[i]), corner)
		}
	default:
		return fmt.Errorf("unknown filter %d", filter)
	}
	return nil
}

// paeth returns the one of three neighbors that is nearest to what they suggest.
func paeth(left, up, corner int) uint8 {
	toLeft, toUp, toCorner := abs(up-corner), abs(left-corner), abs(left+up-2*corner)
	switch {
	case toLeft <= toUp && toLeft <= toCorner:
		return uint8(left)
	case toUp <= toCorner:
		return uint8(up)
	}
	return uint8(corner)
}

func abs(n int) int { return max(n, -n) }

// convert writes the pixels of a row to out, on white.
func (p *pngRows) convert(row []byte) {
	width := max(1, int(p.depth)/8) // bytes of a sample
	for x := range p.width {
		out := p.out[4*x : 4*x+4 : 4*x+4]
		switch p.color {
		case pngRGBA:
			s := row[4*width*x:]
			onWhite(out, s[0], s[width], s[2*width], s[3*width])
		case pngRGB:
			s := row[3*width*x:]
			out[0], out[1], out[2] = s[0], s[width], s[2*width]
			if p.key != nil && isKey(s[:3*width], p.key) {
				onWhite(out, 0, 0, 0, 0)
			}
		case pngGrayAlpha:
			s := row[2*width*x:]
			onWhite(out, s[0], s[0], s[0], s[width])
		case pngPalette:
			c := &p.palette[packed(row, x, int(p.depth))]
			onWhite(out, c[0], c[1], c[2], c[3])
		default:
			p.gray(out, row, x)
		}
	}
}

func (p *pngRows) gray(out, row []byte, x int) {
	if p.depth == 16 {
		s := row[2*x : 2*x+2]
		out[0], out[1], out[2] = s[0], s[0], s[0]
		if p.key != nil && isKey(s, p.key) {
			onWhite(out, 0, 0, 0, 0)
		}
		return
	}
	v := packed(row, x, int(p.depth))
	g := uint8(int(v) * 255 / (1<<p.depth - 1))
	out[0], out[1], out[2] = g, g, g
	if p.key != nil && p.key[1] == v {
		onWhite(out, 0, 0, 0, 0)
	}
}

// isKey compares samples of one or two bytes with those of a tRNS chunk, which have two each.
func isKey(s, key []byte) bool {
	if len(s) == 3 {
		return s[0] == key[1] && s[1] == key[3] && s[2] == key[5]
	}
	return string(s) == string(key[:len(s)])
}

// packed returns the nth sample of a row, of at most 8 bits each.
func packed(row []byte, n, depth int) uint8 {
	if depth == 8 {
		return row[n]
	}
	perByte := 8 / depth
	return row[n/perByte] >> (8 - depth*(1+n%perByte)) & (1<<depth - 1)
}

func onWhite(out []byte, r, g, b, a uint8) {
	if a == 255 {
		out[0], out[1], out[2] = r, g, b
		return
	}
	white := 255 * uint32(255-a)
	for i, v := range [3]uint8{r, g, b} {
		out[i] = uint8((uint32(v)*uint32(a) + white + 127) / 255)
	}
}

// pngChunks reads the chunks of a PNG and checks their sums. Once joined, it is the bytes of consecutive IDAT chunks.
type pngChunks struct {
	r      io.Reader
	kind   string
	left   int
	crc    hash.Hash32
	joined bool
}

// open reads the next chunk's length and kind.
func (c *pngChunks) open() error {
	var head [8]byte
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > 1<<31-1 {
		return errBroken
	}
	c.kind, c.left = string(head[4:]), int(size)
	c.crc.Reset()
	_, err := c.crc.Write(head[4:])
	return err
}

// close checks the sum of a chunk that was read to its end.
func (c *pngChunks) close() error {
	var sum [4]byte
	if _, err := io.ReadFull(c.r, sum[:]); err != nil {
		return err
	}
	if binary.BigEndian.Uint32(sum[:]) != c.crc.Sum32() {
		return fmt.Errorf("the checksum of a chunk %q is wrong", c.kind)
	}
	return nil
}

// body reads a whole chunk of at most so many bytes.
func (c *pngChunks) body(most int) ([]byte, error) {
	if c.left > most {
		return nil, errBroken
	}
	out := make([]byte, c.left)
	if _, err := io.ReadFull(io.TeeReader(c.r, c.crc), out); err != nil {
		return nil, err
	}
	return out, c.close()
}

func (c *pngChunks) skip() error {
	if _, err := io.CopyN(c.crc, c.r, int64(c.left)); err != nil {
		return err
	}
	return c.close()
}

func (c *pngChunks) Read(p []byte) (int, error) {
	for c.joined && c.left == 0 {
		if err := c.close(); err != nil {
			return 0, err
		}
		if err := c.open(); err != nil {
			return 0, err
		}
		c.joined = c.kind == "IDAT"
	}
	if !c.joined {
		return 0, io.EOF
	}
	n, err := c.r.Read(p[:min(len(p), c.left)])
	c.left -= n
	_, _ = c.crc.Write(p[:n]) // a checksum takes everything
	return n, err
}
