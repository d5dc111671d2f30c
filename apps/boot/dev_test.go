package boot

import (
	"os"
	"path/filepath"
	"testing"
)

// Both files hold secrets: the key of all credentials, and a password with an API key.
func TestDevFiles_AreTheirOwnersOnly(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	key, notes := filepath.Join(home, "encryption.key"), filepath.Join(home, "dev.json")
	if _, err := keptSecret(key); err != nil {
		t.Fatal(err)
	}
	if err := (demo{APIKey: "secret"}).save(notes); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{key, notes} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o, want 600", path, mode)
		}
	}
}
