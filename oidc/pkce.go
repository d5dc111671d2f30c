package oidc

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
)

// IsChallenge reports whether challenge has the form of an S256 code challenge: a SHA-256 hash in
// base64url.
func IsChallenge(challenge string) bool {
	hash, err := base64.RawURLEncoding.Strict().DecodeString(challenge)
	return err == nil && len(hash) == sha256.Size
}

// Verify reports whether a code verifier matches an S256 code challenge (RFC 7636).
func Verify(challenge, verifier string) bool {
	const shortest, longest = 43, 128
	if len(verifier) < shortest || len(verifier) > longest {
		return false
	}
	sum := sha256.Sum256([]byte(verifier))
	want := base64.RawURLEncoding.EncodeToString(sum[:])
	return subtle.ConstantTimeCompare([]byte(want), []byte(challenge)) == 1
}
