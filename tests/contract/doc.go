// Package contract tests the whole service in one process, over real Postgres, as its clients and its attackers use it.
package contract
