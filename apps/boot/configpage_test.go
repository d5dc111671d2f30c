package boot

import (
	"os"
	"strings"
	"testing"

	"crier/platform/env"
)

func TestConfigPage_MarkdownIsCurrent(t *testing.T) {
	t.Parallel()
	const path = "docs/self-hosting/configuration.md"
	got, err := os.ReadFile("../../" + path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != configPage() {
		t.Errorf("%s is stale: run `go run ./apps/crier config --markdown >%s` and commit it", path, path)
	}
}

func TestConfigPage_ListsEachVariableOnce(t *testing.T) {
	t.Parallel()
	page := configPage()
	for _, v := range env.Names(&Config{}) {
		if n := strings.Count(page, "\n| `"+v.Name+"` |"); n != 1 {
			t.Errorf("%s: got %d rows, want 1: add the variable to one of the sections in configpage.go", v.Name, n)
		}
		if v.Doc == "" || strings.Contains(v.Doc, "|") {
			t.Errorf("%s: got the doc tag %q, want a sentence without |", v.Name, v.Doc)
		}
	}
	known := len(env.Names(&Config{}))
	if rows := strings.Count(page, "\n| `"); rows != known {
		t.Errorf("got %d rows, want one for each of the %d variables", rows, known)
	}
}
