package arch

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Two majors of one library in one binary are twice the code and twice the advisories to follow.
func TestTheBinaryLinksOneMajorOfEachModule(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "crier/apps/crier").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	modules := strings.Fields(string(out))
	slices.Sort(modules)
	modules = slices.Compact(modules)
	if len(modules) < 30 {
		t.Fatalf("the binary is said to link %d modules only", len(modules))
	}
	majors := map[string][]string{}
	for _, m := range modules {
		majors[withoutMajor(m)] = append(majors[withoutMajor(m)], m)
	}
	for _, same := range majors {
		if len(same) > 1 {
			t.Errorf("the binary links %s", strings.Join(same, " and "))
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
