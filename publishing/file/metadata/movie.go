package metadata

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"

	"crier/platform/fault"
)

const (
	boxHead = 8
	// maxMovie is the maximum size of a movie or fragment box in bytes. Even half a day of video
	// needs less.
	maxMovie = 32 << 20
)

// movieBoxes are the boxes that stay, keyed by the type of the enclosing box; "" is the file
// itself. They are the ISO/IEC 14496-12 boxes needed for pictures, sound and closed captions. Every
// other box becomes free space of the same size, so that nothing else moves.
var movieBoxes = map[string]map[string]bool{
	"":     names("ftyp styp sidx ssix mfra pdin moov moof mdat"),
	"moov": names("mvhd trak mvex iods pssh"),
	"trak": names("tkhd mdia edts tapt"),
	"mdia": names("mdhd hdlr minf elng"),
	"minf": names("vmhd smhd nmhd sthd gmhd hdlr dinf stbl"),
	"dinf": names("dref"),
	"stbl": names(
		"stsd stts stss ctts cslg stsc stsz stz2 stco co64 sdtp stsh padb stdp sbgp sgpd subs saiz saio stps",
	),
	"mvex": names("mehd trex leva trep"),
	"moof": names("mfhd traf pssh"),
	"traf": names("tfhd tfdt trun sbgp sgpd subs saiz saio senc"),
}

// trackKinds are the handler types of the tracks that stay. Other tracks hold locations, sensor
// data, titles, or faces that the camera detected. Subtitle tracks do not stay, because cameras
// write locations into them.
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

// movieFormat cleans a video. In a media box, it keeps only the samples of the tracks that stay. It
// replaces all other bytes with zeros, because they are samples of other tracks, or data that a
// camera wrote between the frames.
type movieFormat struct {
	w       *walker
	samples samples
	// free is a range of adjacent boxes that will become free space. It is empty if there are none.
	free span
	// end is where the boxes end, if other bytes follow them; -1 otherwise.
	end int64
	// open cleans a movie box whose size is not given because it extends to the end of the file.
	// unfinished means that only part of a box has arrived.
	open       func([]byte)
	unfinished bool
	err        error
}

func newMovie(w *walker) *movieFormat {
	f := &movieFormat{w: w, end: -1, samples: samples{kept: map[uint32]bool{}, sizes: map[uint32]int64{}}}
	w.expect(boxHead, f.box)
	return f
}

// box parses the header of a top-level box.
func (f *movieFormat) box(head []byte) {
	size, kind := int64(binary.BigEndian.Uint32(head)), string(head[4:])
	switch {
	case size == 1:
		f.w.expect(boxHead, func(more []byte) {
			f.w.expect(boxHead, f.box)
			long := binary.BigEndian.Uint64(more)
			if long < 2*boxHead || long > math.MaxInt64/2 {
				f.stop(f.w.at - 2*boxHead)
				return
			}
			f.body(kind, 2*boxHead, int64(long))
		})
	case size == 0: // it extends to the end of the file
		f.body(kind, boxHead, math.MaxInt64/2)
	case size < boxHead:
		f.stop(f.w.at - boxHead)
	default:
		f.body(kind, boxHead, size)
	}
}

// stop is called where the list of boxes ends. Everything after the list is removed, because
// players ignore it and cameras write logs there.
func (f *movieFormat) stop(at int64) { f.end, f.w.done = at, true }

// body handles a top-level box of the given kind. size is the size of the whole box. head is the
// size of its header.
func (f *movieFormat) body(kind string, head, size int64) {
	from := f.w.at - head
	if !movieBoxes[""][kind] {
		f.blank(span{from: from, to: from + size})
		f.w.skip = size - head
		return
	}
	f.flush()
	switch kind {
	case "moov", "moof":
		f.movie(kind, from, head, size-head)
		return
	case "mdat":
		f.samples.addMedia(span{from: from + head, to: from + size})
	}
	f.w.skip = size - head
}

// movie cleans a movie or fragment box once its body has arrived.
func (f *movieFormat) movie(kind string, from, head, body int64) {
	clean := func(b []byte) {
		f.w.have = nil // it may be large
		f.w.expect(boxHead, f.box)
		f.unfinished, f.open = false, nil
		m := movie{f: f, from: from, at: from + head, data: b}
		if err := m.clean(kind, span{to: int64(len(b))}); err != nil && f.err == nil {
			f.err = fmt.Errorf("%s: %w", kind, err)
		}
		f.flush()
	}
	f.unfinished = true
	if body > math.MaxInt64/4 { // it extends to the end of the file
		f.open, body = clean, maxMovie+1
	}
	if body > maxMovie {
		clean = func([]byte) {
			f.err = fault.New(fault.Invalid, "metadata.Edits", fmt.Sprintf(
				"The video's %s box is larger than %d bytes. Export it in shorter parts.", kind, int64(maxMovie)))
			f.w.done = true
		}
		body = min(body, maxMovie+1)
	}
	f.w.expect(int(body), clean)
}

// blank marks a box for conversion to free space. Adjacent boxes become a single free box.
func (f *movieFormat) blank(box span) {
	if f.free.to != box.from {
		f.flush()
		f.free.from = box.from
	}
	f.free.to = box.to
}

// flush replaces the boxes marked by blank with a free box.
func (f *movieFormat) flush() {
	size := f.free.to - f.free.from
	if size == 0 {
		return
	}
	head := binary.BigEndian.AppendUint32(nil, uint32(size))
	if size > math.MaxUint32 {
		head = binary.BigEndian.AppendUint32(nil, 1)
	}
	head = append(head, "free"...)
	if size > math.MaxUint32 {
		head = binary.BigEndian.AppendUint64(head, uint64(size))
	}
	f.w.cut(f.free.from, int64(len(head)), head)
	f.w.zero(f.free.from+int64(len(head)), size-int64(len(head)))
	f.free = span{}
}

func (f *movieFormat) finish(size int64) ([]Edit, error) {
	if f.open != nil {
		f.open(f.w.have)
	}
	if f.free.to > size { // it extends to the end of the file
		f.free.to = max(size, f.free.from)
	}
	f.flush()
	if f.unfinished && f.err == nil {
		f.err = io.ErrUnexpectedEOF
	}
	if f.err != nil {
		return nil, f.err
	}
	gaps, err := f.samples.gaps(size)
	if err != nil {
		return nil, err
	}
	return append(f.w.tail(f.end, size), gaps...), nil
}

// movie is the body of a box, held in memory. Positions are relative to the start of data.
type movie struct {
	f *movieFormat
	// from is where the box begins in the file. at is where data begins in the file.
	from, at int64
	data     []byte
	// track is the handler type of the track that is being cleaned.
	track string
}

var errBoxes = errors.New("a box extends past the box that contains it")

// child is a box inside another box. If kind is "", child holds the bytes that follow the last box
// of a list. If kind is "" and the span is empty, a box extends past the end of the list.
type child struct {
	kind string
	head int64
	span
}

func (c child) body() span { return span{from: c.from + c.head, to: c.to} }

// boxes returns the boxes in a part of the data, followed by any bytes after the last box. Such
// bytes are either too few for a header, or begin with the zeros that end a QuickTime list.
func (m movie) boxes(in span) iter.Seq[child] {
	return func(yield func(child) bool) {
		at := in.from
		for in.to-at >= boxHead {
			size, head := int64(binary.BigEndian.Uint32(m.data[at:])), int64(boxHead)
			switch {
			case size == 0 && binary.BigEndian.Uint32(m.data[at+4:]) == 0:
				yield(child{span: span{from: at, to: in.to}})
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
		if at < in.to {
			yield(child{span: span{from: at, to: in.to}})
		}
	}
}

// find returns the body of the first box at a path, or false if there is none.
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

// zero replaces bytes of the data with zeros. Bytes after in.to stay unchanged.
func (m movie) zero(in span, from, size int64) {
	m.f.w.zero(m.at+from, min(size, in.to-from))
}

// clean cleans the boxes inside parent, which must be a key of movieBoxes.
func (m movie) clean(parent string, in span) error {
	if err := m.readSamples(parent, in); err != nil {
		return err
	}
	for c := range m.boxes(in) {
		switch {
		case c.kind == "" && c.to == 0:
			return errBoxes
		case c.kind == "":
			m.f.flush()
			m.zero(in, c.from, c.to-c.from)
		case !movieBoxes[parent][c.kind], c.kind == "trak" && !trackKinds[m.handler(c.body())],
			c.kind == "traf" && !m.f.samples.kept[m.trackOf(c.body())]:
			m.f.blank(span{from: m.at + c.from, to: m.at + c.to})
		default:
			m.f.flush()
			if err := m.cleanChild(c); err != nil {
				return fmt.Errorf("%s: %w", c.kind, err)
			}
		}
	}
	m.f.flush()
	return nil
}

func (m movie) cleanChild(c child) error {
	body := c.body()
	switch c.kind {
	case "trak":
		m.track = m.handler(body)
	case "mvhd", "tkhd", "mdhd":
		m.cleanTimes(body)
	case "hdlr":
		const maker = 12 // after the version and the two kinds; the name follows
		m.zero(body, body.from+maker, body.to-body.from)
	case "stsd":
		return m.cleanFormats(body)
	case "dref":
		return m.cleanPlaces(body)
	}
	if movieBoxes[c.kind] != nil {
		return m.clean(c.kind, body)
	}
	return nil
}

// cleanTimes removes creation and modification times.
func (m movie) cleanTimes(body span) {
	size := int64(2 * 4)
	if body.to > body.from && m.data[body.from] == 1 {
		size = 2 * 8
	}
	m.zero(body, body.from+4, size)
}

// listHead is the size in bytes of the version, the flags and the entry count. These precede a list
// of boxes.
const listHead = 8

const (
	formatVendor     = boxHead + 8 + 4 // for pictures and sound
	formatCompressor = boxHead + 8 + 16 + 18
	compressorSize   = 32
	videoFormat      = formatCompressor + compressorSize + 4
)

// cleanFormats removes encoder and vendor names from a track's formats. It also removes the boxes
// that do not describe a format.
func (m movie) cleanFormats(body span) error {
	for c := range m.boxes(span{from: body.from + listHead, to: body.to}) {
		if c.kind == "" && c.to == 0 {
			return errBoxes
		}
		if c.kind == "" || m.track == "clcp" {
			continue
		}
		m.zero(c.span, c.from+formatVendor, 4)
		if m.track == "soun" {
			continue
		}
		m.zero(c.span, c.from+formatCompressor, compressorSize)
		for b := range m.boxes(span{from: c.from + videoFormat, to: c.to}) {
			switch b.kind {
			case "uuid", "udta", "meta", "free", "skip":
				m.f.blank(span{from: m.at + b.from, to: m.at + b.to})
			}
		}
		m.f.flush()
	}
	return nil
}

// cleanPlaces removes file and folder names from data references that point to this file.
func (m movie) cleanPlaces(body span) error {
	for c := range m.boxes(span{from: body.from + listHead, to: body.to}) {
		const flags, inThisFile = boxHead + 3, 1
		if c.kind == "" && c.to == 0 {
			return errBoxes
		}
		if c.kind != "" && c.to-c.from > flags && m.data[c.from+flags]&inThisFile != 0 {
			m.zero(c.span, c.from+flags+1, c.to-c.from)
		}
	}
	return nil
}

// handler returns the handler type of a track, or "" if the track has none.
func (m movie) handler(trak span) string {
	const kind = 8
	body, ok := m.find(trak, "mdia", "hdlr")
	if !ok || body.to-body.from < kind+4 {
		return ""
	}
	return string(m.data[body.from+kind : body.from+kind+4])
}

// trackOf returns the ID of the track to which a fragment belongs, or 0 if the fragment does not
// specify a track.
func (m movie) trackOf(traf span) uint32 {
	body, ok := m.find(traf, "tfhd")
	if !ok || body.to-body.from < 8 {
		return 0
	}
	return binary.BigEndian.Uint32(m.data[body.from+4:])
}
