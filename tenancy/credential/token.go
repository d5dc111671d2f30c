// Package credential manages credentials, which are found by the hash of a token. It creates
// tokens, looks up credentials in shared statements, and caches and revokes them. It also stores
// the links and claims that continue a sign-in or a registration.
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
