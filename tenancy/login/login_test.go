package login_test

import (
	"testing"

	"crier/platform/fault"
	"crier/tests/dbtest"
	"crier/tests/tenancytest"
)

// unstorable is an address that cannot be stored, so Login does not look it up.
const unstorable = "no\x00body@example.org"

// The duration of a log-in must not reveal whether the person exists.
func TestLogin_HashesAPasswordForUnknownPeople(t *testing.T) {
	t.Parallel()
	a := tenancytest.New(t, dbtest.Open(t))
	for name, password := range map[string]string{"a wrong password": "guess", "the decoy's password": "no such person"} {
		before := a.Hashed()
		if _, err := a.Login(t.Context(), unstorable, password, tenancytest.Here); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v, want Invalid", name, err)
		}
		if n := a.Hashed() - before; n != 1 {
			t.Errorf("%s: %d passwords were hashed, want 1", name, n)
		}
	}
}
