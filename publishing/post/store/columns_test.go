package store

import (
	"testing"

	"strings"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	"crier/tests/sqltest"
)

func TestColumns_MatchTheStatements(t *testing.T) {
	t.Parallel()
	sqltest.Columns(t, nil, map[string][]string{
		rootsInRange:            sqltest.Tags[postRow](),
		rootsPage:               sqltest.Tags[postRow](),
		rootByID:                sqltest.Tags[postRow](),
		followersOf:             sqltest.Tags[postRow](),
		templatePosts:           sqltest.Tags[postRow](),
		groupStatus:             sqltest.Tags[PostStatus](),
		partsOf:                 sqltest.Tags[partRow](),
		settingsOf:              sqltest.Tags[settingsRow](),
		attachmentsOf:           sqltest.Tags[db.AttachmentRow](),
		eventsOf:                sqltest.Tags[publishing.Event](),
		channelsByID:            sqltest.Tags[db.ListedChannel](),
		channelsOf:              sqltest.Tags[db.ListedChannel](),
		findSeriesInRange:       sqltest.Tags[projectedRow](),
		findSeriesByID:          sqltest.Tags[projectedRow](),
		seriesByID.series:       sqltest.Tags[lockedSeries](),
		seriesByTemplate.series: sqltest.Tags[lockedSeries](),
		seriesIfFree.series:     sqltest.Tags[lockedSeries](),
		seriesByID.stored:       sqltest.Tags[publishing.StoredOccurrence](),
		findEndedSeries:         sqltest.Tags[publishing.SeriesRef](),
	})
}

func TestExpand_LeavesNoPlaceholder(t *testing.T) {
	t.Parallel()
	for _, sql := range []string{movePosts, findSeriesInRange, findSeriesByID} {
		name, _, _ := strings.Cut(sql, "\n")
		statement := sql[strings.LastIndex(sql, "EXPLAIN EXECUTE"):]
		if strings.Contains(statement, "/*") {
			t.Errorf("%s has a placeholder that is not expanded:\n%s", name, statement)
		}
	}
}

// A follower has the settings of its root, so a list must not read them again for each follower.
func TestFollowerColumns_LeaveOutSettings(t *testing.T) {
	t.Parallel()
	if strings.Contains(followerColumns, "p.settings") || !strings.Contains(followerColumns, " as settings") {
		t.Errorf("got the columns %s, want an empty object as settings", followerColumns)
	}
}

func TestPlan_ReadsNoTableWhole(t *testing.T) {
	t.Parallel()
	sqltest.NoTableRead(t, map[pg.Role][]string{pg.Clock: {findEndedSeries}})
}
