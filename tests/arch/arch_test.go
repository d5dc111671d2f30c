package arch

import (
	"strings"
	"sync"
	"testing"
)

var loadTree = sync.OnceValues(func() (tree, error) { return load("../..") })

func TestTree_FollowsRules(t *testing.T) {
	t.Parallel()
	all, err := loadTree()
	if err != nil {
		t.Fatal(err)
	}
	if len(all.files) < 100 {
		t.Fatalf("found %d Go files, want at least 100: is the root wrong?", len(all.files))
	}
	violations, stale := check(all, exceptions)
	for name := range rules {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			for _, f := range violations[name] {
				t.Errorf("got a violation of the rule: %s", f.message)
			}
		})
	}
	for _, e := range stale {
		t.Errorf("the exception for %s in %s is not needed: remove it", e.what, e.dir)
	}
}

func TestExceptions_HaveReasons(t *testing.T) {
	t.Parallel()
	for _, e := range exceptions {
		if len(strings.Fields(e.why)) < 3 {
			t.Errorf("the exception for %s in %s needs a reason", e.what, e.dir)
		}
	}
}
