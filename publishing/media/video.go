package media

import (
	"encoding/binary"
	"math"
	"time"
)

// VideoProbe reads the size and the length of an MP4 video from its bytes as they are written to it, wherever in the
// file they stand. It stores at most headLimit bytes and never fails: what it does not find is 0. The zero VideoProbe is
// ready for use.
type VideoProbe struct {
	width, height               int
	movieLength, fragmentLength time.Duration // the second is 0 unless the video has fragments
	hasMovie                    bool          // there is a movie box
	picture, sound              bool          // there is a track with it

	timescale uint32
	skip      uint64 // remaining bytes of a box that is not read
	need      int    // size of what step parses, 0 before the first box
	have      []byte
	step      func([]byte)
	ended     bool
}

const (
	boxHeader = 8
	// headLimit is in bytes: tkhd of version 1, the largest box that is read.
	headLimit = 96
	// maxSide is in pixels, and maxLength the longest video: larger values are errors of the file.
	maxSide   = 1 << 16
	maxLength = 30 * 24 * time.Hour
)

// Size returns the width and the height in pixels as a player shows them.
func (v *VideoProbe) Size() (width, height int) { return v.width, v.height }

// Length returns how long the video plays.
func (v *VideoProbe) Length() time.Duration { return max(v.movieLength, v.fragmentLength) }

// Write implements io.Writer.
func (v *VideoProbe) Write(p []byte) (int, error) {
	n := len(p)
	if v.step == nil {
		v.expect(boxHeader, v.box)
	}
	for len(p) > 0 && !v.ended {
		if v.skip > 0 {
			k := min(v.skip, uint64(len(p)))
			v.skip, p = v.skip-k, p[k:]
			continue
		}
		k := min(v.need-len(v.have), len(p))
		v.have, p = append(v.have, p[:k]...), p[k:]
		if len(v.have) == v.need {
			head := v.have
			v.have = v.have[:0]
			v.step(head)
		}
	}
	return n, nil
}

func (v *VideoProbe) expect(n int, step func([]byte)) { v.need, v.step = n, step }

// box parses the size and the type of a box. A size of 1 stands for one of 64 bits, which follows, and 0 for the rest
// of the file.
func (v *VideoProbe) box(head []byte) {
	size, kind := uint64(binary.BigEndian.Uint32(head)), string(head[4:])
	switch size {
	case 0:
		v.ended = true
	case 1:
		v.expect(8, func(long []byte) { v.body(kind, binary.BigEndian.Uint64(long), 2*boxHeader) })
	default:
		v.body(kind, size, boxHeader)
	}
}

// body enters the boxes that contain others, reads the beginning of those that are known, and skips the others.
func (v *VideoProbe) body(kind string, size, header uint64) {
	if size < header {
		v.ended = true
		return
	}
	left := size - header
	v.expect(boxHeader, v.box)
	read, most := v.reader(kind)
	switch {
	case kind == "moov":
		v.hasMovie = true
	case kind == "trak" || kind == "mdia" || kind == "mvex":
	case read == nil || left < 4:
		v.skip = left
	default:
		n := min(left, uint64(most))
		v.expect(int(n), func(b []byte) {
			read(b)
			v.skip = left - n
			v.expect(boxHeader, v.box)
		})
	}
}

// reader returns the function that reads a box, and how many of its bytes it needs at most.
func (v *VideoProbe) reader(kind string) (read func([]byte), most int) {
	switch kind {
	case "mvhd":
		return v.movie, 32
	case "tkhd":
		return v.track, headLimit
	case "mehd":
		return v.fragments, 12
	case "hdlr":
		return v.handler, 12
	}
	return nil, 0
}

// movie reads the header of the whole: version, flags, two times, the time scale and the length.
func (v *VideoProbe) movie(b []byte) {
	switch {
	case b[0] == 0 && len(b) >= 20:
		v.timescale = binary.BigEndian.Uint32(b[12:])
		v.movieLength = v.time(uint64(binary.BigEndian.Uint32(b[16:])), math.MaxUint32)
	case b[0] == 1 && len(b) >= 32:
		v.timescale = binary.BigEndian.Uint32(b[20:])
		v.movieLength = v.time(binary.BigEndian.Uint64(b[24:]), math.MaxUint64)
	}
}

// fragments reads the length of a video whose samples are in fragments.
func (v *VideoProbe) fragments(b []byte) {
	switch {
	case b[0] == 0 && len(b) >= 8:
		v.fragmentLength = v.time(uint64(binary.BigEndian.Uint32(b[4:])), math.MaxUint32)
	case b[0] == 1 && len(b) >= 12:
		v.fragmentLength = v.time(binary.BigEndian.Uint64(b[4:]), math.MaxUint64)
	}
}

// handler reads what a track holds: version, flags, a field that QuickTime uses, and the kind.
func (v *VideoProbe) handler(b []byte) {
	if len(b) < 12 {
		return
	}
	switch string(b[8:12]) {
	case "vide":
		v.picture = true
	case "soun":
		v.sound = true
	}
}

// time converts a number of units of the time scale. It returns 0 for unknown, which is the largest number.
func (v *VideoProbe) time(units, unknown uint64) time.Duration {
	if v.timescale == 0 || units == unknown {
		return 0
	}
	seconds := float64(units) / float64(v.timescale)
	if seconds > maxLength.Seconds() {
		return 0
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Millisecond)
}

// track reads the size of a track, in fixed point with 16 bits of fraction, and whether it is turned by a quarter. Of
// several tracks with a picture the largest counts.
func (v *VideoProbe) track(b []byte) {
	matrix := 40
	if b[0] == 1 {
		matrix = 52
	}
	if len(b) < matrix+44 {
		return
	}
	width, height := int(binary.BigEndian.Uint32(b[matrix+36:])>>16), int(binary.BigEndian.Uint32(b[matrix+40:])>>16)
	if binary.BigEndian.Uint32(b[matrix:]) == 0 && binary.BigEndian.Uint32(b[matrix+4:]) != 0 {
		width, height = height, width
	}
	if width <= maxSide && height <= maxSide && width*height > v.width*v.height {
		v.width, v.height = width, height
	}
}
