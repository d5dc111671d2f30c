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
	// profileParts is the maximum number of profile parts in a JPEG. partSize is the maximum number
	// of profile bytes per part.
	profileParts = 255
	partSize     = 1<<16 - 1 - 2 - len(profileName) - 2
	// profileName begins each color profile segment. It is followed by the part's number and the
	// total number of parts.
	profileName = "ICC_PROFILE\x00"
	// profileShare limits a profile to 1/profileShare of a picture's maximum size.
	profileShare = 4
	// maxProfile is the maximum size of a profile in bytes. Camera and screen profiles have a few
	// hundred bytes.
	maxProfile = 1 << 20
)

// readProfile returns the color profile of an image. It returns nil if the profile is missing,
// broken or too large, or if its color space is not RGB, which the resulting picture uses.
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

// withProfile returns a JPEG with a color profile added.
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
