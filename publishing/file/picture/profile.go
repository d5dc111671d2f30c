package picture

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"io"
)

const (
	markerAPP2 = 0xe2 // a part of a color profile
	// profileParts is the maximum number of parts into which a JPEG can divide a color profile.
	// partSize is the maximum number of profile bytes in one part.
	profileParts = 255
	partSize     = 1<<16 - 1 - 2 - len(profileName) - 2
	// profileName is the beginning of every color profile segment. The part's number and the total
	// number of parts follow it.
	profileName = "ICC_PROFILE\x00"
	// profileShare limits the size of a profile to 1/profileShare of the picture's maximum size.
	profileShare = 4
	// maxProfile is the maximum size of a color profile in bytes. Typical camera and screen
	// profiles have only a few hundred bytes.
	maxProfile = 1 << 20
)

// readProfile returns the color profile of an image. It returns nil if the profile is missing,
// broken or too large. It also returns nil if the profile's color space is not RGB, because the
// resulting picture uses RGB.
func readProfile(r io.Reader, format string) []byte {
	b := bufio.NewReaderSize(r, 4<<10)
	var profile []byte
	switch format {
	case "jpeg":
		profile = jpegProfile(b)
	case "png":
		profile = pngProfile(b)
	}
	const colors = 16 // offset of the profile's color space
	if len(profile) < colors+4 || string(profile[colors:colors+4]) != "RGB " {
		return nil
	}
	return profile
}

func jpegProfile(b *bufio.Reader) []byte {
	var parts [profileParts + 1][]byte
	of, size := 0, 0
	for {
		marker, body, err := segment(b)
		if err != nil || marker == markerSOS || marker == markerEOI {
			break
		}
		rest, ok := bytes.CutPrefix(body, []byte(profileName))
		if marker != markerAPP2 || !ok || len(rest) < 2 {
			continue
		}
		if size += len(rest); size > maxProfile {
			return nil
		}
		parts[rest[0]], of = rest[2:], int(rest[1])
	}
	return bytes.Join(parts[1:of+1], nil)
}

func pngProfile(b *bufio.Reader) (profile []byte) {
	visit := func(kind string, body []byte) {
		_, packed, ok := bytes.Cut(body, []byte{0}) // after the name
		if kind != "iCCP" || !ok || len(packed) < 1 {
			return
		}
		z, err := zlib.NewReader(bytes.NewReader(packed[1:])) // after the method
		if err != nil {
			return
		}
		if all, err := io.ReadAll(io.LimitReader(z, maxProfile+1)); err == nil && len(all) <= maxProfile {
			profile = all
		}
	}
	if err := pngChunks(b, visit); err != nil {
		return nil
	}
	return profile
}

// withProfile returns a copy of a JPEG that includes the color profile.
func withProfile(picture, profile []byte) []byte {
	segments := profileSegments(profile)
	out := make([]byte, 0, len(picture)+len(segments))
	out = append(out, picture[:2]...)
	return append(append(out, segments...), picture[2:]...)
}

// profileSegments returns the JPEG segments for a color profile, or nil if the profile is empty.
func profileSegments(profile []byte) (out []byte) {
	of := (len(profile) + partSize - 1) / partSize
	for i := range of {
		part := profile[i*partSize : min((i+1)*partSize, len(profile))]
		out = append(out, 0xff, markerAPP2)
		out = binary.BigEndian.AppendUint16(out, uint16(2+len(profileName)+2+len(part)))
		out = append(append(out, profileName...), byte(i+1), byte(of))
		out = append(out, part...)
	}
	return out
}
