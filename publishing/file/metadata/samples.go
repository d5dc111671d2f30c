package metadata

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"crier/platform/fault"
)

const (
	// maxSpans limits the number of separate ranges in which a video's samples are stored, and the
	// number of its media boxes. Two hours of video with one sample per chunk stay below the limit.
	maxSpans = 1 << 20
	// minGap is the size in bytes of the smallest gap that is zeroed. A smaller gap cannot hold a
	// location, and some programs leave such a gap after each chunk.
	minGap = 8
)

// samples records where a video holds the frames and sound of the tracks that stay.
type samples struct {
	// media are the bodies of the media boxes. spans are the ranges within these bodies that stay.
	// A span without an end extends to the next span.
	media, spans []span
	// kept holds the IDs of the tracks that stay. sizes holds, for each track, the default size of
	// a sample in fragments.
	kept  map[uint32]bool
	sizes map[uint32]int64
	// many means that there are more than maxSpans spans.
	many bool
}

const noEnd = -1

func (s *samples) addMedia(box span) {
	if box.to > box.from {
		s.media = s.append(s.media, box)
	}
}

func (s *samples) add(from, size int64) {
	if size > 0 && from >= 0 {
		s.spans = s.append(s.spans, span{from: from, to: from + min(size, math.MaxInt64/2)})
	}
}

func (s *samples) append(to []span, x span) []span {
	if last := len(to) - 1; last >= 0 && to[last].to == x.from && x.to != noEnd {
		to[last].to = x.to
		return to
	}
	if len(to) == maxSpans {
		s.many = true
		return to
	}
	return append(to, x)
}

// gaps returns Edits that zero the bytes outside of samples in the media boxes. size is the size of
// the file.
func (s *samples) gaps(size int64) ([]Edit, error) {
	if s.many {
		return nil, fault.New(
			fault.Invalid, "metadata.Edits", "The video is in too many pieces. Export it again as mp4.",
		)
	}
	byStart := func(a, b span) int { return cmp.Compare(a.from, b.from) }
	slices.SortFunc(s.media, byStart)
	slices.SortFunc(s.spans, byStart)
	var out []Edit
	next := 0
	for _, box := range s.media {
		at, end := box.from, min(box.to, size)
		gap := func(to int64) {
			if to-at >= minGap {
				out = append(out, Edit{At: at, Cut: to - at, Zero: true})
			}
		}
		for ; next < len(s.spans) && s.spans[next].from < end; next++ {
			x := s.spans[next]
			if x.to == noEnd {
				x.to = end
				if next+1 < len(s.spans) {
					x.to = min(end, s.spans[next+1].from)
				}
			}
			gap(x.from)
			at = max(at, x.to)
		}
		gap(end)
	}
	return out, nil
}

// table is the body of a box that contains numbers.
type table []byte

func (m movie) table(in span, path ...string) (table, bool) {
	body, ok := m.find(in, path...)
	return m.data[body.from:body.to], ok
}

var errTable = errors.New("a table of a track is shorter than it says")

// count returns the number of entries, which is stored at position at. The first entry begins at
// position head, and each entry is size bytes long. count returns errTable if the table is too
// short for that many entries.
func (t table) count(at, head, size int) (int, error) {
	if len(t) < head {
		return 0, errTable
	}
	n := int64(binary.BigEndian.Uint32(t[at:]))
	if n*int64(size) > int64(len(t)-head) {
		return 0, errTable
	}
	return int(n), nil
}

func (t table) word(at int) int64 { return int64(binary.BigEndian.Uint32(t[at:])) }

// flag reports whether one of the table's flags is set.
func (t table) flag(bit uint32) bool { return binary.BigEndian.Uint32(t)&bit != 0 }

// readSamples records the samples of the tracks that stay, as listed in a movie or fragment box.
func (m movie) readSamples(parent string, in span) error {
	switch parent {
	case "moov":
		return m.readTracks(in)
	case "moof":
		return m.readFragments(in)
	}
	return nil
}

func (m movie) readTracks(moov span) error {
	for c := range m.boxes(moov) {
		body := c.body()
		switch {
		case c.kind == "trak" && trackKinds[m.handler(body)]:
			if err := m.readTrack(body); err != nil {
				return err
			}
		case c.kind == "mvex":
			m.readDefaults(body)
		}
	}
	return nil
}

// readDefaults records each track's default sample size, which applies to fragments that do not
// specify a size.
func (m movie) readDefaults(mvex span) {
	const track, size, length = 4, 16, 20
	for c := range m.boxes(mvex) {
		if t := table(m.data[c.body().from:c.body().to]); c.kind == "trex" && len(t) >= length {
			m.f.samples.sizes[uint32(t.word(track))] = t.word(size)
		}
	}
}

func (m movie) readTrack(trak span) error {
	if header, ok := m.table(trak, "tkhd"); ok && len(header) >= 24 {
		id := 12
		if header[0] == 1 {
			id = 20
		}
		m.f.samples.kept[uint32(header.word(id))] = true
	}
	list, ok := m.find(trak, "mdia", "minf", "stbl")
	if !ok {
		return nil
	}
	chunks, err := m.readChunks(list)
	if err != nil || len(chunks) == 0 {
		return err
	}
	const entry, head = 12, 8 // the first chunk, the samples in each, the format
	runs, ok := m.table(list, "stsc")
	number, err := runs.count(4, head, entry)
	if !ok || err != nil {
		return errTable
	}
	size, constant, err := m.readSizes(list)
	if err != nil {
		return err
	}
	run, next := 0, 0
	for i, at := range chunks {
		for run+1 < number && runs.word(head+entry*(run+1)) <= int64(i)+1 {
			run++
		}
		if run >= number {
			return nil
		}
		// in QuickTime, the constant size may be the size of only a part of a sample
		if constant {
			m.f.samples.spans = m.f.samples.append(m.f.samples.spans, span{from: at, to: noEnd})
			continue
		}
		var sum int64
		for range runs.word(head + entry*run + 4) {
			n, ok := size(next)
			if !ok {
				break
			}
			sum += n
			next++
		}
		m.f.samples.add(at, sum)
	}
	return nil
}

// readChunks returns the positions at which a track's chunks begin.
func (m movie) readChunks(list span) ([]int64, error) {
	const head = 8
	width := 4
	t, ok := m.table(list, "stco")
	if !ok {
		if t, ok = m.table(list, "co64"); !ok {
			return nil, nil
		}
		width = 8
	}
	n, err := t.count(4, head, width)
	if err != nil {
		return nil, err
	}
	out := make([]int64, n)
	for i := range out {
		if out[i] = t.word(head + width*i); width == 8 {
			out[i] = int64(min(binary.BigEndian.Uint64(t[head+width*i:]), math.MaxInt64/2))
		}
	}
	return out, nil
}

// readSizes returns a function that returns the size of sample i, or false if there is no such
// sample. If constant is true, all samples have the same size and the function is nil.
func (m movie) readSizes(list span) (size func(i int) (int64, bool), constant bool, err error) {
	const head = 12
	if t, ok := m.table(list, "stsz"); ok {
		if len(t) >= head && t.word(4) != 0 {
			return nil, true, nil
		}
		n, err := t.count(8, head, 4)
		return func(i int) (int64, bool) {
			if i >= n {
				return 0, false
			}
			return t.word(head + 4*i), true
		}, false, err
	}
	t, ok := m.table(list, "stz2")
	if !ok || len(t) < head {
		return nil, false, errTable
	}
	bits := int(t[7])
	n := int(t.word(8))
	if bits != 4 && bits != 8 && bits != 16 || int64(n)*int64(bits) > 8*int64(len(t)-head) {
		return nil, false, errTable
	}
	return func(i int) (int64, bool) {
		switch {
		case i >= n:
			return 0, false
		case bits == 4:
			return int64(t[head+i/2]>>(4*(1-i%2))) & 15, true
		case bits == 8:
			return int64(t[head+i]), true
		default:
			return int64(binary.BigEndian.Uint16(t[head+2*i:])), true
		}
	}, false, nil
}

// readFragments records the samples in the parts of a fragment. If a part does not specify where
// its samples begin, they follow the samples of the previous part.
func (m movie) readFragments(moof span) error {
	end := m.from
	for c := range m.boxes(moof) {
		if c.kind != "traf" {
			continue
		}
		var err error
		if end, err = m.readFragment(c.body(), end); err != nil {
			return err
		}
	}
	return nil
}

// readFragment records the samples in one part of a fragment and returns where they end. If the
// part does not specify where its samples begin, they begin at base.
func (m movie) readFragment(traf span, base int64) (end int64, err error) {
	const hasBase, hasFormat, hasDuration, hasSize, fromMoof = 0x1, 0x2, 0x8, 0x10, 0x20000
	header, ok := m.table(traf, "tfhd")
	if !ok || len(header) < 8 {
		return 0, errTable
	}
	track := uint32(header.word(4))
	usual, at := m.f.samples.sizes[track], 8
	if header.flag(fromMoof) {
		base = m.from
	}
	for _, optional := range []struct {
		bit  uint32
		size int
	}{{hasBase, 8}, {hasFormat, 4}, {hasDuration, 4}, {hasSize, 4}} {
		if !header.flag(optional.bit) {
			continue
		}
		if len(header) < at+optional.size {
			return 0, errTable
		}
		switch optional.bit {
		case hasBase:
			base = int64(min(binary.BigEndian.Uint64(header[at:]), math.MaxInt64/2))
		case hasSize:
			usual = header.word(at)
		}
		at += optional.size
	}
	end = base
	for c := range m.boxes(traf) {
		if c.kind != "trun" {
			continue
		}
		from, size, err := table(m.data[c.body().from:c.body().to]).run(base, end, usual)
		if err != nil {
			return 0, err
		}
		if m.f.samples.kept[track] {
			m.f.samples.add(from, size)
		}
		end = from + size
	}
	return end, nil
}

// run returns where a run's samples begin, and their total size. If the run does not specify sample
// sizes, each sample has the size usual.
func (t table) run(base, end, usual int64) (from, size int64, err error) {
	const hasOffset, hasFlags, hasDuration, hasSize, hasSampleFlags, hasTime = 0x1, 0x4, 0x100, 0x200, 0x400, 0x800
	if len(t) < 8 {
		return 0, 0, errTable
	}
	head, entry, sizeAt := 8, 0, 0
	if from = end; t.flag(hasOffset) {
		if len(t) < head+4 {
			return 0, 0, errTable
		}
		from = base + int64(int32(binary.BigEndian.Uint32(t[head:])))
		head += 4
	}
	if t.flag(hasFlags) {
		head += 4
	}
	for _, bit := range []uint32{hasDuration, hasSize, hasSampleFlags, hasTime} {
		if bit == hasSize {
			sizeAt = entry
		}
		if t.flag(bit) {
			entry += 4
		}
	}
	n, err := t.count(4, head, entry)
	if err != nil {
		return 0, 0, err
	}
	if !t.flag(hasSize) {
		return from, min(int64(n)*min(usual, math.MaxInt32), math.MaxInt64/2), nil
	}
	for i := range n {
		size += t.word(head + entry*i + sizeAt)
	}
	return from, size, nil
}
