package store

import (
	"testing"

	"crier/tests/dbtest"
)

func TestStatements_ArePlannedAsTheirHeadersSay(t *testing.T) {
	t.Parallel()
	dbtest.CheckStatements(t)
}
