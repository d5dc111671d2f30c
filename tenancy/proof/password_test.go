package proof

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alexedwards/argon2id"

	"crier/platform/fault"
)

func TestSlot_WaitsUntilHashWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &Proofs{slots: newSlots(1)}
		release, err := a.slot(t.Context(), "here")
		if err != nil {
			t.Fatal(err)
		}
		// The clock of synctest advances only while all goroutines wait, so the measured time is
		// exact.
		began := time.Now()
		_, err = a.slot(context.Background(), "here") // like a caller without a deadline
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != fault.RateLimited || f.RetryAfter <= 0 {
			t.Errorf("without a free slot: %v, want RateLimited with a RetryAfter", err)
		}
		if waited := time.Since(began); waited != hashWait {
			t.Errorf("it waited %s, want %s", waited, hashWait)
		}
		release()
		release, err = a.slot(t.Context(), "here")
		if err != nil {
			t.Fatal(err)
		}
		release()
	})
}

func TestSlot_SiteWithManyWaitingDelaysAnotherByOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &Proofs{slots: newSlots(1)}
		const hashTime = 100 * time.Millisecond
		hash := func(site string) error {
			release, err := a.slot(context.Background(), site)
			if err != nil {
				return err
			}
			time.Sleep(hashTime)
			release()
			return nil
		}
		const many = 1000
		attempts := make(chan error, many)
		for range many {
			go func() { attempts <- hash("2001:db8:1::/48") }()
		}
		synctest.Wait()
		if n := len(attempts); n != many-1-waitingPerSite { // one is being hashed
			t.Errorf("%d of a site with %d log-ins are refused at once, want all but %d", n, many, 1+waitingPerSite)
		}
		for len(attempts) > 0 {
			var f *fault.Error
			if err := <-attempts; !errors.As(err, &f) || f.Kind != fault.RateLimited || f.RetryAfter <= 0 {
				t.Fatalf("refused with %v, want RateLimited with a RetryAfter", err)
			}
		}
		began := time.Now()
		if err := hash("203.0.113.9"); err != nil {
			t.Error(err)
		}
		// The one that is being hashed, one that waits, and its own.
		if took := time.Since(began); took > 3*hashTime {
			t.Errorf("a log-in of another site takes %s, want %s at most", took, 3*hashTime)
		}
		for range 1 + waitingPerSite {
			if err := <-attempts; err != nil {
				t.Errorf("one that waited: %v", err)
			}
		}
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

func TestNew_DecoyHasTheParametersOfPasswords(t *testing.T) {
	t.Parallel()
	a, err := New(Deps{})
	if err != nil {
		t.Fatal(err)
	}
	params, _, _, err := argon2id.DecodeHash(a.decoy)
	if err != nil || *params != *a.hash {
		t.Errorf("the decoy has %+v, %v, want %+v", params, err, a.hash)
	}
}

// The duration of a log-in must not reveal whether the person exists.
func TestMatches_HashesAPasswordForUnknownPeople(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		decoy, err := argon2id.CreateHash("no such person", &argon2id.Params{Memory: 64, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32})
		if err != nil {
			t.Fatal(err)
		}
		a := &Proofs{slots: newSlots(1), decoy: decoy}
		for name, password := range map[string]string{"a wrong password": "guess", "the decoy's password": "no such person"} {
			if ok, err := a.Matches(context.Background(), "here", password, ""); ok || err != nil {
				t.Errorf("%s: got %t, %v, want false", name, ok, err)
			}
		}
		a.decoy = "no hash"
		if _, err := a.Matches(context.Background(), "here", "guess", ""); !fault.Is(err, fault.Internal) {
			t.Errorf("with an invalid decoy: got %v, want Internal, because the password is compared with it", err)
		}
		release, err := a.slot(context.Background(), "there")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Matches(context.Background(), "here", "guess", ""); !fault.Is(err, fault.RateLimited) {
			t.Errorf("without a free slot: got %v, want RateLimited", err)
		}
		release()
	})
}
