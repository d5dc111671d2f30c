package service

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"crier/platform/fault"
)

func TestSlot_IsWaitedForAShortTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &Accounts{slots: make(chan struct{}, 1)}
		release, err := a.slot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// Synctest's clock stands still while anything runs: the wait is exact.
		began := time.Now()
		_, err = a.slot(context.Background()) // of a caller without a deadline
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != fault.Unavailable || f.RetryAfter <= 0 {
			t.Errorf("without a place: %v, want Unavailable with a time to wait", err)
		}
		if waited := time.Since(began); waited != hashWait {
			t.Errorf("it is waited for %s, want %s", waited, hashWait)
		}
		release()
		if release, err = a.slot(t.Context()); err != nil {
			t.Fatal(err)
		}
		release()
	})
}

func TestHashesAtOnce_LeaveHalfOfTheCores(t *testing.T) {
	t.Parallel()
	for cores, want := range map[int]int{1: 1, 2: 1, 3: 1, 4: 2, 16: 8} {
		if got := hashesAtOnce(cores); got != want {
			t.Errorf("%d passwords at once on %d cores, want %d", got, cores, want)
		}
	}
}
