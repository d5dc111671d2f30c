package pds

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func fillOne(tmp string) error {
	return os.WriteFile(filepath.Join(tmp, "whole"), []byte("yes"), 0o644)
}

func TestSettle(t *testing.T) {
	t.Parallel()

	t.Run("concurrent installs fill the folder once", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(t.TempDir(), "deep", "pds")
		var fills atomic.Int64
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				err := settle(t.Context(), dir, func(tmp string) error {
					fills.Add(1)
					return fillOne(tmp)
				})
				if err != nil || !exists(filepath.Join(dir, "whole")) {
					t.Errorf("got %v or an incomplete folder", err)
				}
			})
		}
		all.Wait()
		if fills.Load() != 1 {
			t.Fatalf("got %d fills, want 1", fills.Load())
		}
	})

	t.Run("leftovers of a killed install are removed", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(t.TempDir(), "pds")
		if err := os.MkdirAll(filepath.Join(dir+".tmp-123", "half"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := settle(t.Context(), dir, fillOne); err != nil {
			t.Fatal(err)
		}
		if !exists(filepath.Join(dir, "whole")) || exists(dir+".tmp-123") {
			t.Fatal("want a complete folder and no leftovers")
		}
	})

	t.Run("a failed install leaves nothing and returns its error", func(t *testing.T) {
		t.Parallel()
		parent := t.TempDir()
		dir := filepath.Join(parent, "pds")
		broken := errors.New("broken")
		err := settle(t.Context(), dir, func(tmp string) error {
			return errors.Join(fillOne(tmp), broken)
		})
		left, globErr := filepath.Glob(filepath.Join(parent, "pds*"))
		if !errors.Is(err, broken) || globErr != nil || strings.Join(left, " ") != dir+".lock" {
			t.Fatalf("got %v, left %v %v, want only the lock file left", err, left, globErr)
		}
		if err := settle(t.Context(), dir, fillOne); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("waiting for the lock ends with the context", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(t.TempDir(), "pds")
		unlock, err := lock(t.Context(), dir+".lock")
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := settle(ctx, dir, fillOne); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	})
}

func TestPatch(t *testing.T) {
	t.Parallel()
	from := filepath.Join(t.TempDir(), "node_object_wrap.h")
	if err := os.WriteFile(from, []byte("a\n    AddCleanupHook();\nb\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := patch(from, from+".out"); !strings.Contains(fmt.Sprint(err), "RemoveCleanupHook") {
		t.Fatalf("got %v for a changed header, want an error that names the call", err)
	}
}

func TestManifest_PinsExactVersionsWithoutHosts(t *testing.T) {
	t.Parallel()
	text, err := recipe.ReadFile("package.json")
	if err != nil {
		t.Fatal(err)
	}
	var m struct{ Dependencies, OptionalDependencies map[string]string }
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	exact := regexp.MustCompile(`^\d+\.\d+\.\d+$`)
	for _, deps := range []map[string]string{m.Dependencies, m.OptionalDependencies} {
		if len(deps) == 0 {
			t.Error("no dependencies")
		}
		for name, version := range deps {
			if !exact.MatchString(version) {
				t.Errorf("got version %q of %s, want an exact one", version, name)
			}
		}
	}
	lockfile, err := recipe.ReadFile("package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(lockfile), `"resolved"`) {
		t.Error("the lockfile names a registry: write it with npm's --omit-lockfile-registry-resolved")
	}
}
