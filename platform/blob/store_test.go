package blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"crier/platform/blob"
	"crier/platform/fault"
	"crier/tests/s3test"
)

func newDisk(t *testing.T) blob.Store {
	t.Helper()
	d, err := blob.NewDisk(filepath.Join(t.TempDir(), "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func newS3(t *testing.T) blob.Store { return s3At(t, s3test.Config(s3test.Start(t))) }

func s3At(t *testing.T, cfg blob.S3Config) *blob.S3 {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	s, err := blob.NewS3(cfg, transport, filepath.Join(t.TempDir(), "spool"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestStore_KeepsItsPromises runs every test with each implementation of Store.
func TestStore_KeepsItsPromises(t *testing.T) {
	t.Parallel()
	for kind, open := range map[string]func(*testing.T) blob.Store{"disk": newDisk, "s3": newS3} {
		for name, test := range map[string]func(*testing.T, blob.Store){
			"a file is read as it was written":            testRoundTrip,
			"a file seeks":                                testSeek,
			"what fails is not stored":                    testFailure,
			"a key that is not valid is refused":          testInvalid,
			"a list has every file":                       testList,
			"a list stops at an error":                    testListError,
			"cleaning keeps files":                        testClean,
			"random sequences match a map":                testRandom,
			"concurrent writes of a key never mix":        testConcurrent,
			"a store that works passes its check":         testCheck,
			"a call whose context has ended does nothing": testEnded,
		} {
			t.Run(kind+": "+name, func(t *testing.T) {
				t.Parallel()
				test(t, open(t))
			})
		}
	}
}

func write(t *testing.T, s blob.Store, key, body string) {
	t.Helper()
	if n, err := s.Create(t.Context(), key, strings.NewReader(body)); err != nil || n != int64(len(body)) {
		t.Fatalf("%s: created with size %d and error %v, want size %d", key, n, err, len(body))
	}
}

func read(t *testing.T, s blob.Store, key string) (string, error) {
	t.Helper()
	f, err := s.Open(t.Context(), key)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(f)
	if int64(len(b)) != f.Size() {
		t.Errorf("Size returns %d, but %d bytes were read", f.Size(), len(b))
	}
	return string(b), errors.Join(err, f.Close())
}

func keys(t *testing.T, s blob.Store) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	err := s.List(t.Context(), func(page []blob.Entry) error {
		for _, e := range page {
			out[e.Key] = e.Size
			if age := time.Since(e.Stored); age < -time.Minute || age > time.Hour {
				t.Errorf("%s is listed as stored %v ago", e.Key, age)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func testRoundTrip(t *testing.T, s blob.Store) {
	for key, body := range map[string]string{"a": "x", "b.png": "yz", "org-1/2026/pic_1.jpg": strings.Repeat("long ", 1<<18)} {
		write(t, s, key, body)
		if got, err := read(t, s, key); err != nil || got != body {
			t.Fatalf("%s: read %d bytes with error %v, want %d", key, len(got), err, len(body))
		}
		write(t, s, key, body+"!")
		if got, err := read(t, s, key); err != nil || got != body+"!" {
			t.Fatalf("%s: read %d bytes of a replaced file with error %v, want %d", key, len(got), err, len(body)+1)
		}
		for range 2 {
			if err := s.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Open(t.Context(), key); !fault.Is(err, fault.NotFound) {
			t.Fatalf("open a deleted key: %v, want NotFound", err)
		}
	}
}

func testSeek(t *testing.T, s blob.Store) {
	body := strings.Repeat("0123456789", 50_000)
	write(t, s, "k", body)
	f, err := s.Open(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, v := range []struct {
		offset int64
		whence int
		want   string
	}{
		{offset: 4, whence: io.SeekStart, want: "456"}, {offset: -1, whence: io.SeekEnd, want: "9"},
		{offset: 0, whence: io.SeekStart, want: "012"}, {offset: 300_001, whence: io.SeekCurrent, want: "456"},
		{offset: 5, whence: io.SeekEnd, want: ""},
	} {
		if _, err := f.Seek(v.offset, v.whence); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(io.LimitReader(f, 3))
		if err != nil || string(got) != v.want {
			t.Errorf("after Seek(%d, %d): read %q with error %v, want %q", v.offset, v.whence, got, err, v.want)
		}
	}
	if _, err := f.Seek(-1, io.SeekStart); err == nil {
		t.Error("a seek before the beginning succeeds")
	}
}

func testFailure(t *testing.T, s blob.Store) {
	write(t, s, "k", "old")
	broken := errors.New("client went away")
	r := io.MultiReader(strings.NewReader("new"), readerFunc(func([]byte) (int, error) { return 0, broken }))
	if _, err := s.Create(t.Context(), "k", r); !errors.Is(err, broken) {
		t.Fatalf("got %v, want the error of the reader", err)
	}
	if got, err := read(t, s, "k"); err != nil || got != "old" {
		t.Fatalf("got %q and error %v, want %q", got, err, "old")
	}
	if got := keys(t, s); len(got) != 1 {
		t.Fatalf("the files are %v, want one", got)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func testInvalid(t *testing.T, s blob.Store) {
	for _, key := range []string{"", "..", "../outside", "a//b", "/a", ".hidden", "a/.b", "a b", "ä", strings.Repeat("a", 201)} {
		_, err := s.Create(t.Context(), key, strings.NewReader("x"))
		_, openErr := s.Open(t.Context(), key)
		for _, err := range []error{err, openErr, s.Delete(t.Context(), key)} {
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("%.40q: %v, want Invalid", key, err)
			}
		}
	}
}

func testList(t *testing.T, s blob.Store) {
	want := map[string]int64{}
	var all errgroup.Group
	all.SetLimit(32)
	for i := range 1203 { // more than one page
		key := fmt.Sprintf("org%d/f%d.x", i%7, i)
		if i%400 == 0 {
			key = fmt.Sprintf("top-%d", i)
		}
		want[key] = int64(i%5 + 1)
		all.Go(func() error {
			_, err := s.Create(t.Context(), key, strings.NewReader(strings.Repeat("x", i%5+1)))
			return err
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := keys(t, s); !maps.Equal(got, want) {
		t.Fatalf("%d files are listed, want %d", len(got), len(want))
	}
	err := s.List(t.Context(), func(page []blob.Entry) error {
		for _, e := range page {
			if err := s.Delete(t.Context(), e.Key); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := keys(t, s); len(got) > 0 {
		t.Fatalf("%d files are left after each was deleted as it was listed", len(got))
	}
}

func testListError(t *testing.T, s blob.Store) {
	write(t, s, "a/b", "x")
	stop := errors.New("stop")
	if err := s.List(t.Context(), func([]blob.Entry) error { return stop }); !errors.Is(err, stop) {
		t.Fatalf("got %v, want the error of visit", err)
	}
}

func testClean(t *testing.T, s blob.Store) {
	write(t, s, "a/b", "x")
	if err := s.Clean(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got, err := read(t, s, "a/b"); err != nil || got != "x" {
		t.Fatalf("got %q and error %v, want the file", got, err)
	}
}

func testRandom(t *testing.T, s blob.Store) {
	model := map[string]string{}
	names := []string{"a", "b", "d/a", "d/b", "d/e/f"}
	rapid.Check(t, func(rt *rapid.T) {
		key := rapid.SampledFrom(names).Draw(rt, "key")
		if rapid.Bool().Draw(rt, "create") {
			body := rapid.StringN(1, 40, -1).Draw(rt, "body")
			if _, err := s.Create(t.Context(), key, strings.NewReader(body)); err != nil {
				rt.Fatal(err)
			}
			model[key] = body
		} else {
			if err := s.Delete(t.Context(), key); err != nil {
				rt.Fatal(err)
			}
			delete(model, key)
		}
		if got, want := slices.Sorted(maps.Keys(keys(t, s))), slices.Sorted(maps.Keys(model)); !slices.Equal(got, want) {
			rt.Fatalf("the keys are %v, want %v", got, want)
		}
		for k, want := range model {
			if got, err := read(t, s, k); err != nil || got != want {
				rt.Fatalf("%s: got %q and error %v, want %q", k, got, err, want)
			}
		}
	})
}

func testConcurrent(t *testing.T, s blob.Store) {
	done := make(chan error)
	for i := range 8 {
		go func() {
			_, err := s.Create(t.Context(), "k", bytes.NewReader(bytes.Repeat([]byte{byte('a' + i)}, 100_000)))
			done <- err
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	got, err := read(t, s, "k")
	if err != nil || len(got) != 100_000 || strings.Trim(got, got[:1]) != "" {
		t.Fatalf("read %d bytes with error %v, want 100000 equal ones", len(got), err)
	}
}

func testCheck(t *testing.T, s blob.Store) {
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func testEnded(t *testing.T, s blob.Store) {
	write(t, s, "k", "old")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, created := s.Create(ctx, "k", strings.NewReader("new"))
	_, opened := s.Open(ctx, "k")
	for call, err := range map[string]error{
		"Create": created, "Open": opened, "Delete": s.Delete(ctx, "k"),
		"List": s.List(ctx, func([]blob.Entry) error { return nil }), "Clean": s.Clean(ctx, time.Now()),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want the error of the context", call, err)
		}
	}
	if got, err := read(t, s, "k"); err != nil || got != "old" {
		t.Fatalf("got %q and error %v, want %q", got, err, "old")
	}
}
