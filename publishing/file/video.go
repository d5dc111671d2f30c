package file

import (
	"encoding/binary"
	"math"
	"slices"
	"time"
)

// VideoProbe parses a video's boxes (ISO/IEC 14496-12) as the file is written to it. The boxes may
// be anywhere in the file. VideoProbe buffers at most headLimit bytes. It never fails: if it does
// not find a value, the value is 0, and Incomplete reports what is missing. The zero VideoProbe is
// ready for use.
type VideoProbe struct {
	width, height               int
	movieLength, fragmentLength time.Duration // fragmentLength is 0 unless the video has fragments
	timescale                   uint32

	quickTime bool         // by its brand, or because it has none
	movie     bool         // there is a movie box
	fragments bool         // there are fragment boxes
	owed      bool         // no data has followed the last fragment box
	track     videoTrack   // the track being read
	tracks    []videoTrack // the tracks with pictures or sound, at most maxTracks
	lastChunk uint64       // offset of the data farthest from the beginning

	at    uint64 // bytes read so far
	first bool   // the first box was read
	open  []openBox
	top   openBox // the last top-level box

	skip  uint64 // remaining bytes of a box that is not parsed
	need  int    // number of bytes that step parses; 0 before the first box
	have  []byte
	step  func([]byte)
	ended bool
}

// openBox is a box with its end offset, which is toEnd if the box extends to the end of the file.
type openBox struct {
	kind string
	end  uint64
}

type videoTrack struct {
	kind    string // vide or soun, as its handler says
	codec   string // the type of its sample entry
	samples uint32 // outside fragments
}

const (
	boxHeader = 8
	toEnd     = math.MaxInt64
	maxTracks = 32
	// headLimit is the size in bytes of tkhd version 1, the largest box that is read.
	headLimit = 96
	// maxSide is the maximum length of a side in pixels. maxLength is the maximum duration. A
	// larger value is treated as an error in the file.
	maxSide   = 1 << 16
	maxLength = 30 * 24 * time.Hour
)

// Size returns the width and height, in pixels, at which a player shows the video.
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
			v.skip, v.at, p = v.skip-k, v.at+k, p[k:]
			continue
		}
		k := min(v.need-len(v.have), len(p))
		v.have, v.at, p = append(v.have, p[:k]...), v.at+uint64(k), p[k:]
		if len(v.have) == v.need {
			head := v.have
			v.have = v.have[:0]
			v.step(head)
		}
	}
	v.at += uint64(len(p))
	return n, nil
}

func (v *VideoProbe) expect(n int, step func([]byte)) { v.need, v.step = n, step }

// box parses the size and the type of a box. If the size is 1, a 64-bit size follows. If the size
// is 0, the box extends to the end of the enclosing box or of the file.
func (v *VideoProbe) box(head []byte) {
	size, kind := uint64(binary.BigEndian.Uint32(head)), string(head[4:])
	switch size {
	case 0:
		v.body(kind, toEnd, boxHeader)
	case 1:
		v.expect(8, func(long []byte) { v.body(kind, binary.BigEndian.Uint64(long), 2*boxHeader) })
	default:
		v.body(kind, size, boxHeader)
	}
}

// body handles the body of a box. It enters a box that contains other boxes, reads the beginning of
// a known box, and skips every other box. A box is assumed to end no later than the box that
// encloses it.
func (v *VideoProbe) body(kind string, size, header uint64) {
	if size < header {
		v.ended = true
		return
	}
	end := toEnd - min(toEnd, v.at)
	if size != toEnd {
		end = min(end, size-header)
	}
	end += v.at
	if around := len(v.open) - 1; around >= 0 {
		end = min(end, v.open[around].end)
	} else {
		v.enterTop(openBox{kind: kind, end: end})
	}
	left := end - v.at
	read, most := v.reader(kind)
	switch {
	case slices.Contains(containers, kind) && len(v.open) < len(containers):
		v.open = append(v.open, openBox{kind: kind, end: end})
		v.next()
	case kind == "stco" && left > 8:
		v.chunks(left, 4)
	case kind == "co64" && left > 8:
		v.chunks(left, 8)
	case read == nil || left < 4:
		v.skip = left
		v.next()
	default:
		v.expect(int(min(left, uint64(most))), func(b []byte) {
			read(b)
			v.skip = left - uint64(len(b))
			v.next()
		})
	}
}

// containers are the boxes that body enters. The nesting depth is at most the length of this list.
var containers = []string{"moov", "trak", "mdia", "minf", "stbl", "mvex"}

// enterTop records a top-level box.
func (v *VideoProbe) enterTop(b openBox) {
	switch b.kind {
	case "moov":
		v.movie = true
	case "moof":
		v.fragments, v.owed = true, true
	case "mdat":
		v.owed = false
	}
	v.quickTime = v.quickTime || !v.first && b.kind != "ftyp"
	v.first, v.top = true, b
}

// next leaves every open box that has no room for another box after the skipped bytes. Then it
// expects the header of the next box.
func (v *VideoProbe) next() {
	for len(v.open) > 0 {
		b := v.open[len(v.open)-1]
		if b.end >= v.at+v.skip+boxHeader {
			break
		}
		v.skip = b.end - v.at
		v.open = v.open[:len(v.open)-1]
		if b.kind == "trak" {
			v.endTrack()
		}
	}
	v.expect(boxHeader, v.box)
}

func (v *VideoProbe) endTrack() {
	if (v.track.kind == "vide" || v.track.kind == "soun") && len(v.tracks) < maxTracks {
		v.tracks = append(v.tracks, v.track)
	}
	v.track = videoTrack{}
}

// reader returns the function that reads a box of this kind, and the maximum number of bytes that
// the function needs.
func (v *VideoProbe) reader(kind string) (read func([]byte), most int) {
	switch kind {
	case "ftyp":
		return v.brand, 4
	case "mvhd":
		return v.header, 32
	case "tkhd":
		return v.shape, headLimit
	case "mehd":
		return v.fragmented, 12
	case "hdlr":
		// QuickTime has other handlers elsewhere
		if len(v.open) > 0 && v.open[len(v.open)-1].kind == "mdia" {
			return v.handler, 12
		}
	case "stsd":
		return v.entry, 16
	case "stsz", "stz2":
		return v.count, 12
	}
	return nil, 0
}

// brand reads the first brand.
func (v *VideoProbe) brand(b []byte) { v.quickTime = v.quickTime || string(b) == "qt  " }

// entry skips the version, the flags and the number of entries, and reads the type of the first
// sample entry.
func (v *VideoProbe) entry(b []byte) {
	if len(b) == 16 {
		v.track.codec = string(b[12:])
	}
}

// count skips the version, the flags and the default sample size, and reads the number of samples.
func (v *VideoProbe) count(b []byte) {
	if len(b) == 12 {
		v.track.samples = binary.BigEndian.Uint32(b[8:])
	}
}

// chunks reads the last offset in a table of chunk offsets. left is the size of the table in bytes.
// The table consists of the version, the flags, the number of offsets, and then the offsets in
// increasing order. Each offset is width bytes long.
func (v *VideoProbe) chunks(left, width uint64) {
	v.expect(8, func(b []byte) {
		left -= 8
		n := min(uint64(binary.BigEndian.Uint32(b[4:])), left/width)
		if n == 0 {
			v.skip = left
			v.next()
			return
		}
		v.skip = (n - 1) * width
		v.expect(int(width), func(b []byte) {
			offset := binary.BigEndian.Uint64(append(make([]byte, 8-width), b...))
			v.lastChunk = max(v.lastChunk, offset)
			v.skip = left - n*width
			v.next()
		})
	})
}

// header reads the movie header, which contains the version, the flags, two times, the time scale
// and the length.
func (v *VideoProbe) header(b []byte) {
	switch {
	case b[0] == 0 && len(b) >= 20:
		v.timescale = binary.BigEndian.Uint32(b[12:])
		v.movieLength = v.time(uint64(binary.BigEndian.Uint32(b[16:])), math.MaxUint32)
	case b[0] == 1 && len(b) >= 32:
		v.timescale = binary.BigEndian.Uint32(b[20:])
		v.movieLength = v.time(binary.BigEndian.Uint64(b[24:]), math.MaxUint64)
	}
}

// fragmented reads the length of a video whose samples are stored in fragments.
func (v *VideoProbe) fragmented(b []byte) {
	switch {
	case b[0] == 0 && len(b) >= 8:
		v.fragmentLength = v.time(uint64(binary.BigEndian.Uint32(b[4:])), math.MaxUint32)
	case b[0] == 1 && len(b) >= 12:
		v.fragmentLength = v.time(binary.BigEndian.Uint64(b[4:]), math.MaxUint64)
	}
}

// handler skips the version, the flags and a field that only QuickTime uses, and reads the kind of
// a track.
func (v *VideoProbe) handler(b []byte) {
	if len(b) == 12 {
		v.track.kind = string(b[8:])
	}
}

// time converts time-scale units to a duration. unknown is the largest possible value of units,
// which means that the time is unknown. In that case, the result is 0.
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

// shape reads a track's dimensions, in 16.16 fixed point. If the track is rotated by a quarter
// turn, shape swaps width and height. If there are several picture tracks, the dimensions of the
// largest one are used.
func (v *VideoProbe) shape(b []byte) {
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
