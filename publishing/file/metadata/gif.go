package metadata

import (
	"encoding/binary"
)

// GIF blocks and extensions.
const (
	gifExtension, gifImage, gifTrailer           = 0x21, 0x2C, 0x3B
	gifControl, gifApplication                   = 0xF9, 0xFF
	gifHead, gifDescriptor, gifApplicationHeader = 13, 9, 11
	// gifLoop is the length in bytes of an extension that contains an animation's repeat count and
	// nothing else.
	gifLoop = 19
)

type gifFormat struct {
	w *walker
	// end is the position after the trailer; -1 before the trailer is reached.
	end int64
	// from is where the current extension begins. control is where the last control extension
	// begins; -1 if there is none. A control extension applies to the next image or text.
	from, control int64
	// keep means that the current extension stays.
	keep bool
	// loop is the repeat count in the current extension; -1 if there is none.
	loop int
}

func newGIF(w *walker) *gifFormat {
	f := &gifFormat{w: w, end: -1, control: -1, loop: -1}
	w.expect(gifHead, func(head []byte) {
		w.skip = gifTable(head[10])
		w.expect(1, f.block)
	})
	return f
}

// gifTable returns the size in bytes of the color table declared by a descriptor's flags.
func gifTable(flags byte) int64 {
	if flags&0x80 == 0 {
		return 0
	}
	return 3 << (flags&7 + 1)
}

func (f *gifFormat) block(head []byte) {
	switch head[0] {
	case gifTrailer:
		f.end, f.w.done = f.w.at, true
	case gifExtension:
		f.from = f.w.at - 1
		f.w.expect(1, f.extension)
	case gifImage:
		f.control = -1
		f.w.expect(gifDescriptor, func(d []byte) {
			// includes the byte with the code size
			f.w.skip = gifTable(d[8]) + 1
			f.from, f.keep, f.loop = f.w.at, true, -1
			f.w.expect(1, f.data)
		})
	// decoders skip anything else
	default:
		f.w.cut(f.w.at-1, 1, nil)
	}
}

func (f *gifFormat) extension(label []byte) {
	f.keep, f.loop = label[0] == gifControl, -1
	switch label[0] {
	case gifControl:
		f.control = f.from
	case gifApplication:
		f.w.expect(1, f.application)
		return
	case 0x01: // a text; its control extension is removed along with it
		if f.control >= 0 {
			f.from, f.control = f.control, -1
		}
	}
	f.w.expect(1, f.data)
}

// application parses the length of the application name in an extension.
func (f *gifFormat) application(length []byte) {
	if length[0] != gifApplicationHeader {
		f.data(length)
		return
	}
	f.w.expect(gifApplicationHeader, func(name []byte) {
		next := f.data
		switch string(name) {
		case "NETSCAPE2.0", "ANIMEXTS1.0":
			next = f.repetitions
		case "ICCRGBG1012":
			f.keep = true
		}
		f.w.expect(1, next)
	})
}

// repetitions parses the length of a data block in an extension that contains an animation's repeat
// count.
func (f *gifFormat) repetitions(length []byte) {
	if length[0] != 3 {
		f.data(length)
		return
	}
	f.w.expect(3, func(b []byte) {
		if b[0]&7 == 1 {
			f.loop = int(binary.LittleEndian.Uint16(b[1:]))
		}
		f.w.expect(1, f.data)
	})
}

// data parses the length of a data block. A length of zero ends the sequence.
func (f *gifFormat) data(length []byte) {
	if length[0] > 0 {
		f.w.skip = int64(length[0])
		f.w.expect(1, f.data)
		return
	}
	f.w.expect(1, f.block)
	if f.keep || f.loop >= 0 && f.w.at-f.from == gifLoop {
		return
	}
	var put []byte
	if f.loop >= 0 {
		put = append([]byte{gifExtension, gifApplication, gifApplicationHeader}, "NETSCAPE2.0"...)
		put = append(binary.LittleEndian.AppendUint16(append(put, 3, 1), uint16(f.loop)), 0)
	}
	f.w.cut(f.from, f.w.at-f.from, put)
}

func (f *gifFormat) finish(size int64) ([]Edit, error) { return f.w.tail(f.end, size), nil }
