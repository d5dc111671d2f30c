package admission

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"crier/platform/clock"
)

func TestAccountName_DependsOnKey(t *testing.T) {
	t.Parallel()
	const email = "ada@example.org"
	name := func(key string) string {
		return New(0, Deps{Clock: clock.System{}, AccountKey: []byte(key)}).accountName(email)
	}
	hash := sha256.Sum256([]byte(email))
	if got := name("key"); got == hex.EncodeToString(hash[:8]) || got != name("key") || got == name("other") {
		t.Errorf("the name is %s: want one of the key and the address", got)
	}
	if one, other := name(""), name(""); one == other {
		t.Error("without a key the names of two processes are the same")
	}
}
