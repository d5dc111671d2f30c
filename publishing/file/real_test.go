package file_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"crier/platform/fault"
	"crier/publishing/file"
)

// real is a file that a Debian program makes, with the expected verdict.
type real struct {
	name string // the name of the upload; what describes the file
	what string
	// make is the command. Its last argument is the file; $v, $a, $va and $p are the inputs.
	make string
	// want is a part of the refusal, "" if the file is accepted.
	want string
	// differs says why the verdict differs from what file and ffprobe say, "" if it does not.
	differs string
	// cut also cuts the file at ten places. shows says why the tools accept some of the pieces as
	// whole.
	cut   bool
	shows string
	// sample stores the file in testdata, for tests that run without the programs.
	sample bool
}

const (
	ofQuickTime = "ffprobe has one format for MP4 and QuickTime; MP4 has no such codec"
	notByName   = "the tools ignore names; of an upload the extension must be that of the content, and no mov is taken"
	noLength    = "the tools show the frames or passes that there are, and only the end of the file says that there are no more"
	noTables    = "only the end of the movie box is missing, which the tools do not need"
)

var reals = []real{
	// MP4 and its variants, from every muxer and with every codec.
	{name: "a.mp4", what: "h264 aac", make: "ffmpeg $va -c:v libx264 -preset ultrafast -c:a aac -f mp4", cut: true, shows: noTables, sample: true},
	{name: "a.mp4", what: "h264 faststart", make: "ffmpeg $va -c:v libx264 -preset ultrafast -c:a aac -movflags +faststart -f mp4", cut: true, sample: true},
	{name: "a.mp4", what: "h264 no sound", make: "ffmpeg $v -c:v libx264 -preset ultrafast -f mp4"},
	{name: "a.mp4", what: "h264 mp3", make: "ffmpeg $va -c:v libx264 -preset ultrafast -c:a libmp3lame -f mp4"},
	{name: "a.mp4", what: "h264 ac3", make: "ffmpeg $va -c:v libx264 -preset ultrafast -c:a ac3 -f mp4"},
	{name: "a.mp4", what: "h264 opus", make: "ffmpeg $va -c:v libx264 -preset ultrafast -c:a libopus -f mp4"},
	{name: "a.mp4", what: "h264 flac", make: "ffmpeg $va -c:v libx264 -preset ultrafast -c:a flac -strict -2 -f mp4"},
	{name: "a.mp4", what: "h264 alac", make: "ffmpeg $va -c:v libx264 -preset ultrafast -c:a alac -f mp4"},
	{name: "a.mp4", what: "hevc hev1", make: "ffmpeg $va -c:v libx265 -preset ultrafast -c:a aac -f mp4", cut: true, shows: noTables},
	{name: "a.mp4", what: "hevc hvc1", make: "ffmpeg $v -c:v libx265 -preset ultrafast -tag:v hvc1 -f mp4"},
	{name: "a.mp4", what: "av1", make: "ffmpeg $va -c:v libsvtav1 -preset 12 -c:a aac -f mp4", cut: true, shows: noTables},
	{name: "a.mp4", what: "vp9", make: "ffmpeg $va -c:v libvpx-vp9 -c:a libopus -f mp4", cut: true, shows: noTables},
	{name: "a.mp4", what: "mpeg4", make: "ffmpeg $va -c:v mpeg4 -c:a aac -f mp4"},
	{name: "a.mp4", what: "mpeg2", make: "ffmpeg $v -c:v mpeg2video -f mp4"},
	{name: "a.mp4", what: "mjpeg", make: "ffmpeg $v -c:v mjpeg -f mp4"},
	{name: "a.mp4", what: "rotated", make: "ffmpeg $v -c:v libx264 -preset ultrafast -metadata:s:v rotate=90 -f mp4"},
	{name: "a.mp4", what: "brand", make: "ffmpeg $v -c:v libx264 -preset ultrafast -brand XAVC -f mp4"},
	{name: "a.mp4", what: "brand of sound", make: "ffmpeg $v -c:v libx264 -preset ultrafast -brand M4A\u00a0 -f mp4", sample: true},
	{name: "a.mp4", what: "brand of QuickTime", make: "ffmpeg $v -c:v libx264 -preset ultrafast -brand qt\u00a0\u00a0 -f mp4", sample: true},
	{name: "a.mp4", what: "fragmented", make: "ffmpeg $va -c:v libx264 -preset ultrafast -c:a aac -g 2 -movflags frag_keyframe+empty_moov -f mp4", cut: true, shows: noLength, sample: true},
	{name: "a.mp4", what: "dash", make: "ffmpeg $va -c:v libx264 -preset ultrafast -c:a aac -g 2 -movflags dash+frag_keyframe -f mp4"},
	{name: "a.mp4", what: "cmaf", make: "ffmpeg $v -c:v libx264 -preset ultrafast -g 2 -movflags cmaf+frag_keyframe -f mp4"},
	{name: "a.mp4", what: "64 bit", make: "ffmpeg $v -c:v libx264 -preset ultrafast -movflags use_metadata_tags -metadata a=b -f mp4"},
	{name: "a.mp4", what: "subtitles", make: "ffmpeg -i $s $v -c:v libx264 -preset ultrafast -c:s mov_text -f mp4"},
	{name: "a.mp4", what: "m4v", make: "ffmpeg $va -c:v libx264 -preset ultrafast -c:a aac -f ipod"},
	{name: "a.m4v", what: "m4v by name", make: "ffmpeg $va -c:v libx264 -preset ultrafast -c:a aac -f ipod"},
	{name: "a.mp4", what: "psp", make: "ffmpeg $va -c:v libx264 -preset ultrafast -c:a aac -ar 48000 -f psp"},
	{name: "a.mp4", what: "f4v", make: "ffmpeg $va -c:v libx264 -preset ultrafast -c:a aac -f f4v"},
	{name: "a.mp4", what: "ismv", make: "ffmpeg $va -c:v libx264 -preset ultrafast -c:a aac -g 2 -f ismv", cut: true, shows: noLength, sample: true},
	{name: "a.mp4", what: "3gp h263", make: "ffmpeg $v -c:v h263 -s 128x96 -f 3gp", cut: true, shows: noTables, sample: true},
	{name: "a.3gp", what: "3gp h264 by name", make: "ffmpeg $va -c:v libx264 -preset ultrafast -c:a aac -f 3gp"},
	{name: "a.mp4", what: "3g2", make: "ffmpeg $va -c:v mpeg4 -c:a aac -f 3g2"},
	{name: "a.mp4", what: "mov h264", make: "ffmpeg $va -c:v libx264 -preset ultrafast -c:a aac -f mov", cut: true, shows: noTables, sample: true},
	{name: "a.mp4", what: "mov hevc", make: "ffmpeg $va -c:v libx265 -preset ultrafast -tag:v hvc1 -c:a aac -f mov"},
	{name: "a.mov", what: "mov by name", make: "ffmpeg $va -c:v libx264 -preset ultrafast -c:a aac -f mov", want: "a.mov is a QuickTime movie; send it as mp4.", differs: notByName},
	{name: "a.mp4", what: "mov pcm", make: "ffmpeg $va -c:v libx264 -preset ultrafast -c:a pcm_s16le -f mov", want: `QuickTime movie with the codec "sowt"`, differs: ofQuickTime},
	{name: "a.mp4", what: "mov prores", make: "ffmpeg $v -c:v prores_ks -f mov", want: `QuickTime movie with the codec "apch"`, differs: ofQuickTime},
	{name: "a.mp4", what: "mov qtrle", make: "ffmpeg $v -pix_fmt rgb24 -c:v qtrle -f mov", want: `QuickTime movie with the codec "rle"`, differs: ofQuickTime, sample: true},
	{name: "a.mp4", what: "mov png", make: "ffmpeg $v -pix_fmt rgb24 -c:v png -f mov", want: `QuickTime movie with the codec "png"`, differs: ofQuickTime},
	{name: "a.mp4", what: "mov mjpeg", make: "ffmpeg $v -pix_fmt yuvj420p -c:v mjpeg -f mov", want: `QuickTime movie with the codec "jpeg"`, differs: ofQuickTime},
	{name: "a.mp4", what: "sound", make: "ffmpeg $a -c:a aac -f mp4", want: "has sound but no picture", sample: true},
	{name: "a.m4a", what: "m4a", make: "ffmpeg $a -c:a aac -f ipod", want: "a.m4a has sound but no picture", sample: true},
	{name: "a.mp4", what: "sound of mov", make: "ffmpeg $a -c:a aac -f mov", want: "has sound but no picture"},
	{name: "a.mp4", what: "no frames", make: "ffmpeg $v -t 0 -c:v libx264 -preset ultrafast -f mp4", want: "a.mp4 has "},
	// Other containers.
	{name: "a.mp4", what: "matroska", make: "ffmpeg $va -c:v libx264 -preset ultrafast -c:a aac -f matroska", want: "a Matroska video; send it as mp4", sample: true},
	{name: "a.mp4", what: "webm", make: "ffmpeg $va -c:v libvpx -c:a libopus -f webm", want: "a WebM video; send it as mp4"},
	{name: "a.mp4", what: "avi", make: "ffmpeg $v -c:v mpeg4 -f avi", want: "an AVI video; send it as mp4"},
	{name: "a.mp4", what: "flv", make: "ffmpeg $va -c:v libx264 -preset ultrafast -c:a aac -f flv", want: "a Flash video; send it as mp4"},
	{name: "a.mp4", what: "ogg", make: "ffmpeg $v -c:v libtheora -f ogg", want: "an Ogg"},
	{name: "a.mp4", what: "mpegts", make: "ffmpeg $va -c:v libx264 -preset ultrafast -c:a aac -f mpegts", want: "an MPEG transport stream; send it as mp4"},
	{name: "a.mp4", what: "mpeg", make: "ffmpeg $va -c:v mpeg2video -c:a mp2 -f mpeg", want: "an MPEG video; send it as mp4"},
	{name: "a.mp4", what: "asf", make: "ffmpeg $va -c:v wmv2 -c:a wmav2 -f asf", want: "a Windows Media video; send it as mp4"},
	{name: "a.mp4", what: "mxf", make: "ffmpeg $v -r 25 -c:v mpeg2video -f mxf", want: "not a picture or video of a known kind"},
	{name: "a.mp4", what: "h264 alone", make: "ffmpeg $v -c:v libx264 -preset ultrafast -f h264", want: "not a picture or video of a known kind"},
	{name: "a.mp4", what: "ivf", make: "ffmpeg $v -c:v libvpx -f ivf", want: "not a picture or video of a known kind"},
	{name: "a.mp4", what: "wav", make: "ffmpeg $a -f wav", want: "sound without a picture (WAV)"},
	{name: "a.mp4", what: "mp3", make: "ffmpeg $a -c:a libmp3lame -f mp3", want: "sound without a picture (MP3)"},
	{name: "a.mp4", what: "flac", make: "ffmpeg $a -f flac", want: "sound without a picture (FLAC)"},
	{name: "a.mp4", what: "gif named mp4", make: "ffmpeg $v -f gif", want: "The file is named .mp4, but its content is a GIF image."},
	// Pictures.
	{name: "a.png", what: "png", make: "convert $p png:", cut: true, shows: noLength, sample: true},
	{name: "a.png", what: "png interlaced", make: "convert $p -interlace PNG png:", cut: true, shows: noLength},
	{name: "a.png", what: "png of 16 bits", make: "convert $p -depth 16 png48:"},
	{name: "a.png", what: "png of 8 bits", make: "convert $p -colors 8 png8:"},
	{name: "a.png", what: "apng", make: "ffmpeg $v -plays 0 -f apng", cut: true, shows: noLength, sample: true},
	{name: "a.jpg", what: "jpeg", make: "convert $p jpg:", cut: true, shows: noLength, sample: true},
	{name: "a.jpeg", what: "jpeg progressive", make: "convert $p -interlace JPEG jpg:", cut: true, shows: noLength, sample: true},
	{name: "a.jpg", what: "jpeg gray", make: "convert $p -colorspace Gray jpg:"},
	{name: "a.jpg", what: "jpeg cmyk", make: "convert $p -colorspace CMYK jpg:"},
	{name: "a.jpg", what: "jpeg of ffmpeg", make: "ffmpeg $v -frames:v 1 -f mjpeg"},
	{name: "a.gif", what: "gif", make: "convert $p gif:", cut: true, shows: noLength, sample: true},
	{name: "a.gif", what: "gif animated", make: "convert $p $p -delay 10 gif:", cut: true, shows: noLength},
	{name: "a.gif", what: "gif of ffmpeg", make: "ffmpeg $v -f gif", cut: true, shows: noLength},
	{name: "a.png", what: "jpeg named png", make: "convert $p jpg:", want: "The file is named .png, but its content is a JPEG image."},
	{name: "a.jpg", what: "png named jpg", make: "convert $p png:", want: "The file is named .jpg, but its content is a PNG image."},
	{name: "a.jpg", what: "mp4 named jpg", make: "ffmpeg $v -c:v libx264 -preset ultrafast -f mp4", want: "The file is named .jpg, but its content is an MP4 video."},
	{name: "a.png", what: "webp", make: "convert $p webp:", want: "a WebP picture; send it as png, jpg or gif", sample: true},
	{name: "a.png", what: "avif", make: "ffmpeg $v -frames:v 1 -c:v libaom-av1 -still-picture 1 -f avif", want: "an AVIF picture"},
	{name: "a.jpg", what: "heic", make: "convert $p heic:", want: "an HEIC picture", sample: true},
	{name: "a.png", what: "tiff", make: "convert $p -compress Zip tiff:", want: "a TIFF picture"},
	{name: "a.png", what: "bmp", make: "convert $p -colors 2 bmp:", want: "a BMP picture", sample: true},
	{name: "a.png", what: "psd", make: "convert $p psd:", want: "a Photoshop picture"},
	{name: "a.png", what: "ico", make: "convert $p ico:", want: "an icon"},
	{name: "a.png", what: "jp2", make: "convert $p jp2:", want: "a JPEG 2000 picture"},
	{name: "a.png", what: "ppm", make: "convert $p ppm:", want: "not a picture or video of a known kind"},
	{name: "a.png", what: "pcx", make: "convert $p pcx:", want: "not a picture or video of a known kind"},
	{name: "a.png", what: "xpm", make: "convert $p xpm:", want: "not a picture or video of a known kind"},
	{name: "a.png", what: "mng", make: "convert $p mng:", want: "not a picture or video of a known kind"},
}

var realInputs = strings.NewReplacer(
	"$va", "-f lavfi -i testsrc=s=96x64:r=10:d=0.6 -f lavfi -i sine=d=0.6 -pix_fmt yuv420p",
	"$v", "-f lavfi -i testsrc=s=96x64:r=10:d=0.6 -pix_fmt yuv420p",
	"$a", "-f lavfi -i sine=d=0.6", "$p", "-seed 1 -size 40x30 plasma:red-blue", "\u00a0", " ")

var update = flag.Bool("update", false, "write the samples of testdata")

// made makes the file with its command and returns its content.
func (f real) made(t *testing.T, dir string) []byte {
	t.Helper()
	words := strings.Fields(strings.ReplaceAll(f.make, "\u00a0", "\x00"))
	words = strings.Fields(realInputs.Replace(strings.Join(words, " ")))
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], "\x00", " ")
		if words[i] == "$s" {
			words[i] = filepath.Join(dir, "subtitles.srt")
			if err := os.WriteFile(words[i], []byte("1\n00:00:00,000 --> 00:00:00,400\nHello\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	out := filepath.Join(dir, "made")
	if err := os.Remove(out); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	switch last := len(words) - 1; words[0] {
	case "ffmpeg":
		words = append(append([]string{"ffmpeg", "-v", "error", "-y", "-nostdin"}, words[1:]...), out)
	case "convert":
		words[0] = "convert-im6.q16" // the name of ImageMagick 6 in Debian
		if _, err := exec.LookPath("magick"); err == nil {
			words[0] = "magick"
		}
		words[last] += out
	}
	tool(t, words...)
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// tool runs a program and returns its output and its error messages.
func tool(t *testing.T, words ...string) (out, complaints string) {
	t.Helper()
	path, err := exec.LookPath(words[0])
	if err != nil {
		t.Fatalf("%v: install ffmpeg, imagemagick and file, as `ops/test all` does, or run with -short", err)
	}
	cmd := exec.CommandContext(t.Context(), path, words[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// ffprobe and ffmpeg fail for incomplete files and say so in their output.
	judges := words[0] == "ffprobe" || words[len(words)-1] == "-"
	if err := cmd.Run(); err != nil && !judges {
		t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, stderr.String())
	}
	return stdout.String(), stderr.String()
}

// verdict returns the message with which an upload is refused, or "".
func verdict(t *testing.T, name string, data []byte) string {
	t.Helper()
	kind, r, err := file.Sniff(name, bytes.NewReader(data), file.Limits{Image: 10 << 20, Video: 10 << 20})
	probe := &file.VideoProbe{}
	if err == nil {
		_, err = io.Copy(probe, r)
	}
	if err == nil && kind.Video {
		err = probe.Incomplete(name)
		if width, height := probe.Size(); err == nil && (width == 0 || height == 0) {
			t.Errorf("%s is accepted with the size %d x %d", name, width, height)
		}
	}
	var f *fault.Error
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &f) || f.Kind != fault.Invalid:
		t.Fatalf("got %v, want Invalid", err)
	}
	return f.Message
}

// toolsAccept reports whether file and ffprobe consider the data a whole picture or video of an
// accepted type that matches the name of the upload.
func toolsAccept(t *testing.T, dir, name string, data []byte) bool {
	t.Helper()
	path := filepath.Join(dir, "judged")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	ffmpeg := func(words string) (complaints string) {
		words = "ffmpeg -v error -nostdin -i " + path + words + " -f null -"
		_, complaints = tool(t, strings.Fields(words)...)
		return complaints
	}
	if ffmpeg(" -map 0:v -map 0:a? -c copy") != "" {
		return false
	}
	ext := strings.Replace(strings.TrimPrefix(filepath.Ext(name), "."), "jpeg", "jpg", 1)
	mime, _ := tool(t, "file", "--brief", "--mime-type", path)
	if kind, ok := strings.CutPrefix(strings.TrimSpace(mime), "image/"); ok {
		ours := map[string]string{"png": "png", "apng": "png", "vnd.mozilla.apng": "png", "jpeg": "jpg", "gif": "gif"}
		return ours[kind] == ext && ffmpeg("") == ""
	}
	const entries = "format=format_name:stream=codec_type,nb_read_packets"
	out, _ := tool(t, "ffprobe", "-v", "error", "-count_packets", "-show_entries", entries, "-of", "json", path)
	var seen struct {
		Format struct {
			Name string `json:"format_name"`
		}
		Streams []struct {
			Type    string `json:"codec_type"`
			Packets string `json:"nb_read_packets"`
		}
	}
	if err := json.Unmarshal([]byte(out), &seen); err != nil {
		t.Fatalf("ffprobe: %v in %q", err, out)
	}
	if !strings.Contains(seen.Format.Name, "mp4") || strings.Contains("png jpg gif", ext) {
		return false
	}
	for _, s := range seen.Streams {
		if s.Type == "video" && s.Packets != "" && s.Packets != "0" {
			return true
		}
	}
	return false
}

func (f real) file() string {
	return filepath.Join("testdata", "real", strings.ReplaceAll(f.what, " ", "-"))
}

// TestReal makes files with Debian programs and compares the verdict about each upload with what
// file and ffprobe say.
func TestReal(t *testing.T) {
	if testing.Short() {
		t.Skip("makes files with ffmpeg and ImageMagick for a minute; TestReal_Samples has some of them")
	}
	t.Parallel()
	dir := t.TempDir()
	cuts, shown := 0, 0
	for _, f := range reals {
		t.Run(f.what, func(t *testing.T) {
			data := f.made(t, dir)
			got, tools := verdict(t, f.name, data), toolsAccept(t, dir, f.name, data)
			if f.want == "" && got != "" || !strings.Contains(got, f.want) {
				t.Errorf("got %q, want %q", got, f.want)
			}
			if same := tools == (got == ""); same != (f.differs == "") {
				t.Errorf("got %q, and the tools accept it: %t; the reason is %q", got, tools, f.differs)
			}
			if f.sample && *update {
				err := errors.Join(os.MkdirAll(filepath.Dir(f.file()), 0o755), os.WriteFile(f.file(), data, 0o644))
				if err != nil {
					t.Fatal(err)
				}
			}
			if !f.cut {
				return
			}
			for i := 1; i <= 10; i++ {
				part := data[:len(data)*i/11]
				got, tools := verdict(t, f.name, part), toolsAccept(t, dir, f.name, part)
				cuts++
				switch {
				case got == "":
					t.Errorf("cut at %d of %d bytes: accepted; the tools accept it: %t", len(part), len(data), tools)
				case tools && f.shows == "":
					t.Errorf("cut at %d of %d bytes: got %q, and the tools accept it without a reason", len(part), len(data), got)
				case tools:
					shown++
				}
			}
		})
	}
	t.Logf("%d files and %d cuts of them, %d of which the tools take for whole", len(reals), cuts, shown)
	if len(reals) < 60 || cuts < 100 {
		t.Errorf("%d files and %d cuts, want 60 and 100 at least", len(reals), cuts)
	}
}

// TestReal_Samples checks files that the programs of TestReal made. `go test -run 'TestReal$'
// -update` writes them.
func TestReal_Samples(t *testing.T) {
	t.Parallel()
	for _, f := range reals {
		if !f.sample {
			continue
		}
		data, err := os.ReadFile(f.file())
		if err != nil {
			t.Fatal(err)
		}
		if got := verdict(t, f.name, data); f.want == "" && got != "" || !strings.Contains(got, f.want) {
			t.Errorf("%s: got %q, want %q", f.what, got, f.want)
		}
		for i := 1; f.cut && i <= 10; i++ {
			part := data[:len(data)*i/11]
			if got := verdict(t, f.name, part); got == "" {
				t.Errorf("%s: %d of %d bytes are accepted", f.what, len(part), len(data))
			}
		}
	}
}
