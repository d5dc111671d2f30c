// Package suite lets the tests in a process share what is slow to start, such as a service.
package suite

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// Once returns a function that calls start for the first test that needs its value, and returns
// that value to all tests. If start fails, all tests that call the function fail.
//
// The TB passed to start lasts until all tests have ended. It has only the methods defined in this
// package. A failure reported to it belongs to no test: it is printed and fails the process.
//
// TestMain of the package must call Run.
func Once[T any](start func(testing.TB) T) func(testing.TB) T {
	var value T
	var once sync.Once
	started := false
	return func(t testing.TB) T {
		t.Helper()
		once.Do(func() {
			value = start(whole)
			started = true
		})
		if !started {
			t.Fatal("what the tests share did not start")
		}
		return value
	}
}

// Run runs the tests, ends what they share, and returns the exit code.
func Run(m *testing.M) int {
	if err := suppressRaces(); err != nil {
		fmt.Fprintln(os.Stderr, "suppress the races of libraries:", err)
		return 1
	}
	code := m.Run()
	whole.stop()
	whole.clean()
	if whole.Failed() {
		return max(code, 1)
	}
	return code
}

// whole is the TB of what all tests share.
var whole = newTB()

// tb is a testing.TB that lasts until all tests have ended. Methods that are not defined here
// panic.
type tb struct {
	testing.TB
	ctx  context.Context
	stop context.CancelFunc

	mu       sync.Mutex
	cleanups []func()
	failed   bool
}

func newTB() *tb {
	ctx, stop := context.WithCancel(context.Background())
	return &tb{ctx: ctx, stop: stop}
}

func (b *tb) clean() {
	for {
		b.mu.Lock()
		all := b.cleanups
		b.cleanups = nil
		b.mu.Unlock()
		if len(all) == 0 {
			return
		}
		for _, f := range slices.Backward(all) {
			f()
		}
	}
}

func (b *tb) Cleanup(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cleanups = append(b.cleanups, f)
}

func (b *tb) Context() context.Context { return b.ctx }

func (b *tb) TempDir() string {
	dir, err := os.MkdirTemp("", "crier-suite-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			b.Errorf("remove the folder: %v", err)
		}
	})
	return dir
}

func (b *tb) Helper() {}

func (b *tb) Logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "shared by the tests: "+format+"\n", args...)
}

func (b *tb) Errorf(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed = true
	b.Logf(format, args...)
}

// Fatalf also ends the goroutine, and thereby the test that needed what could not be started.
func (b *tb) Fatalf(format string, args ...any) {
	b.Errorf(format, args...)
	runtime.Goexit()
}

func (b *tb) Fatal(args ...any) { b.Fatalf("%s", fmt.Sprint(args...)) }

func (b *tb) Failed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed
}
