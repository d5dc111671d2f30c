//go:build !race

package telemetry

import (
	"errors"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"
)

// Not parallel: the test measures the allocations of the whole process.
func TestLog_CutsLongValuesBeforeQuoting(t *testing.T) {
	long := strings.Repeat("\x01", 9<<20)
	for name, value := range map[string]any{"a string": long, "an error": errors.New(long), "a list": []string{long}} {
		log, err := NewLogger(io.Discard, "json", slog.LevelInfo)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		log.Info("m", "a", value)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("%s of %d bytes: %d bytes were allocated, want at most %d", name, len(long), n, 1<<20)
		}
	}
}
