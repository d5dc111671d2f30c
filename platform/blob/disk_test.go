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
		t.Errorf("Size returns %d, but %d bytes were read", f.Size(), len(b))
	}
	return b, err
}

// names returns the keys of all files below dir and the number of partial files.
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

func TestDisk_CreateOpenDelete(t *testing.T) {
	t.Parallel()
	d, _ := newDisk(t)
	for key, body := range map[string]string{"a": "", "b.png": "x", "org-1/2026/pic_1.jpg": strings.Repeat("long ", 1<<18)} {
		size, err := d.Create(t.Context(), key, strings.NewReader(body))
		if err != nil || size != int64(len(body)) {
			t.Fatalf("%s: created with size %d and error %v, want size %d", key, size, err, len(body))
		}
		if got, err := read(t, d, key); err != nil || string(got) != body {
			t.Fatalf("%s: read %d bytes with error %v, want the %d that were created", key, len(got), err, len(body))
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
			t.Fatalf("open a deleted key: %v, want NotFound", err)
		}
		rest, err := io.ReadAll(open)
		if err := errors.Join(err, open.Close()); err != nil || string(rest) != body {
			t.Fatalf("read %d bytes of a file deleted while open with error %v, want %d", len(rest), err, len(body))
		}
	}
}

func TestDisk_RefusesInvalidKeys(t *testing.T) {
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
				t.Errorf("%.40q: %v, want Invalid", key, err)
			}
		}
	}
	if keys, partials := names(t, dir); len(keys)+partials != 0 {
		t.Errorf("%v and %d partial files are left, want none", keys, partials)
	}
}

func TestDisk_RefusesSymlinksOutOfTheFolder(t *testing.T) {
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
		t.Errorf("the other folder has %v with error %v, want one file", left, err)
	}
}

func TestDisk_KeyInUseAsFolderOrFileIsConflict(t *testing.T) {
	t.Parallel()
	d, dir := newDisk(t)
	if _, err := d.Create(t.Context(), "a/b", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "a/b/c"} {
		if _, err := d.Create(t.Context(), key, strings.NewReader("y")); !fault.Is(err, fault.Conflict) {
			t.Errorf("create %s: %v, want Conflict", key, err)
		}
		if _, err := d.Open(t.Context(), key); !fault.Is(err, fault.NotFound) {
			t.Errorf("open %s: %v, want NotFound", key, err)
		}
		if err := d.Delete(t.Context(), key); err != nil {
			t.Errorf("delete %s: %v", key, err)
		}
	}
	if b, err := read(t, d, "a/b"); err != nil || string(b) != "x" {
		t.Errorf("got %q and error %v, want %q", b, err, "x")
	}
	if _, partials := names(t, dir); partials != 0 {
		t.Errorf("%d partial files are left, want none", partials)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestCreate_FailureKeepsTheOldBytes(t *testing.T) {
	t.Parallel()
	d, dir := newDisk(t)
	if _, err := d.Create(t.Context(), "k", strings.NewReader("old")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("client went away")
	_, err := d.Create(t.Context(), "k", io.MultiReader(strings.NewReader("new"), failing{err: broken}))
	if !errors.Is(err, broken) {
		t.Fatalf("got %v, want the error of the reader", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Create(ctx, "k", strings.NewReader("new")); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want the context's error", err)
	}
	if b, err := read(t, d, "k"); err != nil || string(b) != "old" {
		t.Fatalf("got %q and error %v, want %q", b, err, "old")
	}
	if keys, partials := names(t, dir); len(keys) != 1 || partials != 0 {
		t.Fatalf("%v and %d partial files are left, want the old file", keys, partials)
	}
}

func TestCreate_KeyIsInvisibleUntilComplete(t *testing.T) {
	t.Parallel()
	d, dir := newDisk(t)
	r, w := io.Pipe()
	done := make(chan error)
	go func() { _, err := d.Create(t.Context(), "k", r); done <- err }()
	if _, err := w.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	if keys, partials := names(t, dir); len(keys) != 0 || partials != 1 {
		t.Fatalf("%v and %d partial files while it is written, want one partial file", keys, partials)
	}
	if err := errors.Join(w.Close(), <-done); err != nil {
		t.Fatal(err)
	}
	if keys, partials := names(t, dir); len(keys) != 1 || partials != 0 {
		t.Fatalf("%v and %d partial files after the end, want the file", keys, partials)
	}
}

func TestNewDisk_DeletesOldPartialFiles(t *testing.T) {
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
		t.Errorf("the old file: %v, want that it does not exist", err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Errorf("the young file: %v", err)
	}
}

func TestCreate_ConcurrentCallsNeverMix(t *testing.T) {
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
		t.Fatalf("read %d bytes with error %v, want 100000 equal ones", len(b), err)
	}
}

func TestDisk_RandomSequencesMatchAMap(t *testing.T) {
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
			rt.Fatalf("the keys are %v, want %v, and %d partial files, want none", got, want, partials)
		}
		for k, want := range model {
			if b, err := read(t, d, k); err != nil || string(b) != want {
				rt.Fatalf("%s: got %q and error %v, want %q", k, b, err, want)
			}
		}
	})
}

// TestDisk_MissingFolderIsUnavailable: an unmounted or lost volume must not look like a missing
// file.
func TestDisk_MissingFolderIsUnavailable(t *testing.T) {
	t.Parallel()
	d, dir := newDisk(t)
	if _, err := d.Create(t.Context(), "a/k", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Open(t.Context(), "a/other"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a missing file: got %v, want NotFound", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	_, opened := d.Open(t.Context(), "a/k")
	_, created := d.Create(t.Context(), "b", strings.NewReader("x"))
	for what, err := range map[string]error{"Open": opened, "Create": created, "Check": d.Check(t.Context())} {
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != fault.Unavailable || !strings.HasPrefix(f.Message, "The files cannot be reached") {
			t.Errorf("%s: got %v, want Unavailable that names the files", what, err)
		}
	}
}
