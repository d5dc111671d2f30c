package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	"crier/publishing/file/metadata"
	filepicture "crier/publishing/file/picture"
	"crier/tests/fixture"
	"crier/tests/pds"
)

// TestMetadata_IsNotPublished publishes a small photo and one that must be made smaller on a real
// Bluesky server, and reads both without a key.
func TestMetadata_IsNotPublished(t *testing.T) {
	t.Parallel()
	a := newBluesky(t, pds.Start(t))
	s := start(t, a.service())
	connector, form := a.form()
	channel := s.connect(t, connector, form)
	small, big := fixture.Photo(120, 80), fixture.Photo(2400, 1600)
	if len(big) <= 1_000_000 {
		t.Fatalf("the large photo has only %d bytes", len(big))
	}
	for _, raw := range [][]byte{small, big} {
		id := s.create(t, "now", time.Now(), channel, []part{{text: "a photo", image: raw, alt: "Photo"}})
		if got := s.awaitEnd(t, id, time.Now().Add(patience)); got.State != "PUBLISHED" {
			t.Fatalf("got %v, want it published", got)
		}
	}
	fitted, err := filepicture.Fit(t.Context(), bytes.NewReader(without(t, big)), filepicture.Spec{MaxBytes: 1_000_000, MaxSide: 2000})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(fitted.Bytes, []byte(fixture.Camera)) || fitted.Width > fitted.Height {
		t.Error("the smaller picture names the camera or lies on its side")
	}
	there := a.posts(t)
	for i, want := range [][]byte{without(t, small), fitted.Bytes} {
		if len(there) != 2 || len(there[i].images) != 1 || there[i].images[0] != (picture{sum: sum(want), alt: "Photo"}) {
			t.Errorf("post %d: got %+v, want the photo without metadata", i, there)
		}
	}
	file := s.upload(t, "photo.jpg", small)
	address, err := url.Parse(file["path"].(string))
	if err != nil {
		t.Fatal(err)
	}
	if served := s.ask(t, http.MethodGet, address.Path, nil).Body; served != string(without(t, small)) {
		t.Errorf("%s is answered with %d bytes; want the photo without metadata", address, len(served))
	}
	original := s.ask(t, http.MethodGet, "/originals/"+file["id"].(string), nil, "Authorization", s.key)
	if original.Body != string(small) {
		t.Errorf("the original has %d bytes, want the %d that were uploaded", len(original.Body), len(small))
	}
}

// without returns a photo as it should be published, without metadata.
func without(t *testing.T, raw []byte) []byte {
	t.Helper()
	scanner, err := metadata.NewScanner("jpg")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := scanner.Write(raw); err != nil {
		t.Fatal(err)
	}
	edits, err := scanner.Edits()
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(metadata.Without(inMemory{bytes.NewReader(raw)}, edits))
	if err != nil || bytes.Contains(out, []byte(fixture.Camera)) || bytes.Contains(out, []byte("GPS")) {
		t.Fatalf("the photo still names the camera or the place, %v", err)
	}
	return out
}

// inMemory is a blob.File in memory.
type inMemory struct{ *bytes.Reader }

func (m inMemory) Size() int64 { return m.Reader.Size() }

func (inMemory) Close() error { return nil }
