//go:build !race

package picture

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"

	"crier/tests/fixture"
)

var child = flag.String("picture.child", "", "run Fit on this file and print the peak of memory; \"none\" for no file")

// The test runs Fit on the largest images that it accepts, in a process with the service's GC
// percentage. The race detector keeps shadow memory, so this file is not built with it.
func TestFit_PeakMemoryIsBounded(t *testing.T) {
	if *child != "" {
		debug.SetGCPercent(400)
		if *child != "none" {
			f, err := os.Open(*child)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, err := Fit(t.Context(), f, small); err != nil {
					t.Fatal(err)
				}
				if _, err := f.Seek(0, io.SeekStart); err != nil {
					t.Fatal(err)
				}
			}
		}
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(status), "VmHWM:")
		goal := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
		metrics.Read(goal)
		fmt.Println("peak", strings.Fields(after)[0], goal[0].Value.Uint64()>>10)
		return
	}
	t.Parallel()
	idle, _ := peakOf(t, "none")
	for name, raw := range map[string][]byte{
		"jpeg of 40 million pixels in full color": fixture.BlankJPEG(8000, 5000, false, 0x11, "\x01\x02\x03"),
		"progressive jpeg of 17 million pixels":   fixture.BlankJPEG(5000, 3400, true, 0x22, "\x01\x02\x03"),
		"png of 33.5 million pixels":              blankPNG(t, 6700, 5000, 8, false),
		"png of 16 bits, 16.8 million pixels":     blankPNG(t, 4094, 4094, 16, false),
		"interlaced png of 16.7 million pixels":   blankPNG(t, 4088, 4088, 8, true),
		"png one pixel high":                      blankPNG(t, 11_184_808, 1, 8, false),
		"png one pixel wide":                      blankPNG(t, 1, 11_184_808, 8, false),
	} {
		file := filepath.Join(t.TempDir(), "picture")
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		peak, goal := peakOf(t, file)
		more := peak - idle
		t.Logf("%s: %d MB above an idle process; afterwards the heap may grow to %d MB", name, more>>10, goal>>10)
		if h, err := Inspect(bytes.NewReader(raw)); err != nil || h.decoded < MaxDecoded/10*8 {
			t.Errorf("%s: got %+v and error %v, want at least 80 %% of MaxDecoded", name, h, err)
		}
		if more>>10 > 180 {
			t.Errorf("%s: %d MB above an idle process, want at most 180", name, more>>10)
		}
		if goal>>10 > 100 {
			t.Errorf("%s: afterwards the heap may grow to %d MB, want at most 100", name, goal>>10)
		}
	}
}

// peakOf returns the peak memory of a process and its heap goal at the end, in KB.
func peakOf(t *testing.T, file string) (peak, goal int) {
	t.Helper()
	cmd := exec.CommandContext(
		t.Context(), os.Args[0], "-test.run=^TestFit_PeakMemoryIsBounded$", "-picture.child="+file,
	)
	out, err := cmd.CombinedOutput()
	_, figures, found := strings.Cut(string(out), "peak ")
	if err != nil || !found {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := fmt.Sscan(figures, &peak, &goal); err != nil {
		t.Fatal(err)
	}
	return peak, goal
}
