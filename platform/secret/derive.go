package secret

import (
	"crypto/hkdf"
	"crypto/sha256"
	"strings"
)

// Derive returns 32 secret bytes for a purpose, derived from the first key with HKDF-SHA256. All
// processes of an instance derive the same bytes. The bytes reveal neither the key nor the bytes
// for other purposes, and they change if a different key becomes the first. Derive returns an error
// only if the first key is invalid.
func (c Config) Derive(purpose string) ([]byte, error) {
	first, _, _ := strings.Cut(c.Keys.Reveal(), ",")
	raw, err := decodeKey(first)
	if err != nil {
		return nil, err
	}
	return hkdf.Key(sha256.New, raw, nil, "crier "+purpose, keySize)
}
