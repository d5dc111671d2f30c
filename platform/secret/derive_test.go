package secret

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
)

func TestDerive_DependsOnFirstKeyAndPurpose(t *testing.T) {
	t.Parallel()
	one := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("1", keySize)))
	two := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("2", keySize)))
	derive := func(keys, purpose string) string {
		t.Helper()
		b, err := Config{Keys: Text(keys)}.Derive(purpose)
		if err != nil || len(b) != 32 {
			t.Fatalf("got %d bytes and error %v, want 32 bytes", len(b), err)
		}
		return hex.EncodeToString(b)
	}
	base := derive(one, "a")
	if derive(one, "a") != base || derive(one+","+two, "a") != base {
		t.Error("the same first key and purpose give different bytes")
	}
	for what, got := range map[string]string{"another purpose": derive(one, "b"), "another first key": derive(two+","+one, "a")} {
		if got == base {
			t.Errorf("%s gives the same bytes", what)
		}
	}
	if strings.Contains(base, hex.EncodeToString([]byte("1111"))) {
		t.Error("the key is in the bytes")
	}
	if _, err := (Config{Keys: "no key"}).Derive("a"); err == nil {
		t.Error("a key that is not valid is accepted")
	}
}
