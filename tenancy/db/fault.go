package db

import (
	"crier/platform/fault"
	"crier/platform/pg"
)

// AccountFault returns Conflict if err means that an email address or an identity is already in
// use. It returns any other error unchanged.
func AccountFault(op string, err error) error {
	if pg.IsUnique(err, "person_email_key") {
		return fault.New(fault.Conflict, op, "This email address is taken.")
	}
	if pg.IsUnique(err, "identity_pkey") {
		return fault.New(fault.Conflict, op, "This provider account is already in use.")
	}
	return err
}
