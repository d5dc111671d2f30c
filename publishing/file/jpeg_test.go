package file_test

import (
	"bytes"
	"image"
	"image/jpeg"
	"io"
	"slices"
	"testing"

	"crier/platform/fault"
)

// Cameras write markers that software encoders do not write.
func TestSniff_AcceptsJPEGMarkersOfCameras(t *testing.T) {
	t.Parallel()
	plain := picture(t, func(w io.Writer, m image.Image) error { return jpeg.Encode(w, m, nil) })
	body, end := plain[:len(plain)-2], plain[len(plain)-2:]
	var restarts []byte
	for code := byte(0xD0); code <= 0xD7; code++ {
		// The bytes after the marker are scan data, not a length.
		restarts = append(restarts, 0xFF, code, 0x12, 0x34)
	}
	for name, whole := range map[string][]byte{
		"one fill byte before the end":          slices.Concat(body, []byte{0xFF}, end),
		"two fill bytes before the end":         slices.Concat(body, []byte{0xFF, 0xFF}, end),
		"fill bytes before the first segment":   slices.Concat(plain[:2], []byte{0xFF, 0xFF}, plain[2:]),
		"restart markers in the scan":           slices.Concat(body, restarts, end),
		"a restart marker right before the end": slices.Concat(body, []byte{0xFF, 0xD0}, end),
		"a temporary marker in the scan":        slices.Concat(body, []byte{0xFF, 0x01, 0x12, 0x34}, end),
		"0xFF as scan data":                     slices.Concat(body, []byte{0xFF, 0x00, 0x12, 0x34}, end),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := reads("a.jpg", bytes.NewReader(whole)); err != nil || !bytes.Equal(got, whole) {
				t.Errorf("read %d bytes with error %v, want %d", len(got), err, len(whole))
			}
			if _, err := reads("a.jpg", bytes.NewReader(whole[:len(whole)-1])); !fault.Is(err, fault.Invalid) {
				t.Errorf("without its last byte: %v, want Invalid", err)
			}
		})
	}
}
