package secret

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// HashToken is what is stored of a random token: SHA-256, 32 bytes. It is not for passwords.
func HashToken(s string) []byte {
	sum := sha256.Sum256([]byte(s))
	return sum[:]
}

// Equal returns whether a sent value is the secret, in a time that says nothing about either. Nothing equals a secret that
// is not set.
func Equal(sent string, want Text) bool {
	return want != "" && subtle.ConstantTimeCompare(HashToken(sent), HashToken(want.Reveal())) == 1
}

// Token makes prefix plus n random characters of 0-9 A-Z a-z, each worth 5.95 bits.
func Token(prefix string, n int) (string, error) {
	if n <= 0 {
		return "", errors.New("secret.Token: a token needs at least one random character")
	}
	out := append(make([]byte, 0, len(prefix)+n), prefix...)
	buf := make([]byte, n+n/8+8)
	for len(out) < len(prefix)+n {
		if _, err := rand.Read(buf); err != nil {
			return "", err
		}
		for _, b := range buf {
			// 248 = 4 x 62: higher bytes would favour the first characters.
			if b < 248 && len(out) < len(prefix)+n {
				out = append(out, base62[b%62])
			}
		}
	}
	return string(out), nil
}
