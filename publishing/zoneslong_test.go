//go:build long

package publishing_test

import (
	"archive/zip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"crier/tenancy"
)

// allZones returns the zones of the database that comes with Go, under one name if several are the
// same. It leaves out Factory, which is not a place.
func allZones(t *testing.T) (names []string) {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	same := map[uint32]bool{} // by the checksum of their rules
	for _, f := range archive.File {
		if f.Name == "Factory" || strings.HasSuffix(f.Name, "/") {
			continue
		}
		if _, err := tenancy.LoadZone(f.Name); err != nil {
			t.Error(err)
		}
		if !same[f.CRC32] {
			names = append(names, f.Name)
		}
		same[f.CRC32] = true
	}
	if len(names) < 300 {
		t.Fatalf("the database has %d different zones, want all", len(names))
	}
	return names
}

func TestZones_SlotsAndRepeatsOfTenYearsInEveryZone(t *testing.T) {
	t.Parallel()
	for _, name := range allZones(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkZone(t, name)
		})
	}
}
