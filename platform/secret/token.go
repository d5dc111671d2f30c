package secret

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// HashToken returns the SHA-256 hash of a random token. Store the hash instead of the token. Do not
// use HashToken for passwords.
func HashToken(s string) []byte {
	sum := sha256.Sum256([]byte(s))
	return sum[:]
}

// Equal compares sent with want in constant time and reports whether they are equal. It returns
// false if want is empty.
func Equal(sent string, want Text) bool {
	return want != "" && subtle.ConstantTimeCompare(HashToken(sent), HashToken(want.Reveal())) == 1
}

// Token returns prefix followed by n random characters from 0-9, A-Z and a-z, each with 5.95 bits
// of entropy. It returns an error if n is less than 1.
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
			// Bytes of 248 (4 x 62) and above would make the first characters of base62 more
			// likely.
			if b < 248 && len(out) < len(prefix)+n {
				out = append(out, base62[b%62])
			}
		}
	}
	return string(out), nil
}
