package admission

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// accountName returns the name under which an account's requests are counted and logged: part of
// the HMAC of its email address. An unkeyed hash could be compared with the hashes of guessed
// addresses.
func (g *Gate) accountName(email string) string { return g.NameOf("account", email)[:16] }

// NameOf returns the name under which a secret of the given kind is counted.
func (g *Gate) NameOf(kind, secret string) string {
	mac := hmac.New(sha256.New, g.accountKey)
	mac.Write([]byte(kind + "\x00" + secret))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}
