package arch

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestBinary_LinksOneMajorVersionOfEachModule: two major versions of a library double its code and
// the advisories to follow.
func TestBinary_LinksOneMajorVersionOfEachModule(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "crier/apps/crier").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	modules := strings.Fields(string(out))
	slices.Sort(modules)
	modules = slices.Compact(modules)
	if len(modules) < 30 {
		t.Fatalf("got %d modules from go list, want at least 30", len(modules))
	}
	majors := map[string][]string{}
	for _, m := range modules {
		majors[withoutMajor(m)] = append(majors[withoutMajor(m)], m)
	}
	for _, same := range majors {
		if len(same) > 1 {
			t.Errorf("the binary links %s, want one of them", strings.Join(same, " and "))
		}
	}
}

// withoutMajor returns a module's path without the major version at its end.
func withoutMajor(module string) string {
	at := strings.LastIndex(module, "/v")
	if at < 0 || strings.Trim(module[at+2:], "0123456789") != "" {
		return module
	}
	return module[:at]
}
