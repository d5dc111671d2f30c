// Package credential manages credentials that are looked up by the hash of a token. It creates
// tokens, looks up credentials in batches, caches them, and handles revocations. It also stores the
// links that complete a registration, a password reset or an address change, and the claims of
// people who register through an identity provider.
package credential

import (
	"crier/platform/fault"
	"crier/platform/paste"
	"crier/platform/secret"
)

// New returns a random 256-bit token and its hash.
func New(op string) (string, []byte, error) {
	t, err := secret.Token("", 43) // 43 base62 characters hold 256 bits
	if err != nil {
		return "", nil, fault.Wrap(fault.Internal, op, "", err)
	}
	return t, secret.HashToken(t), nil
}

// HashPasted returns the hash of a token or code that may have been pasted from an email.
func HashPasted(text string) []byte { return secret.HashToken(paste.Word(text)) }
