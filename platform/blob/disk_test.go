package blob

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"crier/platform/fault"
)

func newDisk(t *testing.T) (*Disk, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "blobs")
	d, err := NewDisk(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d, dir
}

func read(t *testing.T, s Store, key string) ([]byte, error) {
	t.Helper()
	f, err := s.Open(t.Context(), key)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if int64(len(b)) != f.Size() {
		t.Errorf("size %d, read %d", f.Size(), len(b))
	}
	return b, err
}

// names lists every file under dir but the folder of partial files, and counts those.
func names(t *testing.T, dir string) (keys []string, partials int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, p)
		if err == nil && !e.IsDir() {
			if strings.HasPrefix(rel, partial) {
				partials++
			} else {
				keys = append(keys, rel)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys, partials
}

func TestCreateOpenDelete(t *testing.T) {
	t.Parallel()
	d, _ := newDisk(t)
	for key, body := range map[string]string{"a": "", "b.png": "x", "org-1/2026/pic_1.jpg": strings.Repeat("long ", 1<<18)} {
		size, err := d.Create(t.Context(), key, strings.NewReader(body))
		if err != nil || size != int64(len(body)) {
			t.Fatal(size, err)
		}
		if got, err := read(t, d, key); err != nil || string(got) != body {
			t.Fatalf("%s: %d bytes, %v", key, len(got), err)
		}
		open, err := d.Open(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := d.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := d.Open(t.Context(), key); !fault.Is(err, fault.NotFound) {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(open)
		if err = errors.Join(err, open.Close()); err != nil || string(rest) != body {
			t.Fatalf("an open file must outlive its key: %v", err)
		}
	}
}

func TestFileSeeksAndReadsAt(t *testing.T) {
	t.Parallel()
	d, _ := newDisk(t)
	if _, err := d.Create(t.Context(), "k", strings.NewReader("0123456789")); err != nil {
		t.Fatal(err)
	}
	f, err := d.Open(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	two := make([]byte, 2)
	if _, err := f.ReadAt(two, 4); err != nil || string(two) != "45" {
		t.Fatal(string(two), err)
	}
	if _, err := f.Seek(-1, io.SeekEnd); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(f); err != nil || string(b) != "9" {
		t.Fatal(string(b), err)
	}
}

func TestBadKeysAreRefusedEverywhere(t *testing.T) {
	t.Parallel()
	d, dir := newDisk(t)
	outside := filepath.Join(filepath.Dir(dir), "outside")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		"", ".", "..", "../outside", "a/../../outside", "/etc/passwd", outside, "a//b", "a/", "/a", "a/./b", ".hidden", ".partial/x", "a/.b",
		"%2e%2e/outside", "..%2foutside", "%2e%2e%2foutside", `..\outside`, `C:\x`, "a\x00b", "a b", "ä", "a\nb", "a:b", "~", "*",
		strings.Repeat("a", 201), strings.Repeat("a/", 600) + "a",
	} {
		_, err := d.Create(t.Context(), key, strings.NewReader("x"))
		_, oerr := d.Open(t.Context(), key)
		for _, err := range []error{err, oerr, d.Delete(t.Context(), key)} {
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("%.40q: %v", key, err)
			}
		}
	}
	if keys, partials := names(t, dir); len(keys)+partials != 0 {
		t.Errorf("left %v and %d partial files", keys, partials)
	}
}

func TestSymlinkOutIsRefused(t *testing.T) {
	t.Parallel()
	d, dir := newDisk(t)
	target := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(target, "f"), []byte("secret"), 0o600), os.Symlink(target, filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Open(t.Context(), "link/f"); err == nil {
		t.Error("read through a link")
	}
	if _, err := d.Create(t.Context(), "link/g", strings.NewReader("x")); err == nil {
		t.Error("wrote through a link")
	}
	if err := d.Delete(t.Context(), "link/f"); err == nil {
		t.Error("deleted through a link")
	}
	if left, err := os.ReadDir(target); err != nil || len(left) != 1 {
		t.Errorf("%v %v", left, err)
	}
}

func TestFolderAndFileDoNotMix(t *testing.T) {
	t.Parallel()
	d, dir := newDisk(t)
	if _, err := d.Create(t.Context(), "a/b", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "a/b/c"} {
		if _, err := d.Create(t.Context(), key, strings.NewReader("y")); !fault.Is(err, fault.Conflict) {
			t.Errorf("create %s: %v", key, err)
		}
		if _, err := d.Open(t.Context(), key); !fault.Is(err, fault.NotFound) {
			t.Errorf("open %s: %v", key, err)
		}
		if err := d.Delete(t.Context(), key); err != nil {
			t.Errorf("delete %s: %v", key, err)
		}
	}
	if b, err := read(t, d, "a/b"); err != nil || string(b) != "x" {
		t.Errorf("%q %v", b, err)
	}
	if _, partials := names(t, dir); partials != 0 {
		t.Errorf("%d partial files", partials)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestFailedCreateLeavesTheOldBytes(t *testing.T) {
	t.Parallel()
	d, dir := newDisk(t)
	if _, err := d.Create(t.Context(), "k", strings.NewReader("old")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("client went away")
	_, err := d.Create(t.Context(), "k", io.MultiReader(strings.NewReader("new"), failing{broken}))
	if !errors.Is(err, broken) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Create(ctx, "k", strings.NewReader("new")); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if b, err := read(t, d, "k"); err != nil || string(b) != "old" {
		t.Fatalf("%q %v", b, err)
	}
	if keys, partials := names(t, dir); len(keys) != 1 || partials != 0 {
		t.Fatalf("%v and %d partial files", keys, partials)
	}
}

func TestNothingIsVisibleBeforeTheEnd(t *testing.T) {
	t.Parallel()
	d, dir := newDisk(t)
	r, w := io.Pipe()
	done := make(chan error)
	go func() { _, err := d.Create(t.Context(), "k", r); done <- err }()
	if _, err := w.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	if keys, partials := names(t, dir); len(keys) != 0 || partials != 1 {
		t.Fatalf("%v and %d partial files", keys, partials)
	}
	if err := errors.Join(w.Close(), <-done); err != nil {
		t.Fatal(err)
	}
	if keys, partials := names(t, dir); len(keys) != 1 || partials != 0 {
		t.Fatalf("%v and %d partial files", keys, partials)
	}
}

func TestOldPartialFilesAreSwept(t *testing.T) {
	t.Parallel()
	_, dir := newDisk(t)
	old, young := filepath.Join(dir, partial, "old"), filepath.Join(dir, partial, "young")
	long := time.Unix(1000, 0)
	if err := errors.Join(os.WriteFile(old, nil, 0o600), os.WriteFile(young, nil, 0o600), os.Chtimes(old, long, long)); err != nil {
		t.Fatal(err)
	}
	d, err := NewDisk(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("old one stays: %v", err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Errorf("young one is gone: %v", err)
	}
}

func TestConcurrentCreatesNeverMix(t *testing.T) {
	t.Parallel()
	d, _ := newDisk(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if _, err := d.Create(t.Context(), "k", bytes.NewReader(bytes.Repeat([]byte{byte('a' + i)}, 100_000))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	b, err := read(t, d, "k")
	if err != nil || len(b) != 100_000 || len(bytes.Trim(b, string(b[:1]))) != 0 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
}

func TestRandomSequencesMatchAMap(t *testing.T) {
	t.Parallel()
	d, dir := newDisk(t)
	model := map[string]string{}
	keys := []string{"a", "b", "d/a", "d/b", "d/e/f"}
	rapid.Check(t, func(rt *rapid.T) {
		key := rapid.SampledFrom(keys).Draw(rt, "key")
		if rapid.Bool().Draw(rt, "create") {
			body := rapid.StringN(0, 40, -1).Draw(rt, "body")
			if _, err := d.Create(t.Context(), key, strings.NewReader(body)); err != nil {
				rt.Fatal(err)
			}
			model[key] = body
		} else {
			if err := d.Delete(t.Context(), key); err != nil {
				rt.Fatal(err)
			}
			delete(model, key)
		}
		got, partials := names(t, dir)
		if want := slices.Sorted(maps.Keys(model)); !slices.Equal(slices.Sorted(slices.Values(got)), want) || partials != 0 {
			rt.Fatalf("%v, want %v", got, want)
		}
		for k, want := range model {
			if b, err := read(t, d, k); err != nil || string(b) != want {
				rt.Fatalf("%s: %q %v", k, b, err)
			}
		}
	})
}
