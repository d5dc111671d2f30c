package arch

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// unraced maps each package that shares memory between goroutines, but runs without the race
// detector in the gate, to the reason. `ops/test all` runs them with it.
var unraced = map[string]string{
	"apps/sim/sandbox":                 "a simulator for tests; one mutex guards it",
	"platform/migrations":              "runs alone, before anything is served",
	"publishing/connector/bluesky":     "a client of one request",
	"publishing/connector/conformance": "test code",
	"publishing/connector/nostr":       "a client of one request",
}

// shares reports whether a file starts goroutines or guards memory that several goroutines use.
func shares(f file) bool {
	for _, i := range f.imports {
		if i.path == "sync" || i.path == "sync/atomic" || strings.HasPrefix(i.path, "golang.org/x/sync/") {
			return true
		}
	}
	return slices.ContainsFunc(f.uses, func(u use) bool { return u.path == "" && u.name == "go" })
}

// raceRule reports packages that need the race detector and are not in raced.
func raceRule(t tree, raced []string) (out []violation) {
	for _, f := range t.files {
		if f.test || inFolder(f.dir(), "tests") || inFolder(f.dir(), raced...) || unraced[f.dir()] != "" || !shares(f) {
			continue
		}
		out = append(out, newViolation(f, 1, f.dir(), "%s shares memory between goroutines: add it to raced in ops/test", f.dir()))
	}
	return out
}

func TestRaced_HasEveryPackageThatSharesMemory(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("../../ops/test")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?m)^raced='([^']*)'`).FindSubmatch(script)
	if list == nil {
		t.Fatal("ops/test has no list of folders named raced")
	}
	raced := strings.Fields(string(list[1]))
	for _, dir := range raced {
		if _, err := os.Stat("../../" + dir); err != nil {
			t.Errorf("raced in ops/test has a folder that does not exist: %v", err)
		}
	}
	found, err := load("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range raceRule(found, raced) {
		t.Error(v.message)
	}
	for dir := range unraced {
		if !slices.ContainsFunc(found.files, func(f file) bool { return f.dir() == dir && !f.test && shares(f) }) {
			t.Errorf("%s needs no exception", dir)
		}
	}
}

func TestRaceRule_ReportsGoroutinesAndLocks(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"a go statement": "package p\nfunc f() { go f() }\n",
		"a lock":         "package p\nimport \"sync\"\nvar mu sync.Mutex\n",
		"an error group": "package p\nimport \"golang.org/x/sync/errgroup\"\nvar g errgroup.Group\n",
	} {
		var made tree
		if err := made.add("publishing/tag/tag.go", body); err != nil {
			t.Fatal(err)
		}
		if len(raceRule(made, []string{"publishing/post"})) != 1 {
			t.Errorf("%s in a package that is not in raced is not reported", name)
		}
		if len(raceRule(made, []string{"publishing/tag"})) != 0 {
			t.Errorf("%s in a package of raced is reported", name)
		}
	}
}
