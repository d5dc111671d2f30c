//go:build !race

package media_test

import (
	"runtime"
	"strings"
	"testing"

	"crier/tests/edgetest"
)

// Not parallel: it measures what the whole process allocates.
func TestUpload_LongHeadersAreNotReadIntoMemory(t *testing.T) {
	s := edgetest.New(t, nil)
	for name, headers := range map[string]string{
		"no header":   strings.Repeat("\x01", 9<<20),
		"a long name": `Content-Disposition: form-data; name="file"; filename="` + strings.Repeat("a", 9<<20) + `"`,
	} {
		body := uploadOf(headers, 0)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a := s.Call(t, "POST", "/public/v1/upload", body, "Authorization", edgetest.APIKey, "Content-Type", "multipart/form-data; boundary=b")
		runtime.ReadMemStats(&after)
		if a.Status != 400 {
			t.Errorf("%s: got %d, want 400", name, a.Status)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
			t.Errorf("%s: %d bytes were allocated, want at most %d", name, n, 4<<20)
		}
	}
}
