package service

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/alexedwards/argon2id"

	"crier/platform/fault"
)

// nobody is an address that is not looked up, and so needs no database.
const nobody = "no\x00body@example.org"

// Who does not exist must not be told from who does by the work that a log-in makes.
func TestLogin_HashesAPasswordForUnknownPeople(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		decoy, err := argon2id.CreateHash("no such person", &argon2id.Params{Memory: 64, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32})
		if err != nil {
			t.Fatal(err)
		}
		a := &Accounts{slots: newSlots(1), decoy: decoy}
		for name, password := range map[string]string{"a wrong password": "guess", "the decoy's password": "no such person"} {
			if _, err := a.Login(context.Background(), "here", nobody, password); !fault.Is(err, fault.Invalid) {
				t.Errorf("%s: got %v, want Invalid", name, err)
			}
		}
		a.decoy = "no hash"
		if _, err := a.Login(context.Background(), "here", nobody, "guess"); !fault.Is(err, fault.Internal) {
			t.Errorf("with a decoy that cannot be compared: got %v, want Internal, because the password is compared with it", err)
		}
		release, err := a.slot(context.Background(), "there")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Login(context.Background(), "here", nobody, "guess"); !fault.Is(err, fault.RateLimited) {
			t.Errorf("without a place to hash in: got %v, want RateLimited", err)
		}
		release()
	})
}

func TestNew_DecoyCostsWhatAPasswordCosts(t *testing.T) {
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
