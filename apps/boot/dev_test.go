package boot

import (
	"os"
	"path/filepath"
	"testing"
)

// TestDevFiles_AreReadableByOwnerOnly: one file holds the key that encrypts all credentials, the
// other a password and an API key.
func TestDevFiles_AreReadableByOwnerOnly(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	key, notes := filepath.Join(home, "encryption.key"), filepath.Join(home, "dev.json")
	if _, err := loadOrCreateKey(key); err != nil {
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
