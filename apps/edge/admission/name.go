package admission

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// accountName returns the name under which requests for an account are counted and logged: a part of the HMAC of its
// e-mail address. A hash without a key could be compared with guessed addresses.
func (g *Gate) accountName(email string) string { return g.NameOf("account", email)[:16] }

// NameOf returns the name under which a secret of a kind is counted.
func (g *Gate) NameOf(kind, secret string) string {
	mac := hmac.New(sha256.New, g.accountKey)
	mac.Write([]byte(kind + "\x00" + secret))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}
