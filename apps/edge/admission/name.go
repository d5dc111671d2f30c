package admission

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// accountName returns the name under which an account's requests are counted and logged. The name
// is part of an HMAC of the account's email address. An unkeyed hash would not be enough, because
// it could be compared with the hashes of guessed addresses.
func (g *Gate) accountName(email string) string { return g.NameOf("account", email)[:16] }

// NameOf returns the name under which the uses of a secret of the given kind are counted.
func (g *Gate) NameOf(kind, secret string) string {
	mac := hmac.New(sha256.New, g.accountKey)
	mac.Write([]byte(kind + "\x00" + secret))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}
