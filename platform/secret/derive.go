package secret

import (
	"crypto/hkdf"
	"crypto/sha256"
	"strings"
)

// Derive returns 32 secret bytes for a purpose, made of the first key by HKDF-SHA256. They are the same in all processes
// of an instance and say nothing of the key, nor of the bytes for another purpose. They change when another key is first.
// The error is that of a key that is not valid.
func (c Config) Derive(purpose string) ([]byte, error) {
	first, _, _ := strings.Cut(c.Keys.Reveal(), ",")
	raw, err := decodeKey(first)
	if err != nil {
		return nil, err
	}
	return hkdf.Key(sha256.New, raw, nil, "crier "+purpose, keySize)
}
