// Package contract tests the whole service in one process, on a real Postgres, through its HTTP
// interface.
package contract
