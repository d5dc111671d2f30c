package suite

import (
	"os"
	"slices"
	"sync"
	"testing"
)

func TestOnce_StartsForFirstTest(t *testing.T) {
	t.Parallel()
	starts := 0
	shared := Once(func(testing.TB) int { starts++; return starts })
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if got := shared(t); got != 1 {
				t.Errorf("got the value %d, want that of the first start", got)
			}
		})
	}
	all.Wait()
}

func TestTB_CleansUpInReverse(t *testing.T) {
	t.Parallel()
	b := newTB()
	dir := b.TempDir()
	var order []int
	for i := range 3 {
		b.Cleanup(func() { order = append(order, i) })
	}
	b.Cleanup(func() { b.Cleanup(func() { order = append(order, 3) }) })
	b.clean()
	if !slices.Equal(order, []int{2, 1, 0, 3}) {
		t.Errorf("got the cleanups in the order %v, want 2 1 0 3: the last was added by another one", order)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("got the folder %s after the end: %v", dir, err)
	}
}

func TestTB_FailsProcess(t *testing.T) {
	t.Parallel()
	b := newTB()
	after := false
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.Fatal("this message belongs to a test of the package suite")
		after = true
	}()
	<-ended
	if !b.Failed() || after {
		t.Errorf("got failed %v and what comes after Fatal executed %v, want true and false", b.Failed(), after)
	}
}
