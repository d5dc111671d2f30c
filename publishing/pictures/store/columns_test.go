package store

import (
	"testing"

	"crier/platform/pg"
	"crier/tests/sqltest"
)

func TestColumns_MatchTheStatements(t *testing.T) {
	t.Parallel()
	sqltest.Columns(t, nil, map[string][]string{
		pictureFind:    sqltest.Tags[DerivedPicture](),
		pictureTake:    sqltest.Tags[takenRow](),
		picturePending: sqltest.Tags[PendingPicture](),
	})
}

func TestPlan_ReadsNoTableWhole(t *testing.T) {
	t.Parallel()
	sqltest.NoTableRead(t, map[pg.Role][]string{pg.Clock: {picturePending}})
}
