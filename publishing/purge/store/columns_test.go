package store

import (
	"testing"

	"crier/tests/sqltest"
)

func TestColumns_MatchTheStatements(t *testing.T) {
	t.Parallel()
	sqltest.Columns(t, nil, map[string][]string{
		findOldKeys:     sqltest.Tags[OldRow](),
		findOldEvents:   sqltest.Tags[OldRow](),
		findOldDeleted:  sqltest.Tags[OldRow](),
		findOldConnects: sqltest.Tags[OldRow](),
	})
}
