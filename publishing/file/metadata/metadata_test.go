package metadata_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"crier/publishing/file/metadata"
	"crier/publishing/file/picture"
)

// gradient returns a picture whose corners all differ.
func gradient() image.Image {
	img := image.NewRGBA(image.Rect(0, 0, 24, 16))
	for y := range 16 {
		for x := range 24 {
			img.Set(x, y, color.RGBA{R: byte(x * 10), G: byte(y * 15), B: 90, A: 255})
		}
	}
	return img
}

func encoded(t testing.TB, encode func(w io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// exif returns EXIF data with an orientation and a camera name.
func exif(orientation int) []byte {
	out := []byte{'I', 'I', 42, 0, 8, 0, 0, 0, 2, 0}
	out = append(out, 0x0F, 0x01, 2, 0, byte(len(secret)+1), 0, 0, 0, 38, 0, 0, 0)
	out = append(out, 0x12, 0x01, 3, 0, 1, 0, 0, 0, byte(orientation), 0, 0, 0)
	out = append(out, 0, 0, 0, 0)
	return append(append(out, secret...), 0)
}

func segment(code byte, body string) []byte {
	out := binary.BigEndian.AppendUint16([]byte{0xFF, code}, uint16(len(body)+2))
	return append(out, body...)
}

// jpegWith returns a JPEG with an orientation and with metadata in every possible place.
func jpegWith(t testing.TB, orientation int) []byte {
	t.Helper()
	raw := encoded(t, func(w io.Writer) error { return jpeg.Encode(w, gradient(), nil) })
	thumb := "JFIF\x00\x01\x02\x00\x00\x01\x00\x01\x01\x01" + "abc"
	var head []byte
	for _, s := range [][]byte{
		raw[:2], segment(0xE0, thumb), segment(0xE0, "JFXX\x00\x10"+secret), segment(0xE1, "Exif\x00\x00"+string(exif(orientation))),
		segment(0xE1, "http://ns.adobe.com/xap/1.0/\x00"+secret), segment(0xE2, "MPF\x00"+secret), segment(0xED, "Photoshop 3.0\x00"+secret),
		segment(0xE2, "ICC_PROFILE\x00\x01\x01"+strings.Repeat("p", 200)), segment(0xFE, secret), segment(0xE5, secret),
		[]byte(secret), {0xFF, 0xFF, 0xFF},
	} {
		head = append(head, s...)
	}
	out := append(head, raw[2:]...)
	return append(append(out, raw...), secret...) // a second picture, as cameras append, and more
}

func chunk(kind, body string) []byte {
	out := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), kind+body...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:]))
}

// pngWith returns a PNG with an orientation and with metadata in every possible place.
func pngWith(t testing.TB, orientation int) []byte {
	t.Helper()
	raw := encoded(t, func(w io.Writer) error { return png.Encode(w, gradient()) })
	const header = 8 + 8 + 13 + 4
	out := slices.Clone(raw[:header])
	for _, c := range [][]byte{
		chunk("gAMA", "\x00\x00\xb1\x8f"), chunk("eXIf", string(exif(orientation))), chunk("tEXt", "Author\x00"+secret),
		chunk("iTXt", "XML:com.adobe.xmp\x00\x00\x00\x00\x00"+secret), chunk("zTXt", "a\x00"+secret), chunk("tIME", "\x07\xe8\x05\x06\x07\x08\x09"),
		chunk("prVt", secret), chunk("caBX", secret), chunk("eXIf", string(exif(3))),
	} {
		out = append(out, c...)
	}
	out = append(out, raw[header:len(raw)-12]...)
	out = append(append(out, chunk("tEXt", "a\x00"+secret)...), raw[len(raw)-12:]...)
	return append(out, secret...)
}

// gifWith returns an animated GIF with metadata in every possible place.
func gifWith(t testing.TB) []byte {
	t.Helper()
	frame := image.NewPaletted(image.Rect(0, 0, 8, 8), color.Palette{color.Black, color.White})
	raw := encoded(t, func(w io.Writer) error {
		return gif.EncodeAll(w, &gif.GIF{Image: []*image.Paletted{frame, frame}, Delay: []int{10, 20}, LoopCount: 5})
	})
	at := bytes.Index(raw, []byte("\x21\xFF\x0BNETSCAPE2.0"))
	if at < 0 {
		t.Fatal("the GIF is not repeated")
	}
	block := func(head string) string { return head + string(rune(len(secret))) + secret + "\x00" }
	extra := block("\x21\xFE") + block("\x21\xFF\x0BXMP DataXMP") + "\x21\xF9\x04\x00\x00\x00\x00\x00" +
		block("\x21\x01\x0C"+strings.Repeat("\x00", 12))
	out := append(slices.Clone(raw[:at]), extra...)
	loop := "\x21\xFF\x0BNETSCAPE2.0\x03\x01\x05\x00" + string(rune(len(secret))) + secret + "\x00"
	out = append(append(out, loop...), raw[at+19:]...)
	return append(out, secret...)
}

func box(kind string, parts ...string) string {
	body := strings.Join(parts, "")
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(body)+8))) + kind + body
}

func word(n ...uint32) string {
	var out []byte
	for _, x := range n {
		out = binary.BigEndian.AppendUint32(out, x)
	}
	return string(out)
}

// track returns a track with one chunk of two samples of ten bytes.
func track(id uint32, handler string, at uint32) string {
	format := strings.Repeat("\x00", 6) + "\x00\x01" + word(0) + "Nosy" + strings.Repeat("\x00", 26) + string(rune(len(secret))) + secret +
		strings.Repeat("\x00", 31-len(secret)) + "\x00\x18\xff\xff" + box("avcC", "kept") + box("uuid", secret)
	return box("trak",
		box("tkhd", word(7, 1111, 2222, id), strings.Repeat("\x00", 68)),
		box("tref", box("cdsc", word(1))),
		box("udta", secret), box("meta", secret),
		box("mdia", box("mdhd", word(0, 1111, 2222, 1000, 5000, 0)), box("hdlr", word(0, 0), handler, strings.Repeat("\x00", 12), secret+"\x00"),
			box("minf", box("vmhd", word(1, 0, 0)), box("stbl",
				box("stsd", word(0, 1), box("avc1", format)), box("stts", word(0, 1, 2, 100)),
				box("stsc", word(0, 1, 1, 2, 1)), box("stsz", word(0, 0, 2, 10, 10)), box("stco", word(0, 1, at))))))
}

// movieWith returns a video with metadata in every possible place. Its movie box is last if last is
// true, and comes before the data otherwise.
func movieWith(last bool) []byte {
	start := box("ftyp", "isom", word(0), "isom") + box("uuid", secret) + box("free", secret)
	samples := strings.Repeat("v", 20) + secret + secret
	build := func(at uint32) string {
		return box("moov", box("mvhd", word(0, 1111, 2222, 1000, 5000), strings.Repeat("\x00", 80)),
			track(1, "vide", at), track(2, "meta", at+20), box("udta", box("\xa9xyz", secret)), box("meta", secret), box("gps ", secret))
	}
	data := func() string { return box("mdat", samples) }
	tail := word(3) + secret // not a box
	if last {
		return []byte(start + data() + build(uint32(len(start)+8)) + tail)
	}
	at := uint32(len(start) + len(build(0)) + 8)
	return []byte(start + build(at) + data() + tail)
}

func TestMetadata_IsRemovedEverywhere(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]struct {
		ext string
		raw []byte
		// keeps lists what must stay.
		keeps []string
	}{
		"JPEG":             {ext: "jpg", raw: jpegWith(t, 6), keeps: []string{"ICC_PROFILE", "JFIF\x00\x01\x02\x00\x00\x01\x00\x01\x00\x00"}},
		"PNG":              {ext: "png", raw: pngWith(t, 6), keeps: []string{"gAMA"}},
		"GIF":              {ext: "gif", raw: gifWith(t), keeps: []string{"NETSCAPE2.0\x03\x01\x05\x00\x00"}},
		"video":            {ext: "mp4", raw: movieWith(true), keeps: []string{strings.Repeat("v", 20), "avcCkept"}},
		"video fast start": {ext: "mp4", raw: movieWith(false), keeps: []string{strings.Repeat("v", 20), "avcCkept"}},
	} {
		if !bytes.Contains(f.raw, []byte(secret)) {
			t.Fatalf("%s: the file has nothing that is to go", name)
		}
		got := clean(t, f.ext, f.raw)
		for _, gone := range []string{secret, secret[:6], "Nosy", word(1111), word(2222)} {
			if bytes.Contains(got, []byte(gone)) {
				t.Errorf("%s: the file still has %q", name, gone)
			}
		}
		for _, kept := range f.keeps {
			if !bytes.Contains(got, []byte(kept)) {
				t.Errorf("%s: the file has lost %q", name, kept)
			}
		}
		if again := clean(t, f.ext, got); !bytes.Equal(again, got) && f.ext != "mp4" {
			t.Errorf("%s: cleaning twice gives something else", name)
		}
	}
	if before := movieWith(true); len(clean(t, "mp4", before)) != len(before)-4-len(secret) {
		t.Error("a video moves, so that its tables are wrong")
	}
}

func TestMetadata_PixelsAndOrientationStay(t *testing.T) {
	t.Parallel()
	for o := 1; o <= 8; o++ {
		for ext, raw := range map[string][]byte{"jpg": jpegWith(t, o), "png": pngWith(t, o)} {
			got := clean(t, ext, raw)
			before, err := picture.Inspect(bytes.NewReader(raw))
			if err != nil {
				t.Fatal(err)
			}
			after, err := picture.Inspect(bytes.NewReader(got))
			if err != nil || after != before {
				t.Errorf("%s, orientation %d: the file is %+v, %v; want %+v", ext, o, after, err, before)
			}
			if after.Orientation != o {
				t.Errorf("%s: the orientation is %d, want %d", ext, after.Orientation, o)
			}
			want, _, err := image.Decode(bytes.NewReader(raw))
			if err != nil {
				t.Fatal(err)
			}
			shown, _, err := image.Decode(bytes.NewReader(got))
			if err != nil {
				t.Fatal(err)
			}
			for y := range 16 {
				for x := range 24 {
					if want.At(x, y) != shown.At(x, y) {
						t.Fatalf("%s, orientation %d: the pixel %d, %d is another one", ext, o, x, y)
					}
				}
			}
		}
	}
}

func TestMetadata_PlainFilesAreUnchanged(t *testing.T) {
	t.Parallel()
	for ext, encode := range map[string]func(w io.Writer) error{
		"jpg": func(w io.Writer) error { return jpeg.Encode(w, gradient(), nil) },
		"png": func(w io.Writer) error { return png.Encode(w, gradient()) },
		"gif": func(w io.Writer) error { return gif.Encode(w, gradient(), nil) },
	} {
		raw := encoded(t, encode)
		if got := clean(t, ext, raw); !bytes.Equal(got, raw) {
			t.Errorf("%s: a file without metadata has changed", ext)
		}
	}
}

// A movie box that is cut off or contradicts its file is an error. Nothing is guessed.
func TestMetadata_BrokenMoviesAreRefused(t *testing.T) {
	t.Parallel()
	whole := movieWith(false)
	at := bytes.Index(whole, []byte("stsz"))
	broken := slices.Clone(whole)
	binary.BigEndian.PutUint32(broken[at-4:], 1<<30)
	for name, raw := range map[string][]byte{"cut off": whole[:200], "a box that is too long": broken} {
		s, err := metadata.NewScanner("mp4")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Write(raw); err != nil {
			t.Fatal(err)
		}
		if edits, err := s.Edits(); err == nil {
			t.Errorf("%s: got %d edits, want an error", name, len(edits))
		}
	}
}

// scan returns the Edits for a file.
func scan(t testing.TB, ext string, raw []byte) (metadata.Edits, error) {
	t.Helper()
	s, err := metadata.NewScanner(ext)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(raw); err != nil {
		t.Fatal(err)
	}
	return s.Edits()
}

// Uploaders decide what a file contains, but must not decide what it costs in memory, in its row
// and in every response.
func TestMetadata_CostsLittle(t *testing.T) {
	t.Parallel()
	head := box("ftyp", "isom", word(0))
	run := box("moof", box("traf", box("tfhd", word(0, 2)), box("trun", word(0, math.MaxUint32))))
	free := strings.Repeat(box("junk", ""), 100_000)
	mixed := strings.Repeat(box("junk", "x")+box("pssh", ""), 20_000)
	for name, f := range map[string]struct {
		ext, raw string
		// most is the maximum number of Edits; 0 means that the file is refused.
		most int
	}{
		"a run of four billion samples":     {ext: "mp4", raw: head + box("moov", track(1, "vide", 0), track(2, "meta", 0)) + run, most: 50},
		"a hundred thousand unknown boxes":  {ext: "mp4", raw: head + free + box("moov", track(1, "vide", 0), free) + free, most: 50},
		"unknown boxes between known ones":  {ext: "mp4", raw: head + box("moov", mixed, track(1, "vide", 0))},
		"a GIF of bytes that are no blocks": {ext: "gif", raw: "GIF89a" + strings.Repeat("\x00", 1<<20) + ";", most: 5},
		"comments between frames": {ext: "gif", raw: "GIF89a\x01\x00\x01\x00\x00\x00\x00" +
			strings.Repeat("\x21\xFE\x01x\x00\x21\xF9\x04\x00\x00\x00\x00\x00", 20_000) + ";"},
	} {
		edits, err := scan(t, f.ext, []byte(f.raw))
		if (f.most == 0) != (err != nil) || len(edits) > f.most {
			t.Errorf("%s: got %d edits, %v; want at most %d", name, len(edits), err, f.most)
		}
	}
}

// Cameras write data between the frames that belongs to no track. A track may also store its sample
// sizes in half bytes.
func TestMetadata_IsRemovedBetweenFrames(t *testing.T) {
	t.Parallel()
	compact := strings.Replace(track(2, "meta", 0), box("stsz", word(0, 0, 2, 10, 10)), box("stz2", word(0, 4, 2), "\xAA"), 1)
	kept := strings.Replace(track(1, "vide", 0), box("stsz", word(0, 0, 2, 10, 10)), box("stz2", word(0, 8, 2), "\x0A\x0A"), 1)
	// fix corrects the sizes of the boxes around a box that became shorter.
	fix := func(trak string) string {
		for _, kind := range []string{"stbl", "minf", "mdia"} {
			at := strings.LastIndex(trak, kind) - 4
			trak = trak[:at] + word(uint32(len(trak)-at)) + trak[at+4:]
		}
		return word(uint32(len(trak))) + trak[4:]
	}
	for name, tracks := range map[string]string{
		"alone": track(1, "vide", 0), "beside a track of data": track(1, "vide", 0) + track(2, "meta", 0),
		"beside compact sizes": track(1, "vide", 0) + fix(compact), "with compact sizes": fix(kept),
	} {
		start := box("ftyp", "isom", word(0))
		frames := strings.Repeat("v", 20)
		moov := box("moov", box("mvhd", word(0, 1, 2)), tracks, word(0, 0), "\xa9xyz"+secret)
		at := uint32(len(start) + len(moov) + 8 + len(secret)*2)
		moov = strings.ReplaceAll(moov, box("stco", word(0, 1, 0)), box("stco", word(0, 1, at)))
		raw := start + moov + box("mdat", secret+secret+frames+"freeGPS "+secret)
		got := clean(t, "mp4", []byte(raw))
		if !bytes.Contains(got, []byte(frames)) || bytes.Contains(got, []byte(secret)) || bytes.Contains(got, []byte("freeGPS")) || len(got) != len(raw) {
			t.Errorf("%s: got %q, want the frames alone", name, got)
		}
	}
}

// If a part of a fragment does not say where its samples begin, they follow those of the previous
// part.
func TestMetadata_PartsOfFragmentsFollowEachOther(t *testing.T) {
	t.Parallel()
	head := box("ftyp", "isom", word(0)) + box("moov", strings.ReplaceAll(track(1, "vide", 0)+track(2, "meta", 0), "stco", "xxxx"),
		box("mvex", box("trex", word(0, 1, 1, 0, 10, 0)), box("trex", word(0, 2, 1, 0, 20, 0))))
	moof := func(offset uint32) string {
		return box("moof", box("traf", box("tfhd", word(0, 1)), box("trun", word(1, 2, offset))), box("traf", box("tfhd", word(0, 2)), box("trun", word(1, 1, 0))),
			box("traf", box("tfhd", word(0, 1)), box("trun", word(0x200, 1, 5))))
	}
	frames := strings.Repeat("v", 20)
	raw := head + moof(uint32(len(moof(0))+8)) + box("mdat", frames, secret, secret, "wwwww", "GPS 48.8584 2.2945")
	got := clean(t, "mp4", []byte(raw))
	want := frames + strings.Repeat("\x00", 20) + "wwwww" + strings.Repeat("\x00", 18)
	if !strings.HasSuffix(string(got), want) {
		t.Errorf("got %q, want it to end with %q", got[len(got)-63:], want)
	}
}

func TestWithout_ReadsFromAnywhere(t *testing.T) {
	t.Parallel()
	raw := jpegWith(t, 6)
	want := clean(t, "jpg", raw)
	s, err := metadata.NewScanner("jpg")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(raw); err != nil {
		t.Fatal(err)
	}
	edits, err := s.Edits()
	if err != nil {
		t.Fatal(err)
	}
	f := metadata.Without(memory{bytes.NewReader(raw)}, edits)
	if f.Size() != int64(len(want)) {
		t.Fatalf("the size is %d, want %d", f.Size(), len(want))
	}
	for from := range want {
		if n, err := f.Seek(int64(from-len(want)), io.SeekEnd); err != nil || n != int64(from) {
			t.Fatalf("Seek: %d, %v", n, err)
		}
		got, err := io.ReadAll(io.LimitReader(f, 40))
		if err != nil || !bytes.Equal(got, want[from:min(from+40, len(want))]) {
			t.Fatalf("from %d: got %q, %v", from, got, err)
		}
	}
}

func FuzzMetadata(f *testing.F) {
	for _, raw := range [][]byte{jpegWith(f, 6), pngWith(f, 3), gifWith(f), movieWith(true), movieWith(false)} {
		for _, ext := range []string{"jpg", "png", "gif", "mp4"} {
			f.Add(ext, raw)
		}
	}
	f.Fuzz(func(t *testing.T, ext string, raw []byte) {
		s, err := metadata.NewScanner(ext)
		if err != nil {
			return
		}
		if _, err := s.Write(raw); err != nil {
			t.Fatal(err)
		}
		edits, err := s.Edits()
		if err != nil {
			return
		}
		var at int64
		for _, x := range edits {
			if x.At < at || x.Cut < 0 || x.At+x.Cut > int64(len(raw)) {
				t.Fatalf("an edit at %d of %d bytes, behind %d, in %d", x.At, x.Cut, at, len(raw))
			}
			at = x.At + x.Cut
		}
		stored, err := metadata.Parse(edits.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		out, err := io.ReadAll(metadata.Without(memory{bytes.NewReader(raw)}, stored))
		if err != nil || int64(len(out)) != int64(len(raw))+edits.Grows() {
			t.Fatalf("%d bytes of %d, %v", len(out), len(raw), err)
		}
		if len(out) > len(raw)+64 {
			t.Fatalf("the file grows from %d to %d bytes", len(raw), len(out))
		}
	})
}
