// Package accounts tests the use cases of people, organizations and keys (tenancy) on a real
// Postgres, with a clock that the tests set.
package accounts
