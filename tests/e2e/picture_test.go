package e2e

import (
	"bytes"
	"image"
	"image/png"
	"math/rand/v2"
	"testing"
	"time"

	filepicture "crier/publishing/file/picture"
	"crier/tests/pds"
)

// TestBluesky_LargePicturesAreMadeSmaller publishes with one permit for the whole process. Posts
// must wait for their pictures and keep the order of their channels.
func TestBluesky_LargePicturesAreMadeSmaller(t *testing.T) {
	t.Parallel()
	server := pds.Start(t)
	first, second := newBluesky(t, server), newBluesky(t, server)
	settings := first.service()
	settings["OUTBOUND_ALLOW"] += "," + second.service()["OUTBOUND_ALLOW"]
	settings["MAX_IN_FLIGHT"] = "1"
	s := start(t, settings)
	var posts []string
	var sent [][]byte
	for _, a := range []account{first, second} {
		connector, form := a.form()
		channel := s.connect(t, connector, form)
		raw := large(t)
		sent = append(sent, raw)
		posts = append(posts, s.create(t, "now", time.Now(), channel, []part{{text: "with a picture", image: raw, alt: "Noise"}}))
		posts = append(posts, s.create(t, "now", time.Now(), channel, []part{{text: "a text"}}))
	}
	for _, id := range posts {
		if got := s.awaitEnd(t, id, time.Now().Add(patience)); got.State != "PUBLISHED" {
			t.Errorf("got %v, want it published", got)
		}
	}
	for i, a := range []account{first, second} {
		want, err := filepicture.Fit(t.Context(), bytes.NewReader(sent[i]), filepicture.Spec{MaxBytes: 1_000_000, MaxSide: 2000})
		if err != nil {
			t.Fatal(err)
		}
		there := a.posts(t)
		if len(there) != 2 || len(there[0].images) != 1 || there[0].images[0] != (picture{sum: sum(want.Bytes), alt: "Noise"}) {
			t.Errorf("account %d: got %+v, want two posts with the fitted picture in the first", i, there)
		}
	}
}

// large returns a picture of noise that takes several megabytes.
func large(t *testing.T) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 1500, 1200))
	for i := range img.Pix {
		img.Pix[i] = byte(rand.Uint32()) | byte(i%4/3*255)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
