package service

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/alexedwards/argon2id"

	"crier/platform/fault"
	"crier/tenancy"
)

// unstorable is an address that cannot be stored, so that Login does not look it up and needs no database.
const unstorable = "no\x00body@example.org"

var here = tenancy.Source{Client: "203.0.113.9", Site: "203.0.113.9"}

// The time of a log-in must not reveal whether the person exists.
func TestLogin_HashesAPasswordForUnknownPeople(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		decoy, err := argon2id.CreateHash("no such person", &argon2id.Params{Memory: 64, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32})
		if err != nil {
			t.Fatal(err)
		}
		a := &Accounts{slots: newSlots(1), decoy: decoy}
		for name, password := range map[string]string{"a wrong password": "guess", "the decoy's password": "no such person"} {
			if _, err := a.Login(context.Background(), unstorable, password, here); !fault.Is(err, fault.Invalid) {
				t.Errorf("%s: got %v, want Invalid", name, err)
			}
		}
		a.decoy = "no hash"
		if _, err := a.Login(context.Background(), unstorable, "guess", here); !fault.Is(err, fault.Internal) {
			t.Errorf("with an invalid decoy: got %v, want Internal, because the password is compared with it", err)
		}
		release, err := a.slot(context.Background(), "there")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Login(context.Background(), unstorable, "guess", here); !fault.Is(err, fault.RateLimited) {
			t.Errorf("without a free slot: got %v, want RateLimited", err)
		}
		release()
	})
}

func TestNew_DecoyHasTheParametersOfPasswords(t *testing.T) {
	t.Parallel()
	a, err := New(Config{}, Deps{})
	if err != nil {
		t.Fatal(err)
	}
	params, _, _, err := argon2id.DecodeHash(a.decoy)
	if err != nil || *params != *a.hash {
		t.Errorf("the decoy has %+v, %v, want %+v", params, err, a.hash)
	}
}
