package arch

import (
	"strings"
	"sync"
	"testing"
)

var whole = sync.OnceValues(func() (tree, error) { return load("../..") })

func TestTheTreeObeys(t *testing.T) {
	t.Parallel()
	all, err := whole()
	if err != nil {
		t.Fatal(err)
	}
	if len(all.files) < 100 {
		t.Fatalf("only %d Go files were found: the rules looked at the wrong place", len(all.files))
	}
	faults, stale := judge(all, exceptions)
	for name := range rules {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			for _, f := range faults[name] {
				t.Error(f.message)
			}
		})
	}
	for _, e := range stale {
		t.Errorf("the exception for %s in %s excuses nothing any more: remove it", e.what, e.dir)
	}
}

func TestEveryExceptionHasAReason(t *testing.T) {
	t.Parallel()
	all, err := whole()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range exceptions {
		if len(strings.Fields(e.why)) < 3 {
			t.Errorf("%s in %s: say why", e.what, e.dir)
		}
	}
	for name, why := range longFiles {
		if len(strings.Fields(why)) < 3 {
			t.Errorf("%s: say why it is long", name)
		}
		for _, f := range all.files {
			if f.path == name && f.lines <= maxLines {
				t.Errorf("%s is not long any more: remove it from the list", name)
			}
		}
	}
}
