package store

import (
	"testing"

	"crier/publishing/db"
	"crier/tests/sqltest"
)

func TestColumns_MatchTheStatements(t *testing.T) {
	t.Parallel()
	sqltest.Columns(t, nil, map[string][]string{
		channelList: sqltest.Tags[db.ListedChannel](),
	})
}
