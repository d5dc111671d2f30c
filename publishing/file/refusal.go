package file

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/gabriel-vasile/mimetype"

	"crier/platform/fault"
	"crier/platform/paste"
	"crier/tenancy"
)

// Foreign is the cause of an error about an unsupported file type.
type Foreign struct {
	// Type is the media type of the file. Example: image/webp
	Type string
	// what names the type, with an article; remedy tells the user what to do
	what, remedy string
}

func (f Foreign) Error() string { return "a file of the type " + f.Type }

// foreign lists file types that users send but no platform accepts. A subtype precedes the type
// from which it is derived.
var foreign = []Foreign{
	{"image/webp", "a WebP picture", sendPicture},
	{"image/avif", "an AVIF picture", sendPicture},
	{"image/heic", "an HEIC picture", sendPicture},
	{"image/heic-sequence", "an HEIC picture", sendPicture},
	{"image/heif", "an HEIF picture", sendPicture},
	{"image/heif-sequence", "an HEIF picture", sendPicture},
	{"image/svg+xml", "an SVG drawing", sendPicture},
	{"image/tiff", "a TIFF picture", sendPicture},
	{"image/bmp", "a BMP picture", sendPicture},
	{"image/x-icon", "an icon", sendPicture},
	{"image/jxl", "a JPEG XL picture", sendPicture},
	{"image/jp2", "a JPEG 2000 picture", sendPicture},
	{"image/vnd.adobe.photoshop", "a Photoshop picture", sendPicture},
	{"video/quicktime", "a QuickTime movie", sendVideo},
	{"video/webm", "a WebM video", sendVideo},
	{"video/x-matroska", "a Matroska video", sendVideo},
	{"video/x-msvideo", "an AVI video", sendVideo},
	{"video/mpeg", "an MPEG video", sendVideo},
	{transportStream, "an MPEG transport stream", sendVideo},
	{"video/x-flv", "a Flash video", sendVideo},
	{"video/x-ms-asf", "a Windows Media video", sendVideo},
	{"application/ogg", "an Ogg file", sendVideo},
	{"audio/mp4", "sound without a picture (MP4)", sendSound},
	{"audio/x-m4a", "sound without a picture (M4A)", sendSound},
	{"audio/mpeg", "sound without a picture (MP3)", sendSound},
	{"audio/wav", "sound without a picture (WAV)", sendSound},
	{"audio/flac", "sound without a picture (FLAC)", sendSound},
	{"application/pdf", "a PDF document", "send its pages as png, jpg or gif"},
	{"text/html", "an HTML page, not a picture or video", "the address may need a sign-in, or belong to a page that shows the file"},
	{"application/json", "JSON text, not a picture or video", "it may be an error message"},
	{"text/xml", "XML text, not a picture or video", "it may be an error message"},
	{"application/gzip", "compressed (gzip)", "send the file itself, without compression"},
	{"application/zip", "an archive (ZIP)", "send the file inside it"},
	{"text/plain", "text, not a picture or video", sendAny},
}

const (
	sendPicture = "send it as png, jpg or gif"
	sendVideo   = "send it as mp4"
	sendSound   = "send an mp4 with a picture"
	sendAny     = "send png, jpg, jpeg, gif or mp4"
)

// maxNamed is the maximum length, in characters, of a file name shown in a message.
const maxNamed = 80

// refuseForeign returns the error for a file of an unsupported type. The message tells the user
// what type the file has.
func refuseForeign(name string, detected *mimetype.MIME, first []byte) error {
	who := subject(name, "The file")
	for kind := detected; kind != nil; kind = kind.Parent() {
		for _, f := range foreign {
			if kind.Is(f.Type) || f.Type == transportStream && kind.Parent() == nil && isTransportStream(first) {
				return fault.Wrap(fault.Invalid, "media.Sniff", who+" is "+f.what+"; "+f.remedy+".", f)
			}
		}
	}
	return fault.Wrap(fault.Invalid, "media.Sniff", who+" is not a picture or video of a known kind; "+sendAny+".",
		Foreign{Type: detected.String()})
}

// transportStream is the type of files sent by streaming servers. Package mimetype does not detect
// it.
const transportStream = "video/mp2t"

// isTransportStream reports whether a file begins like an MPEG transport stream, which consists of
// packets of 188 bytes.
func isTransportStream(first []byte) bool {
	const packet, sync = 188, 0x47
	return len(first) > 2*packet && first[0] == sync && first[packet] == sync && first[2*packet] == sync
}

// subject returns the last part of a file name for use in a message. If the name is unsuitable,
// subject returns the text in otherwise.
func subject(name, otherwise string) string {
	base := paste.Line(path.Base(strings.ReplaceAll(name, `\`, "/")))
	if clean, rule := tenancy.CleanName(base, 1, maxNamed); name != "" && rule == "" {
		return clean
	}
	return otherwise
}

// Incomplete returns an error if the video is truncated, has no picture, or can only be played as a
// QuickTime movie. Otherwise, it returns nil. It must be called after all bytes have been written.
// name is the file's name for use in the message. It may be empty.
func (v *VideoProbe) Incomplete(name string) error {
	who := subject(name, "The video")
	broken := func(what string) error { return fault.New(fault.Invalid, "media.Read", who+" "+what+".") }
	isPicture := func(t videoTrack) bool { return t.kind == "vide" }
	picture := slices.IndexFunc(v.tracks, isPicture)
	hasFrames := func(t videoTrack) bool { return isPicture(t) && (t.samples > 0 || v.fragments) }
	switch {
	case !v.movie:
		return broken("has no movie box (moov): it is cut off, or the program that made it did not finish")
	case v.breaksOff():
		return broken("is incomplete: it breaks off before its end")
	case picture < 0 && len(v.tracks) > 0:
		return broken("has sound but no picture; " + sendSound)
	case picture < 0:
		return broken("has no track with a picture")
	case !slices.ContainsFunc(v.tracks, hasFrames):
		return broken("has a track with a picture, but no frames: the program that made it did not finish")
	}
	if codec := v.foreignCodec(); v.quickTime && codec != "" {
		return broken(
			fmt.Sprintf("is a QuickTime movie with the codec %q, which MP4 does not have; %s", codec, sendVideo),
		)
	}
	return nil
}

// breaksOff reports whether the file ends too early: before the end of its movie box or its data,
// or before its last sample. Anything else after the data may be missing, because players do not
// need it.
func (v *VideoProbe) breaksOff() bool {
	needed := v.top.kind == "moov" || v.top.kind == "moof" || v.top.kind == "mdat"
	return needed && v.top.end != toEnd && v.top.end > v.at || v.owed || v.lastChunk >= v.at
}

// codecs lists the codecs that the MP4 registration authority (mp4ra.org) has registered for MP4
// files.
var codecs = map[string][]string{
	"vide": {"avc1", "avc2", "avc3", "avc4", "av01", "dva1", "dvav", "dvh1", "dvhe", "hev1", "hvc1", "mp4v", "s263",
		"vp08", "vp09", "vvc1", "vvi1"},
	"soun": {"Opus", "ac-3", "ac-4", "alac", "dtsc", "dtse", "dtsh", "dtsl", "ec-3", "fLaC", "ipcm", "fpcm", "mha1", "mhm1",
		"mp4a", "samr", "sawb", "sawp"},
}

// foreignCodec returns the picture codec if no picture track has an MP4 codec, or else the sound
// codec if no sound track has one. It returns "" if neither applies.
func (v *VideoProbe) foreignCodec() string {
	for _, kind := range []string{"vide", "soun"} {
		isOfMP4 := func(t videoTrack) bool { return t.kind == kind && slices.Contains(codecs[kind], t.codec) }
		first := slices.IndexFunc(v.tracks, func(t videoTrack) bool { return t.kind == kind })
		if first >= 0 && !slices.ContainsFunc(v.tracks, isOfMP4) {
			return strings.TrimSpace(v.tracks[first].codec)
		}
	}
	return ""
}
