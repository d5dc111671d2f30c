package media

import (
	"path"
	"strings"

	"github.com/gabriel-vasile/mimetype"

	"crier/platform/fault"
	"crier/platform/paste"
	"crier/tenancy"
)

// Foreign is the cause of the refusal of a file that is of no kind that can be stored.
type Foreign struct {
	// Type is its media type.
	Type string
	// what it is, with its article, and what to do
	what, remedy string
}

func (f Foreign) Error() string { return "a file of the type " + f.Type }

// foreign are kinds of files that people send and that no platform takes. A kind that is derived from another comes
// before it.
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
	{"video/quicktime", "a QuickTime video", sendVideo},
	{"video/webm", "a WebM video", sendVideo},
	{"video/x-matroska", "a Matroska video", sendVideo},
	{"video/x-msvideo", "an AVI video", sendVideo},
	{"video/mpeg", "an MPEG video", sendVideo},
	{"video/x-flv", "a Flash video", sendVideo},
	{"video/x-ms-asf", "a Windows Media video", sendVideo},
	{"application/ogg", "an Ogg file", sendVideo},
	{"audio/mp4", "sound without a picture (MP4)", sendSound},
	{"audio/x-m4a", "sound without a picture (M4A)", sendSound},
	{"audio/mpeg", "sound without a picture (MP3)", sendSound},
	{"audio/wav", "sound without a picture (WAV)", sendSound},
	{"audio/flac", "sound without a picture (FLAC)", sendSound},
	{"application/pdf", "a PDF document", "send its pages as png, jpg or gif"},
	{"text/html", "a page (HTML) and no picture or video", "the address may need a sign-in, or be that of a page that shows the file"},
	{"application/json", "a text (JSON) and no picture or video", "it may be the message of an error"},
	{"text/xml", "a text (XML) and no picture or video", "it may be the message of an error"},
	{"application/gzip", "compressed (gzip)", "send the file itself, without compression"},
	{"application/zip", "an archive (ZIP)", "send the file inside it"},
	{"text/plain", "a text and no picture or video", sendAny},
}

const (
	sendPicture = "send it as png, jpg or gif"
	sendVideo   = "send it as mp4"
	sendSound   = "send an mp4 with a picture"
	sendAny     = "send png, jpg, jpeg, gif or mp4"
)

// maxNamed is the longest name in a sentence, in characters.
const maxNamed = 80

// refuseForeign returns the refusal of a file that is of no kind that can be stored. It says what the file is.
func refuseForeign(name string, detected *mimetype.MIME) error {
	subject := "The file"
	base := paste.Line(path.Base(strings.ReplaceAll(name, `\`, "/")))
	if clean, rule := tenancy.CleanName(base, 1, maxNamed); name != "" && rule == "" {
		subject = clean
	}
	for kind := detected; kind != nil; kind = kind.Parent() {
		for _, f := range foreign {
			if kind.Is(f.Type) {
				return fault.Wrap(fault.Invalid, "media.Sniff", subject+" is "+f.what+"; "+f.remedy+".", f)
			}
		}
	}
	return fault.Wrap(fault.Invalid, "media.Sniff", subject+" is no picture or video of a known kind; "+sendAny+".",
		Foreign{Type: detected.String()})
}

// Incomplete returns the refusal of a video that breaks off, or of which nothing can be seen, after all of its bytes were
// written. It returns nil for a video.
func (v *VideoProbe) Incomplete() error {
	switch {
	case !v.hasMovie:
		return fault.New(fault.Invalid, "media.Read", "The video has no movie box (moov): the file is cut off, or the program "+
			"that made it was not done.")
	case !v.picture && v.sound:
		return fault.New(fault.Invalid, "media.Read", "The video has sound and no picture: "+sendSound+".")
	case !v.picture:
		return fault.New(fault.Invalid, "media.Read", "The video has no track with a picture.")
	case v.skip > 0 && !v.ended:
		return fault.New(fault.Invalid, "media.Read", "The video is incomplete: it breaks off before its end.")
	}
	return nil
}
