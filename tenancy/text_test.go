package tenancy_test

import (
	"testing"

	"crier/tenancy"
)

func TestStorable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": true, "plain": true, "äöü 猫 👩‍👩‍👧": true, "\u0001\t\n": true, "\ufffd": true,
		"\x00": false, "a\x00b": false, "\xff": false, "a\xc3": false, "\xed\xa0\x80": false,
	} {
		if got := tenancy.Storable(text); got != want {
			t.Errorf("Storable(%q) is %v, want %v", text, got, want)
		}
	}
}
