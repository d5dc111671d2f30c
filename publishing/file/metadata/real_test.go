package metadata_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"crier/publishing/file/metadata"
)

// secret is part of every text that these tests write into files. A file that contains it reveals
// something private about its maker.
const secret = "Nosy Mk II"

// tool runs a program of the system and returns its output.
func tool(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	var errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, errs.String())
	}
	return out
}

// magick returns the name of ImageMagick's program, which differs between its versions.
func magick() string {
	if _, err := exec.LookPath("magick"); err == nil {
		return "magick"
	}
	return "convert-im6.q16"
}

// everything returns the arguments that make exiftool write into every group that it can write, in
// every place that the format has.
func everything(orientation int) []string {
	args := []string{"-q", "-q", "-m", "-overwrite_original", "-n", fmt.Sprintf("-IFD0:Orientation=%d", orientation),
		"-GPSLatitude=48.8584", "-GPSLatitudeRef=N", "-GPSLongitude=2.2945", "-GPSLongitudeRef=E", "-GPSAltitude=35",
		"-XMP:GPSLatitude=48.8584", "-XMP:GPSLongitude=2.2945", "-DateTimeOriginal=2024:05:06 07:08:09"}
	for _, tag := range []string{
		"EXIF:Make", "EXIF:Model", "EXIF:Artist", "EXIF:Copyright", "EXIF:ImageDescription", "EXIF:UserComment",
		"EXIF:Software", "EXIF:SerialNumber", "EXIF:LensModel", "EXIF:OwnerName", "EXIF:XPAuthor", "XMP:Creator",
		"XMP:Make", "XMP:Model", "XMP:City", "XMP:Title", "XMP:HistoryAction", "IPTC:City", "IPTC:By-line",
		"IPTC:Caption-Abstract", "PhotoshopURL", "Comment", "PNG:Author", "PNG:Description", "PNG:Software",
		"AFCP:By-line", "JFIF:Comment",
	} {
		args = append(args, "-"+tag+"="+secret)
	}
	return args
}

type realFile struct {
	name, ext string
	make      func(t *testing.T, path string)
}

// described makes a picture with ImageMagick and then writes everything into it.
func described(orientation int, args ...string) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		t.Helper()
		small := filepath.Join(t.TempDir(), "small.jpg")
		tool(t, magick(), "-size", "32x20", "plasma:red-blue", "-comment", secret, small)
		if i := slices.Index(args, "PROFILE"); i >= 0 {
			args = slices.Clone(args)
			args[i] = filepath.Join(t.TempDir(), "profile.icc")
			if err := os.WriteFile(args[i], profile(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		tool(t, magick(), append(append([]string{"-size", "160x100", "gradient:red-blue", "-seed", "7", "-comment", secret},
			args...), path)...)
		tool(t, "exiftool", append(everything(orientation), "-ThumbnailImage<="+small, "-PhotoshopThumbnail<="+small, path)...)
	}
}

// profile returns a color profile with green and blue exchanged, so that a lost profile is noticed.
func profile() []byte {
	xyz := func(x, y, z float64) []byte {
		out := []byte("XYZ \x00\x00\x00\x00")
		for _, v := range []float64{x, y, z} {
			out = binary.BigEndian.AppendUint32(out, uint32(int32(v*65536)))
		}
		return out
	}
	gamma := append([]byte("curv\x00\x00\x00\x00\x00\x00\x00\x01\x02\x33"), 0, 0)
	name := append([]byte("desc\x00\x00\x00\x00\x00\x00\x00\x09exchanged"), make([]byte, 79)...)
	tags := []struct {
		name string
		data []byte
	}{
		{name: "desc", data: name}, {name: "cprt", data: []byte("text\x00\x00\x00\x00free\x00\x00\x00\x00")},
		{name: "wtpt", data: xyz(0.9642, 1, 0.8249)}, {name: "rXYZ", data: xyz(0.4360, 0.2225, 0.0139)},
		{name: "gXYZ", data: xyz(0.1431, 0.0606, 0.7141)}, {name: "bXYZ", data: xyz(0.3851, 0.7169, 0.0971)},
		{name: "rTRC", data: gamma}, {name: "gTRC", data: gamma}, {name: "bTRC", data: gamma},
	}
	head := append([]byte("\x00\x00\x00\x00none\x02\x40\x00\x00mntrRGB XYZ "), make([]byte, 104)...)
	copy(head[36:], "acsp")
	copy(head[68:], xyz(0.9642, 1, 0.8249)[8:])
	head = binary.BigEndian.AppendUint32(head, uint32(len(tags)))
	var body []byte
	for _, tag := range tags {
		for len(body)%4 != 0 {
			body = append(body, 0)
		}
		head = append(head, tag.name...)
		head = binary.BigEndian.AppendUint32(head, uint32(128+4+12*len(tags)+len(body)))
		head = binary.BigEndian.AppendUint32(head, uint32(len(tag.data)))
		body = append(body, tag.data...)
	}
	out := append(head, body...)
	binary.BigEndian.PutUint32(out, uint32(len(out)))
	return out
}

const film = "testsrc2=size=160x120:rate=10:duration=3"

func ffmpeg(args ...string) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		t.Helper()
		in := []string{"-nostdin", "-v", "error", "-f", "lavfi", "-i", film, "-f", "lavfi", "-i", "sine=duration=3"}
		tool(t, "ffmpeg", append(append(in, args...), "-y", path)...)
	}
}

// located are the texts that ffmpeg writes into a film.
var located = []string{"-metadata", "location=+48.8584+002.2945/", "-metadata", "location-eng=+48.8584+002.2945/",
	"-metadata", "title=" + secret, "-metadata", "comment=" + secret, "-metadata", "make=" + secret, "-metadata",
	"model=" + secret, "-metadata", "artist=" + secret, "-metadata:s:v:0", "handler_name=" + secret,
	"-metadata:s:v:0", "vendor_id=Nosy", "-metadata", "creation_time=2024-05-06T07:08:09Z"}

func filmed(args ...string) func(t *testing.T, path string) {
	make := ffmpeg(append(slices.Clone(located), args...)...)
	return func(t *testing.T, path string) {
		t.Helper()
		make(t, path)
		tool(t, "exiftool", "-q", "-q", "-m", "-overwrite_original", "-n", "-Keys:GPSCoordinates=48.8584 2.2945 35",
			"-UserData:GPSCoordinates=48.8584 2.2945 35", "-ItemList:GPSCoordinates=48.8584 2.2945 35", "-Keys:Make="+secret,
			"-Keys:Model="+secret, "-UserData:Model="+secret, "-ItemList:Artist="+secret, "-XMP:Creator="+secret,
			"-XMP:GPSLatitude=48.8584", "-XMP:GPSLongitude=2.2945", path)
	}
}

// subtitled makes a film with a subtitle track that holds positions, as drones record them.
func subtitled(args ...string) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		t.Helper()
		lines := filepath.Join(t.TempDir(), "lines.srt")
		var text strings.Builder
		for i := range 3 {
			fmt.Fprintf(&text, "%d\n00:00:0%d,000 --> 00:00:0%d,900\n%s GPS(48.8584,2.2945,35)\n\n", i+1, i, i, secret)
		}
		if err := os.WriteFile(lines, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		ffmpeg(append([]string{"-i", lines, "-map", "0", "-map", "1", "-map", "2", "-c:s", "mov_text"}, args...)...)(t, path)
	}
}

func realFiles() []realFile {
	h264 := []string{"-c:v", "libx264", "-pix_fmt", "yuv420p", "-c:a", "aac"}
	with := func(more ...string) []string { return append(slices.Clone(h264), more...) }
	files := []realFile{
		{name: "baseline", ext: "jpg", make: described(1)},
		{name: "progressive", ext: "jpg", make: described(6, "-interlace", "JPEG")},
		{name: "gray", ext: "jpg", make: described(3, "-colorspace", "Gray")},
		{name: "cmyk", ext: "jpg", make: described(1, "-colorspace", "CMYK")},
		{name: "restarts", ext: "jpg", make: described(8, "-define", "jpeg:restart-interval=2")},
		{name: "profile", ext: "jpg", make: described(1, "-profile", "PROFILE")},
		{name: "plain", ext: "png", make: described(1)},
		{name: "turned", ext: "png", make: described(6)},
		{name: "interlaced", ext: "png", make: described(8, "-interlace", "PNG")},
		{name: "palette", ext: "png", make: described(3, "-type", "Palette")},
		{name: "sixteen bits", ext: "png", make: described(1, "-depth", "16")},
		{name: "profile", ext: "png", make: described(1, "-profile", "PROFILE")},
		{name: "still", ext: "gif", make: described(1)},
		{name: "moving", ext: "gif", make: described(1, "-duplicate", "3", "-set", "delay", "20", "-loop", "0")},
		{name: "three times", ext: "gif", make: described(1, "-duplicate", "3", "-set", "delay", "20", "-loop", "3")},
		{name: "h264", ext: "mp4", make: filmed(h264...)},
		{name: "fast start", ext: "mp4", make: filmed(with("-movflags", "+faststart")...)},
		{name: "keys", ext: "mp4", make: filmed(with("-movflags", "use_metadata_tags")...)},
		{name: "timecode", ext: "mp4", make: filmed(with("-timecode", "01:02:03:04")...)},
		{name: "without sound", ext: "mp4", make: filmed("-c:v", "libx264", "-an")},
		{name: "hevc", ext: "mp4", make: filmed("-c:v", "libx265", "-x265-params", "log-level=none", "-tag:v", "hvc1")},
		{name: "av1", ext: "mp4", make: filmed("-c:v", "libaom-av1", "-cpu-used", "8", "-an")},
		{name: "mpeg4", ext: "mp4", make: filmed("-c:v", "mpeg4")},
		{name: "turned", ext: "mp4", make: filmed(with("-metadata:s:v:0", "rotate=90")...)},
		{name: "subtitles", ext: "mp4", make: subtitled(h264...)},
		{name: "subtitles in fragments", ext: "mp4", make: subtitled(with("-movflags", "frag_keyframe+empty_moov", "-g", "10")...)},
		{name: "fragments with bases", ext: "mp4", make: subtitled(with("-movflags",
			"frag_keyframe+default_base_moof", "-g", "10")...)},
		{name: "quicktime inside", ext: "mp4", make: filmed(with("-f", "mov")...)},
		{name: "psp", ext: "mp4", make: filmed("-f", "psp", "-c:v", "libx264", "-pix_fmt", "yuv420p", "-ar", "48000")},
	}
	for o := 2; o <= 8; o++ {
		files = append(files, realFile{name: fmt.Sprintf("orientation %d", o), ext: "jpg", make: described(o)})
	}
	return files
}

// harmless lists the groups of exiftool that a published file may have.
var harmless = []string{"ExifTool", "PNG", "PNG-pHYs", "JFIF", "GIF", "Composite", "Track1", "Track2", "Adobe", "QuickTime",
	"IFD0"}

// TestMetadata_RealFiles needs imagemagick, exiftool and ffmpeg.
func TestMetadata_RealFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("makes files with imagemagick, exiftool and ffmpeg")
	}
	t.Parallel()
	for _, f := range realFiles() {
		t.Run(f.ext+" "+f.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "original."+f.ext)
			f.make(t, path)
			original, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if len(tellTales(t, path)) < 2 {
				t.Fatal("the file has nothing that is to go")
			}
			cleaned := clean(t, f.ext, original)
			out := filepath.Join(t.TempDir(), "clean."+f.ext)
			if err := os.WriteFile(out, cleaned, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, found := range tellTales(t, out) {
				t.Error(found)
			}
			for _, word := range []string{secret, "48.8584", "2.2945", "2024:05:06"} {
				if bytes.Contains(cleaned, []byte(word)) {
					t.Errorf("the bytes have %q", word)
				}
			}
			checkPictures(t, path, out)
			if again := clean(t, f.ext, cleaned); !bytes.Equal(again, cleaned) && f.ext != "mp4" {
				t.Errorf("cleaning twice gives other bytes than cleaning once")
			}
		})
	}
}

// tellTales returns the data that exiftool finds in a file and that only its maker can know.
func tellTales(t *testing.T, path string) (found []string) {
	t.Helper()
	var all []map[string]any
	if err := json.Unmarshal(tool(t, "exiftool", "-j", "-G1", "-a", "-u", "-U", "-ee3", "-n", path), &all); err != nil {
		t.Fatal(err)
	}
	for tag, value := range all[0] {
		group, name, _ := strings.Cut(tag, ":")
		text := fmt.Sprint(value)
		dated := strings.HasSuffix(name, "Date") && strings.ContainsAny(text, "123456789")
		switch {
		case tag == "SourceFile", group == "System", group == "File", strings.HasPrefix(group, "ICC"):
		case !slices.Contains(harmless, group), group == "IFD0" && name != "Orientation", dated,
			strings.Contains(name, "GPS"), strings.Contains(name, "Thumbnail"), strings.Contains(text, "Nosy"):
			found = append(found, fmt.Sprintf("%s is %.60s", tag, text))
		}
	}
	return found
}

// checkPictures fails the test unless both files show the same picture, upright, frame by frame and
// with the same color profile.
func checkPictures(t *testing.T, before, after string) {
	t.Helper()
	show := func(path string) string {
		if strings.HasSuffix(path, ".mp4") {
			return string(tool(t, "ffmpeg", "-nostdin", "-v", "error", "-i", path, "-map", "0:v", "-map", "0:a?", "-f", "md5", "-"))
		}
		return string(tool(t, magick(), path, "-auto-orient", "-depth", "8", "rgba:-")) +
			string(tool(t, magick(), path, "-format", "%T %n %[profile:icc]", "info:"))
	}
	if show(before) != show(after) {
		t.Error("the file shows something else than before, or has another colour profile")
	}
}

// clean returns a file without its metadata.
func clean(t *testing.T, ext string, raw []byte) []byte {
	t.Helper()
	s, err := metadata.NewScanner(ext)
	if err != nil {
		t.Fatal(err)
	}
	for rest := raw; len(rest) > 0; { // cut at arbitrary positions
		n := min(len(rest), 777)
		if _, err := s.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	edits, err := s.Edits()
	if err != nil {
		t.Fatal(err)
	}
	stored, err := metadata.Parse(edits.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(metadata.Without(memory{bytes.NewReader(raw)}, stored))
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(len(raw)) + edits.Grows(); int64(len(out)) != want {
		t.Fatalf("the file has %d bytes, want %d", len(out), want)
	}
	return out
}

// memory is a blob.File that is held in memory.
type memory struct{ *bytes.Reader }

func (m memory) Size() int64 { return m.Reader.Size() }

func (memory) Close() error { return nil }
