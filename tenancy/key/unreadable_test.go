package key_test

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"crier/platform/fault"
	"crier/platform/secret"
	"crier/tests/dbtest"
	"crier/tests/tenancytest"
)

// Look-ups share statements. A key whose row makes the statement fail must not make the others
// fail.
func TestAuthenticate_OnlyTheUnreadableKeyFails(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t)
	a := tenancytest.New(t, dbtest.OpenURL(t, address))
	person := tenancytest.Owner(t, a, "a@example.com")
	const bad = 3
	var all []string
	for range 9 {
		full, _ := tenancytest.NewKey(t, a, person)
		all = append(all, full)
	}
	owner := ownerOf(t, address, person.Org)
	spoil := func() error {
		_, err := owner.Exec(t.Context(), "set role crier_tenant; update api_key set expires_at = 'infinity' where hash = '\\x"+
			hex.EncodeToString(secret.HashToken(all[bad]))+"'; reset role")
		return err
	}
	if err := spoil(); !strings.Contains(fmt.Sprint(err), "api_key_expires_at_check") {
		t.Errorf("a key that ends at infinity: %v, want a violation of its check", err)
	}
	exec(t, owner, "reset role; alter table api_key drop constraint api_key_expires_at_check")
	if err := spoil(); err != nil {
		t.Fatal(err)
	}
	answers := make([]chan error, len(all))
	for i, full := range all {
		answers[i] = make(chan error, 1)
		go func() {
			_, err := a.Authenticate(t.Context(), full)
			answers[i] <- err
		}()
	}
	for i, answer := range answers {
		err := <-answer
		if i == bad && !fault.Is(err, fault.Unavailable) || i != bad && err != nil {
			t.Errorf("key %d, the bad one is %d: got %v", i, bad, err)
		}
	}
}
