package store

import (
	"testing"

	"crier/tests/dbtest"
)

func TestStatements_HaveCorrectHeaders(t *testing.T) {
	t.Parallel()
	dbtest.CheckStatements(t)
}
