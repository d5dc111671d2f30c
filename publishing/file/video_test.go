package file

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"crier/platform/fault"
)

func box(kind string, body ...[]byte) []byte {
	all := bytes.Join(body, nil)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(all)+8)), append([]byte(kind), all...)...)
}

func longBox(kind string, body []byte) []byte {
	head := append([]byte{0, 0, 0, 1}, kind...)
	return append(binary.BigEndian.AppendUint64(head, uint64(len(body)+16)), body...)
}

func numbers(n ...uint32) (out []byte) {
	for _, x := range n {
		out = binary.BigEndian.AppendUint32(out, x)
	}
	return out
}

func mvhd(timescale, duration uint32) []byte {
	return box("mvhd", numbers(0, 1, 2, timescale, duration), make([]byte, 80))
}

func mvhd1(timescale uint32, duration uint64) []byte {
	return box("mvhd", numbers(1<<24, 0, 1, 0, 2, timescale), binary.BigEndian.AppendUint64(nil, duration), make([]byte, 80))
}

var upright, turned = numbers(1<<16, 0, 0, 0, 1<<16, 0, 0, 0, 1<<30), numbers(0, 1<<16, 0, 0xFFFF0000, 0, 0, 0, 0, 1<<30)

func tkhd(matrix []byte, width, height uint32) []byte {
	return box("tkhd", numbers(7, 1, 2, 1, 0, 100, 0, 0, 0, 0), matrix, numbers(width<<16, height<<16))
}

func tkhd1(width, height uint32) []byte {
	return box("tkhd", numbers(1<<24|7, 0, 1, 0, 2, 1, 0, 0, 100, 0, 0, 0, 0), upright, numbers(width<<16, height<<16))
}

func TestVideoProbe_FindsSizeAndLength(t *testing.T) {
	t.Parallel()
	ftyp := box("ftyp", []byte("isom\x00\x00\x02\x00isommp41"))
	data := box("mdat", make([]byte, 5000))
	trak := func(head []byte) []byte { return box("trak", head, box("mdia", box("minf", make([]byte, 300)))) }
	sound := trak(tkhd(upright, 0, 0))
	for name, v := range map[string]struct {
		file          []byte
		width, height int
		length        time.Duration
	}{
		"at the beginning":     {file: bytes.Join([][]byte{ftyp, box("moov", mvhd(600, 1505), trak(tkhd(upright, 640, 360)), sound), data}, nil), width: 640, height: 360, length: 2508 * time.Millisecond},
		"at the end":           {file: bytes.Join([][]byte{ftyp, data, box("moov", mvhd(1000, 61_000), sound, trak(tkhd(upright, 1920, 1080)))}, nil), width: 1920, height: 1080, length: 61 * time.Second},
		"turned by a quarter":  {file: bytes.Join([][]byte{ftyp, box("moov", mvhd(1, 3), trak(tkhd(turned, 1920, 1080)))}, nil), width: 1080, height: 1920, length: 3 * time.Second},
		"of version 1":         {file: bytes.Join([][]byte{ftyp, box("moov", mvhd1(90_000, 90_000*7200), trak(tkhd1(3840, 2160)))}, nil), width: 3840, height: 2160, length: 2 * time.Hour},
		"behind a long box":    {file: bytes.Join([][]byte{ftyp, longBox("mdat", make([]byte, 70_000)), box("moov", mvhd(10, 25), trak(tkhd(upright, 2, 4)))}, nil), width: 2, height: 4, length: 2500 * time.Millisecond},
		"in fragments":         {file: bytes.Join([][]byte{ftyp, box("moov", mvhd(1000, 0), box("mvex", box("mehd", numbers(0, 4000)), box("trex", make([]byte, 24))), trak(tkhd(upright, 8, 8)))}, nil), width: 8, height: 8, length: 4 * time.Second},
		"of unknown length":    {file: box("moov", mvhd(1000, 0xFFFFFFFF), trak(tkhd(upright, 8, 8))), width: 8, height: 8},
		"without a time scale": {file: box("moov", mvhd(0, 5), trak(tkhd(upright, 8, 8))), width: 8, height: 8},
		"of absurd length":     {file: box("moov", mvhd1(1, 1<<60), trak(tkhd(upright, 8, 8))), width: 8, height: 8},
		"without a track":      {file: bytes.Join([][]byte{ftyp, box("moov", mvhd(1, 1))}, nil), length: time.Second},
		"cut in its header":    {file: box("moov", mvhd(1, 1))[:30]},
		"with a broken box":    {file: append(numbers(3), box("moov", mvhd(1, 1))...)},
		"with a short header":  {file: box("moov", box("mvhd", numbers(0, 1)), box("tkhd", numbers(0)), box("mvhd"))},
		"with data to the end": {file: append(numbers(0), "mdatmoov"...)},
	} {
		for _, step := range []int{len(v.file), 1, 7} {
			p := &VideoProbe{}
			for rest := v.file; len(rest) > 0; rest = rest[min(step, len(rest)):] {
				_, _ = p.Write(rest[:min(step, len(rest))])
			}
			width, height := p.Size()
			if width != v.width || height != v.height || p.Length() != v.length {
				t.Errorf("%s, in steps of %d: %d x %d and %v, want %d x %d and %v", name, step, width, height, p.Length(), v.width, v.height, v.length)
			}
		}
	}
}

func TestVideoProbe_AcceptsAnyBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		pieces := rapid.SliceOf(rapid.OneOf(
			rapid.SampledFrom([]string{"moov", "mvhd", "tkhd", "mehd", "trak", "mvex", "\x00\x00\x00\x20", "\x00\x00\x00\x01", "\x00\x00\x00\x08"}),
			rapid.StringN(0, 12, -1),
		)).Draw(rt, "pieces")
		p := &VideoProbe{}
		for _, piece := range pieces {
			if n, err := p.Write([]byte(piece)); n != len(piece) || err != nil {
				rt.Fatalf("Write returns %d and %v, want %d", n, err, len(piece))
			}
			if cap(p.have) > 2*headLimit {
				rt.Fatalf("%d bytes are kept", cap(p.have))
			}
		}
	})
}

// TestVideoProbe_Incomplete checks that a video needs a movie box, a picture track with frames, and
// all of its data.
func TestVideoProbe_Incomplete(t *testing.T) {
	t.Parallel()
	const ofSound, ofPicture = "mp4a", "avc1"
	ftyp, data := box("ftyp", []byte("isom\x00\x00\x02\x00isommp41")), box("mdat", make([]byte, 500))
	quickTime := box("ftyp", []byte("qt  \x00\x00\x02\x00qt  "))
	// frames returns the tables of a track with n samples, where the last sample begins at the
	// offset last.
	frames := func(n, last uint32) []byte {
		return slices.Concat(box("stsz", numbers(0, 0, n), make([]byte, 4*n)), box("stco", numbers(0, 2, 40, last)))
	}
	track := func(kind, codec string, tables []byte) []byte {
		handler := box("hdlr", numbers(0, 0), []byte(kind), make([]byte, 13))
		// QuickTime's data handler.
		other := box("hdlr", numbers(0), []byte("dhlralis"), make([]byte, 13))
		sample := box("stsd", numbers(0, 1), box(codec, make([]byte, 40)))
		return box("trak", tkhd(upright, 8, 8), box("mdia", handler, box("minf", other, box("stbl", sample, tables))))
	}
	movie := func(tracks ...[]byte) []byte { return box("moov", append([][]byte{mvhd(1, 1)}, tracks...)...) }
	video, sound := track("vide", ofPicture, frames(3, 800)), track("soun", ofSound, frames(9, 90))
	whole := slices.Concat(ftyp, movie(sound, video), data)
	size := uint32(len(whole))
	late := slices.Concat(ftyp, movie(track("vide", ofPicture, box("co64", numbers(0, 1, 0, size)))), data)
	empty := track("vide", ofPicture, box("stsz", numbers(0, 0, 0)))
	mvex := box("mvex", box("trex", make([]byte, 24)))
	fragment := slices.Concat(box("moof", box("mfhd", numbers(0, 1))), data)
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"a video":                               {file: whole},
		"its movie at its end":                  {file: slices.Concat(ftyp, data, movie(video))},
		"a renderer was not done":               {file: slices.Concat(ftyp, data), want: "clip.mp4 has no movie box"},
		"a type alone":                          {file: ftyp, want: "has no movie box"},
		"nothing":                               {want: "has no movie box"},
		"sound alone":                           {file: slices.Concat(ftyp, movie(sound), data), want: "sound but no picture"},
		"no track":                              {file: slices.Concat(ftyp, movie()), want: "no track with a picture"},
		"a text track":                          {file: slices.Concat(ftyp, movie(track("text", "tx3g", nil)), data), want: "no track with a picture"},
		"no frames":                             {file: slices.Concat(ftyp, movie(empty), data), want: "no frames"},
		"cut in its data":                       {file: whole[:size-100], want: "breaks off"},
		"cut before its data":                   {file: whole[:size-508], want: "breaks off"},
		"cut in the header of its data":         {file: whole[:size-505], want: "breaks off"},
		"cut in its movie":                      {file: whole[:size-560], want: "breaks off"},
		"cut between two tracks":                {file: slices.Concat(ftyp, movie(video, sound)[:8+len(mvhd(1, 1))+len(video)]), want: "breaks off"},
		"a sample behind its end":               {file: late, want: "breaks off"},
		"data to its end":                       {file: slices.Concat(ftyp, movie(video), []byte("\x00\x00\x00\x00mdat"), make([]byte, 500))},
		"a movie to its end":                    {file: slices.Concat(ftyp, data, append(numbers(0), movie(video)[4:]...))},
		"bytes behind its end":                  {file: append(slices.Clone(whole), "a trailer of a phone"...)},
		"zeros behind its end":                  {file: append(slices.Clone(whole), make([]byte, 100)...)},
		"a movie with four bytes more":          {file: slices.Concat(ftyp, box("moov", mvhd(1, 1), video, numbers(0)), data)},
		"fragments":                             {file: slices.Concat(ftyp, movie(empty, mvex), fragment, fragment)},
		"no fragment":                           {file: slices.Concat(ftyp, movie(empty, mvex)), want: "no frames"},
		"a fragment without its data":           {file: slices.Concat(ftyp, movie(empty, mvex), fragment[:16+len(box("mfhd", numbers(0, 1)))-8]), want: "breaks off"},
		"a fragment that is cut":                {file: slices.Concat(ftyp, movie(empty, mvex), fragment, fragment[:100]), want: "breaks off"},
		"a QuickTime movie":                     {file: slices.Concat(quickTime, movie(video, sound), data)},
		"a QuickTime movie of old":              {file: slices.Concat(box("wide"), data, movie(video))},
		"a QuickTime movie with ProRes":         {file: slices.Concat(quickTime, movie(track("vide", "apcn", frames(1, 60))), data), want: `clip.mp4 is a QuickTime movie with the codec "apcn"`},
		"a QuickTime movie with PCM":            {file: slices.Concat(quickTime, movie(video, track("soun", "sowt", frames(1, 60))), data), want: `the codec "sowt"`},
		"a QuickTime movie with a second sound": {file: slices.Concat(quickTime, movie(video, track("soun", "apac", frames(1, 60)), sound), data)},
		"an MP4 video with another codec":       {file: slices.Concat(ftyp, movie(track("vide", "mp2v", frames(1, 60))), data)},
	} {
		for _, step := range []int{max(1, len(c.file)), 1, 7} {
			p := &VideoProbe{}
			for part := range slices.Chunk(c.file, step) {
				_, _ = p.Write(part)
			}
			err := p.Incomplete(`C:\clip.mp4`)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s, in steps of %d: got %v, want %q", name, step, err, c.want)
			}
		}
	}
	if err := (&VideoProbe{}).Incomplete(""); err == nil || !strings.Contains(err.Error(), "The video has no movie box") {
		t.Errorf("without a name: got %v, want The video", err)
	}
}

// TestVideoProbe_LimitsNesting checks that endlessly nested boxes take no memory.
func TestVideoProbe_LimitsNesting(t *testing.T) {
	t.Parallel()
	p := &VideoProbe{}
	_, _ = p.Write(bytes.Repeat([]byte("\x7f\xff\xff\xfftrak"), 100_000))
	_, _ = p.Write(bytes.Repeat([]byte("\x00\x00\x00\x08trak"), 100_000))
	if len(p.open) > len(containers) || len(p.tracks) > maxTracks {
		t.Errorf("%d boxes are open and %d tracks are kept", len(p.open), len(p.tracks))
	}
}

// TestSniff_SaysWhatTheFileIs uses files that no platform accepts.
func TestSniff_SaysWhatTheFileIs(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct{ name, data string }{
		"photo.png is a WebP picture; send it as png, jpg or gif.":                                                                {"photo.png", "RIFF\x24\x00\x00\x00WEBPVP8 \x18\x00\x00\x00"},
		"a.jpg is an HTML page, not a picture or video; the address may need a sign-in, or belong to a page that shows the file.": {`C:\Users\a.jpg`, "<!DOCTYPE html><html><body>Sign in</body></html>"},
		"The file is compressed (gzip); send the file itself, without compression.":                                               {"", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"},
		"a.png is a PDF document; send its pages as png, jpg or gif.":                                                             {"a.png", "%PDF-1.7\n"},
		"a.png is an AVIF picture; send it as png, jpg or gif.":                                                                   {"a.png", "\x00\x00\x00\x1cftypavif\x00\x00\x00\x00avifmif1miaf"},
		"a.png is an HEIC picture; send it as png, jpg or gif.":                                                                   {"a.png", "\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic"},
		"a.png is JSON text, not a picture or video; it may be an error message.":                                                 {"a.png", `{"error":"not found"}`},
		"clip.mov is a QuickTime movie; send it as mp4.":                                                                          {"clip.mov", "\x00\x00\x00\x14ftypqt  \x00\x00\x02\x00qt  "},
		"a.svg is an SVG drawing; send it as png, jpg or gif.":                                                                    {"a.svg", `<svg xmlns="http://www.w3.org/2000/svg"></svg>`},
	} {
		_, _, err := Sniff(c.name, strings.NewReader(c.data), Limits{Image: 1 << 20, Video: 1 << 20})
		var f *fault.Error
		if !errors.As(err, &f) || f.Message != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
