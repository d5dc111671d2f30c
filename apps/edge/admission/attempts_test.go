package admission

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"crier/platform/clock"
)

func TestOwnAttempts_ForgetOldestBeyondLimit(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	const most = 21
	o := newOwnAttempts(clock.Func(func() time.Time { return now }), most, [3][]time.Duration{2: {time.Minute}})
	begin := func(name string) time.Duration {
		wait, err := o.Begin(t.Context(), [3]string{"client " + name, "account " + name, "pair " + name})
		if err != nil {
			t.Fatal(err)
		}
		return wait
	}
	const made = 5 * most
	for i := range made {
		begin(fmt.Sprint(i))
		if len(o.byKey) > most || o.order.Len() != len(o.byKey) {
			t.Fatalf("%d keys in the map, %d in order, after %d", len(o.byKey), o.order.Len(), i+1)
		}
	}
	if begin(fmt.Sprint(made-1)) == 0 || begin("0") != 0 {
		t.Error("the newest key is forgotten, or the oldest is not")
	}
	now = now.Add(time.Minute + AttemptMemory)
	if begin("another"); len(o.byKey) != 3 {
		t.Errorf("%d keys when all but three are over, want 3", len(o.byKey))
	}
}

func TestGrowingDelays_DoubleUpToLongest(t *testing.T) {
	t.Parallel()
	want := []time.Duration{0, 0, 1, 2, 4, 5}
	if got := growingDelays(3, 1, 5); !slices.Equal(got, want) {
		t.Errorf("got %d, want %d", got, want)
	}
	for n, delay := range map[int]time.Duration{1: 0, 3: 1, 6: 5, 99: 5} {
		if got := delayAfter(want, n); got != delay {
			t.Errorf("after %d: %d, want %d", n, got, delay)
		}
	}
}
