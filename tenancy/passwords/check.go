package passwords

import (
	"strings"
	"unicode/utf8"

	"crier/tenancy"
)

// Check returns Invalid if a new password has fewer than 8 characters, not counting leading and
// trailing spaces. It also returns Invalid if the password has more than 128 characters or is one
// of the most common passwords.
func Check(op, field, password string) error {
	var in tenancy.Inputs
	in.Password(field, password)
	short := utf8.RuneCountInString(strings.TrimSpace(password)) < tenancy.MinPassword
	in.Check(!short || utf8.RuneCountInString(password) < tenancy.MinPassword, field,
		"must be 8 to 128 characters, not counting leading and trailing spaces")
	if err := in.Err(op); err != nil {
		return err
	}
	in.Check(!Common(password), field, "is one of the most common passwords; choose another one")
	return in.Err(op)
}
