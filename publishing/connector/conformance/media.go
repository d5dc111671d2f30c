package conformance

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"crier/publishing/connector"
)

const side = 32 // pixels

// shelf generates media and serves them over HTTP, for platforms that fetch media by URL.
type shelf struct {
	t       *testing.T
	samples map[string][]byte
	url     string
	files   map[string][]byte
	types   map[string]string
}

func (r *rig) shelf() *shelf {
	s := &shelf{t: r.t, samples: r.Samples, files: map[string][]byte{}, types: map[string]string{}}
	server := httptest.NewServer(s)
	r.t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// ServeHTTP serves the file at the request's path. It needs no lock, because all files are
// generated before the platform receives a URL.
func (s *shelf) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, ok := s.files[req.URL.Path]
	if !ok {
		http.NotFound(w, req)
		return
	}
	w.Header().Set("Content-Type", s.types[req.URL.Path])
	_, _ = w.Write(body) // the platform may disconnect
}

// media generates one file. Different shades give different bytes.
func (s *shelf) media(contentType, alt string, shade uint8) connector.Media {
	s.t.Helper()
	body := s.bytes(contentType, shade)
	sum := sha256.Sum256(append([]byte{shade}, body...))
	name := hex.EncodeToString(sum[:8]) + extension[contentType]
	path := "/" + name
	s.files[path], s.types[path] = body, contentType
	return connector.Media{
		ContentType: contentType, Size: int64(len(body)), Width: side, Height: side, Alt: alt, Name: name,
		Video: contentType == "video/mp4", URL: s.url + path,
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil },
	}
}

var extension = map[string]string{"image/png": ".png", "image/jpeg": ".jpg", "video/mp4": ".mp4"}

func (s *shelf) bytes(contentType string, shade uint8) []byte {
	s.t.Helper()
	if sample, ok := s.samples[contentType]; ok {
		return sample
	}
	var b bytes.Buffer
	var err error
	switch contentType {
	case "image/png":
		err = png.Encode(&b, picture(shade))
	case "image/jpeg":
		err = jpeg.Encode(&b, picture(shade), nil)
	default:
		return film(shade)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return b.Bytes()
}

func picture(shade uint8) image.Image {
	img := image.NewRGBA(image.Rect(0, 0, side, side))
	for i := range side {
		img.Set(i, i, color.RGBA{R: shade, G: 128, B: uint8(i), A: 255})
	}
	return img
}

// film returns a minimal file that consists of MP4 boxes: a brand and some data.
func film(shade uint8) []byte {
	box := func(kind string, body []byte) []byte {
		return slices.Concat(binary.BigEndian.AppendUint32(nil, uint32(8+len(body))), []byte(kind), body)
	}
	brand := slices.Concat([]byte("isom"), make([]byte, 4), []byte("isommp42"))
	return slices.Concat(box("ftyp", brand), box("mdat", bytes.Repeat([]byte{shade}, 64)))
}

// sameMedia checks that the platform shows the media's alternative texts, in order. If the platform
// exposes the bytes, it also checks the hashes.
func (r *rig) sameMedia(seen Seen, media []connector.Media) {
	r.t.Helper()
	var alts, sums []string
	for _, m := range media {
		alts = append(alts, m.Alt)
		sums = append(sums, r.sum(m))
	}
	if !slices.Equal(seen.Alts, alts) {
		r.t.Errorf("alternative texts on the platform %q, want %q", seen.Alts, alts)
	}
	if seen.MediaSHA256 != nil && !slices.Equal(seen.MediaSHA256, sums) {
		r.t.Errorf("media on the platform have the hashes %q, want %q", seen.MediaSHA256, sums)
	}
}

func (r *rig) sum(m connector.Media) string {
	r.t.Helper()
	file, err := m.Open()
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		r.t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}
