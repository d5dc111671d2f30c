package metadata

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"

	"github.com/abema/go-mp4"

	"crier/platform/fault"
)

const (
	boxHead = 8
	// maxMovie is the largest movie box, or box of a fragment, in bytes. Half a day of video needs less.
	maxMovie = 32 << 20
	// maxPieces is how many pieces of the file the samples of removed tracks may occupy.
	maxPieces = 1 << 16
)

// movieBoxes are the boxes that stay, by the box that contains them; "" is the file. They are the
// boxes of ISO/IEC 14496-12 that pictures, sound and closed captions need. The others become free
// space of the same size, so that nothing moves.
var movieBoxes = map[string]map[string]bool{
	"":     names("ftyp styp sidx ssix mfra pdin moov moof mdat"),
	"moov": names("mvhd trak mvex iods pssh"),
	"trak": names("tkhd mdia edts tapt"),
	"mdia": names("mdhd hdlr minf elng"),
	"minf": names("vmhd smhd nmhd sthd gmhd hdlr dinf stbl"),
	"stbl": names("stsd stts stss ctts cslg stsc stsz stz2 stco co64 sdtp stsh padb stdp sbgp sgpd subs saiz saio stps"),
	"mvex": names("mehd trex leva trep"),
	"moof": names("mfhd traf pssh"),
	"traf": names("tfhd tfdt trun sbgp sgpd subs saiz saio senc"),
}

// trackKinds are the handlers of the tracks that stay. Others hold positions, sensor data, titles,
// and faces that a camera has found; cameras also write positions into subtitle tracks.
var trackKinds = map[string]bool{"vide": true, "soun": true, "auxv": true, "clcp": true}

func names(list string) map[string]bool {
	out := map[string]bool{}
	for _, name := range bytes.Fields([]byte(list)) {
		out[string(name)] = true
	}
	return out
}

// span is a range of bytes.
type span struct{ from, to int64 }

type movieFormat struct {
	w *walker
	// media are the ranges where samples may be.
	media []span
	// samples are those of the removed tracks.
	samples []span
	// removed has the ids of these tracks, and sizes the default sample size of each track in fragments.
	removed map[uint32]bool
	sizes   map[uint32]uint32
	// end is where something begins that is not a box, -1 if nothing does.
	end int64
	// open cleans a movie box that extends to the end of the file. unfinished means that a box has
	// not arrived completely.
	open       func([]byte)
	unfinished bool
	err        error
}

func newMovie(w *walker) *movieFormat {
	f := &movieFormat{w: w, removed: map[uint32]bool{}, sizes: map[uint32]uint32{}, end: -1}
	w.expect(boxHead, f.box)
	return f
}

// box takes the header of a top-level box.
func (f *movieFormat) box(head []byte) {
	size, kind := int64(binary.BigEndian.Uint32(head)), string(head[4:])
	switch {
	case size == 1:
		first := bytes.Clone(head)
		f.w.expect(boxHead, func(more []byte) {
			f.w.expect(boxHead, f.box)
			long := binary.BigEndian.Uint64(more)
			if long < 2*boxHead || long > math.MaxInt64/2 {
				f.stop(f.w.at - 2*boxHead)
				return
			}
			f.body(kind, append(first, more...), int64(long))
		})
	case size == 0: // it extends to the end of the file
		f.body(kind, bytes.Clone(head), math.MaxInt64/2)
	case size < boxHead:
		f.stop(f.w.at - boxHead)
	default:
		f.body(kind, bytes.Clone(head), size)
	}
}

// stop ends the boxes. What follows is removed: players ignore it, and cameras write logs there.
func (f *movieFormat) stop(at int64) { f.end, f.w.done = at, true }

// body takes the complete header of a top-level box, and the size of the box, header included.
func (f *movieFormat) body(kind string, head []byte, size int64) {
	from, body := f.w.at-int64(len(head)), size-int64(len(head))
	switch {
	case kind == "moov", kind == "moof":
		f.movie(kind, from, int64(len(head)), body)
		return
	case kind == "mdat":
		f.media = append(f.media, span{from: from + int64(len(head)), to: from + size})
	case !movieBoxes[""][kind]:
		f.w.blank(kind, from, int64(len(head)), size)
	}
	f.w.skip = body
}

// movie cleans a box whose body follows.
func (f *movieFormat) movie(kind string, from, head, body int64) {
	clean := func(b []byte) {
		f.w.have = nil // it may be large
		f.w.expect(boxHead, f.box)
		f.unfinished, f.open = false, nil
		m := movie{f: f, from: from, at: from + head, data: b}
		if err := m.clean(kind, span{to: int64(len(b))}); err != nil && f.err == nil {
			f.err = fmt.Errorf("%s: %w", kind, err)
		}
	}
	f.unfinished = true
	if body > math.MaxInt64/4 { // it extends to the end of the file
		f.open, body = clean, maxMovie+1
	}
	if body > maxMovie {
		clean = func([]byte) {
			f.err = fault.New(fault.Invalid, "metadata.Edits",
				fmt.Sprintf("The video's %s box is larger than %d bytes.", kind, int64(maxMovie)))
			f.w.done = true
		}
		body = min(body, maxMovie+1)
	}
	f.w.expect(int(body), clean)
}

// blank turns a box into free space.
func (w *walker) blank(kind string, from, head, size int64) {
	const free = "free"
	if kind != free {
		w.edits = append(w.edits, Edit{At: from + 4, Cut: 4, Put: []byte(free)})
	}
	w.zero(from+head, size-head)
}

func (f *movieFormat) finish(size int64) ([]Edit, error) {
	if f.open != nil {
		f.open(f.w.have)
	}
	if f.unfinished && f.err == nil {
		f.err = io.ErrUnexpectedEOF
	}
	if f.err != nil {
		return nil, f.err
	}
	if len(f.samples) > maxPieces {
		return nil, fault.New(fault.Invalid, "metadata.Edits",
			"The video has a track of data in too many pieces. Export it again with picture and sound only.")
	}
	out := f.w.tail(f.end, size)
	for _, s := range f.samples {
		for _, m := range f.media {
			if from, to := max(s.from, m.from), min(s.to, m.to, size); from < to {
				out = append(out, Edit{At: from, Cut: to - from, Zero: true})
			}
		}
	}
	return out, nil
}

// movie is the body of a box, in memory. Positions are relative to data.
type movie struct {
	f *movieFormat
	// from is where the box begins in the file, and at where data begins.
	from, at int64
	data     []byte
	// track is the kind of the track being cleaned.
	track string
}

var errBoxes = errors.New("a box does not end in the one that it is in")

// child is a box inside another.
type child struct {
	kind string
	head int64
	span
}

func (c child) body() span { return span{from: c.from + c.head, to: c.to} }

// boxes returns the boxes in a part of the data. It ignores trailing bytes that are too few for a
// header, and zeros, with which QuickTime ends lists. The last child of a broken list has the kind
// "".
func (m movie) boxes(in span) iter.Seq[child] {
	return func(yield func(child) bool) {
		for at := in.from; in.to-at >= boxHead; {
			size, head := int64(binary.BigEndian.Uint32(m.data[at:])), int64(boxHead)
			switch {
			case size == 0 && binary.BigEndian.Uint32(m.data[at+4:]) == 0:
				return
			case size == 0:
				size = in.to - at
			case size == 1 && in.to-at >= 2*boxHead:
				size, head = int64(min(binary.BigEndian.Uint64(m.data[at+boxHead:]), math.MaxInt64)), 2*boxHead
			}
			if size < head || size > in.to-at {
				yield(child{})
				return
			}
			if !yield(child{kind: string(m.data[at+4 : at+boxHead]), head: head, span: span{from: at, to: at + size}}) {
				return
			}
			at += size
		}
	}
}

// find returns the first box at a path, or false.
func (m movie) find(in span, path ...string) (span, bool) {
	for c := range m.boxes(in) {
		if c.kind != path[0] {
			continue
		}
		if len(path) == 1 {
			return c.body(), true
		}
		return m.find(c.body(), path[1:]...)
	}
	return span{}, false
}

func (m movie) bytes(s span) []byte { return m.data[s.from:s.to] }

func (m movie) zero(from, to int64) { m.f.w.zero(m.at+from, to-from) }

func (m movie) blank(c child) { m.f.w.blank(c.kind, m.at+c.from, c.head, c.to-c.from) }

// clean cleans the boxes inside one of movieBoxes.
func (m movie) clean(parent string, in span) error {
	if parent == "moov" {
		if err := m.defaults(in); err != nil {
			return err
		}
	}
	for c := range m.boxes(in) {
		if c.kind == "" {
			return errBoxes
		}
		if err := m.cleanChild(parent, c); err != nil {
			return fmt.Errorf("%s: %w", c.kind, err)
		}
	}
	return nil
}

func (m movie) cleanChild(parent string, c child) error {
	body := c.body()
	switch {
	case !movieBoxes[parent][c.kind]:
		m.blank(c)
		return nil
	case c.kind == "trak":
		if m.track = m.handler(body); !trackKinds[m.track] {
			m.blank(c)
			return m.dropTrack(body)
		}
		return m.clean(c.kind, body)
	case c.kind == "traf" && m.f.removed[m.trackOf(body)]:
		m.blank(c)
		return m.dropRun(body)
	case c.kind == "mvhd", c.kind == "tkhd", c.kind == "mdhd":
		m.cleanTimes(body)
	case c.kind == "hdlr":
		const name = 24 // its offset: after the version, the two kinds and the reserved fields
		m.zero(min(body.from+name, body.to), body.to)
	case c.kind == "stsd":
		return m.cleanFormats(body)
	case movieBoxes[c.kind] != nil:
		return m.clean(c.kind, body)
	}
	return nil
}

// cleanTimes removes the times of creation and modification.
func (m movie) cleanTimes(body span) {
	size := int64(2 * 4)
	if body.to > body.from && m.data[body.from] == 1 {
		size = 2 * 8
	}
	m.zero(min(body.from+4, body.to), min(body.from+4+size, body.to))
}

const (
	formatVendor     = boxHead + 8 + 4 // in both kinds of formats
	formatCompressor = boxHead + 8 + 16 + 18
	compressorSize   = 32
	videoFormat      = formatCompressor + compressorSize + 4
)

// cleanFormats removes the names of encoders and their makers from the formats of a track, and
// boxes that contain no format.
func (m movie) cleanFormats(body span) error {
	const list = 8 // where it begins
	if body.to-body.from < list {
		return nil
	}
	for c := range m.boxes(span{from: body.from + list, to: body.to}) {
		if c.kind == "" {
			return errBoxes
		}
		if c.to-c.from >= formatVendor+4 {
			m.zero(c.from+formatVendor, c.from+formatVendor+4)
		}
		if c.to-c.from < videoFormat || m.track == "soun" || m.track == "clcp" {
			continue
		}
		m.zero(c.from+formatCompressor, c.from+formatCompressor+compressorSize)
		for b := range m.boxes(span{from: c.from + videoFormat, to: c.to}) {
			switch b.kind {
			case "uuid", "udta", "meta", "free", "skip":
				m.blank(b)
			}
		}
	}
	return nil
}

// handler returns the kind of a track, or "".
func (m movie) handler(trak span) string {
	const kind = 8
	body, ok := m.find(trak, "mdia", "hdlr")
	if !ok || body.to-body.from < kind+4 {
		return ""
	}
	return string(m.data[body.from+kind : body.from+kind+4])
}

// trackOf returns the id of the track that a fragment belongs to, or 0.
func (m movie) trackOf(traf span) uint32 {
	body, ok := m.find(traf, "tfhd")
	if !ok || body.to-body.from < 8 {
		return 0
	}
	return binary.BigEndian.Uint32(m.data[body.from+4:])
}

func decode[T mp4.IBox](m movie, body span, to T) (T, error) {
	_, err := mp4.Unmarshal(bytes.NewReader(m.bytes(body)), uint64(body.to-body.from), to, mp4.Context{})
	return to, err
}

// defaults reads the default sample sizes of fragments.
func (m movie) defaults(moov span) error {
	extends, ok := m.find(moov, "mvex")
	if !ok {
		return nil
	}
	for c := range m.boxes(extends) {
		if c.kind != "trex" {
			continue
		}
		trex, err := decode(m, c.body(), &mp4.Trex{})
		if err != nil {
			return err
		}
		m.f.sizes[trex.TrackID] = trex.DefaultSampleSize
	}
	return nil
}

// drop records bytes of the file as samples of a removed track. finish limits them to the file.
func (f *movieFormat) drop(from, size int64) {
	if size <= 0 || from < 0 || len(f.samples) > maxPieces {
		return
	}
	to := from + min(size, math.MaxInt64/2)
	if last := len(f.samples) - 1; last >= 0 && f.samples[last].to == from {
		f.samples[last].to = to
		return
	}
	f.samples = append(f.samples, span{from: from, to: to})
}

// dropTrack records where the samples of a removed track are.
func (m movie) dropTrack(trak span) error {
	if header, ok := m.find(trak, "tkhd"); ok && header.to-header.from >= 24 {
		id := int64(12)
		if m.data[header.from] == 1 {
			id = 20
		}
		m.f.removed[binary.BigEndian.Uint32(m.data[header.from+id:])] = true
	}
	table, ok := m.find(trak, "mdia", "minf", "stbl")
	if !ok {
		return nil
	}
	offsets, err := m.chunks(table)
	if err != nil || len(offsets) == 0 {
		return err
	}
	place, ok := m.find(table, "stsz")
	if !ok {
		return errors.New("the sizes of the samples of a track are missing")
	}
	sizes, err := decode(m, place, &mp4.Stsz{})
	if err != nil {
		return err
	}
	place, ok = m.find(table, "stsc")
	if !ok {
		return errors.New("the chunks of a track have no samples")
	}
	runs, err := decode(m, place, &mp4.Stsc{})
	if err != nil {
		return err
	}
	m.f.dropChunks(offsets, runs.Entries, sizes)
	return nil
}

// chunks returns where the chunks of a track begin.
func (m movie) chunks(table span) ([]int64, error) {
	var out []int64
	if place, ok := m.find(table, "stco"); ok {
		short, err := decode(m, place, &mp4.Stco{})
		for _, at := range short.ChunkOffset {
			out = append(out, int64(at))
		}
		return out, err
	}
	place, ok := m.find(table, "co64")
	if !ok {
		return nil, nil
	}
	long, err := decode(m, place, &mp4.Co64{})
	for _, at := range long.ChunkOffset {
		out = append(out, int64(min(at, math.MaxInt64/2)))
	}
	return out, err
}

// dropChunks records the chunks of a removed track. Each entry of runs gives the number of samples
// per chunk, up to the first chunk of the next entry.
func (f *movieFormat) dropChunks(offsets []int64, runs []mp4.StscEntry, sizes *mp4.Stsz) {
	next, run := 0, 0
	for i, at := range offsets {
		for run+1 < len(runs) && int64(runs[run+1].FirstChunk) <= int64(i)+1 {
			run++
		}
		if run >= len(runs) {
			return
		}
		samples := int64(runs[run].SamplesPerChunk)
		if sizes.SampleSize > 0 {
			f.drop(at, samples*int64(sizes.SampleSize))
			continue
		}
		var size int64
		for ; samples > 0 && next < len(sizes.EntrySize); samples-- {
			size += int64(sizes.EntrySize[next])
			next++
		}
		f.drop(at, size)
	}
}

// dropRun records where a fragment has the samples of a removed track.
func (m movie) dropRun(traf span) error {
	place, _ := m.find(traf, "tfhd") // trackOf has already found it
	header, err := decode(m, place, &mp4.Tfhd{})
	if err != nil {
		return err
	}
	at, usual := m.from, m.f.sizes[header.TrackID]
	if header.CheckFlag(mp4.TfhdBaseDataOffsetPresent) {
		at = int64(min(header.BaseDataOffset, math.MaxInt64/2))
	}
	if header.CheckFlag(mp4.TfhdDefaultSampleSizePresent) {
		usual = header.DefaultSampleSize
	}
	base := at
	for c := range m.boxes(traf) {
		if c.kind != "trun" {
			continue
		}
		run, err := decode(m, c.body(), &mp4.Trun{})
		if err != nil {
			return err
		}
		const hasOffset, hasSizes = 0x1, 0x200
		if run.CheckFlag(hasOffset) {
			at = base + int64(run.DataOffset)
		}
		size := int64(run.SampleCount) * int64(usual)
		if run.CheckFlag(hasSizes) {
			size = 0
			for _, e := range run.Entries {
				size += int64(e.SampleSize)
			}
		}
		m.f.drop(at, size)
		at += size
	}
	return nil
}
