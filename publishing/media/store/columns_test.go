package store

import (
	"testing"

	"crier/publishing/db"
	"crier/tests/sqltest"
)

func TestColumns_MatchTheStatements(t *testing.T) {
	t.Parallel()
	sqltest.Columns(t, nil, map[string][]string{
		db.MediaFind: sqltest.Tags[db.MediumRow](),
		mediaList:    sqltest.Tags[db.MediumRow](),
		mediaAlt:     sqltest.Tags[db.MediumRow](),
		mediaLock:    sqltest.Tags[db.MediumRow](),

		uploadAddressByHash: sqltest.Tags[foundAddress](),
		uploadAddressOwn:    sqltest.Tags[ownAddress](),
	})
}
