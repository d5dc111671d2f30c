package store

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"crier/publishing"
)

// tags returns the columns of a struct, in the order of its fields.
func tags[T any]() (names []string) {
	for _, f := range columnFields(reflect.TypeFor[T]()) {
		name := f.Tag.Get("db")
		if name == "" {
			name = strings.ToLower(f.Name) // as pgx.RowToStructByName does
		}
		names = append(names, name)
	}
	return names
}

// names returns the names of columns that are scanned by position.
func names(all []column) (out []string) {
	for _, c := range all {
		out = append(out, c.name)
	}
	return out
}

func TestColumns_AreThoseOfTheStatements(t *testing.T) {
	t.Parallel()
	byPosition := map[string][]string{
		claim: names((&claimRow{}).columns()), loadWork: names((&workRow{}).columns()),
		markCommitting: names((&markRow{}).columns()), finish: names(finishedColumns(&publishing.Finished{})),
		sweep: names((&sweepRow{}).columns()), sweepChannels: names((&sweepRow{}).columns()),
	}
	byName := map[string][]string{
		rootsInRange: tags[postRow](), rootsPage: tags[postRow](), rootByID: tags[postRow](),
		followersOf: tags[postRow](), templatePosts: tags[postRow](),
		groupStatus: tags[PostStatus](), partsOf: tags[partRow](), settingsOf: tags[settingsRow](),
		attachmentsOf: tags[attachmentRow](), workMedia: tags[attachmentRow](), mediaFind: tags[mediumRow](),
		mediaList: tags[mediumRow](), mediaAlt: tags[mediumRow](), mediaLock: tags[mediumRow](),
		eventsOf: tags[publishing.Event](), heldPosts: tags[heldRow](),
		channelList: tags[listedChannel](), channelsByID: tags[listedChannel](), channelsOf: tags[listedChannel](),
		findUnknown: tags[unknownRow](), claimUnknown: tags[ClaimedUnknown](),
		findSeriesInRange: tags[projectedRow](), findSeriesByID: tags[projectedRow](),
		seriesByID.series: tags[lockedSeries](), seriesByTemplate.series: tags[lockedSeries](),
		seriesIfFree.series: tags[lockedSeries](), seriesByID.stored: tags[publishing.StoredOccurrence](),
		findEndedSeries: tags[SeriesRef](),
		pictureFind:     tags[DerivedPicture](), pictureTake: tags[takenRow](), picturePending: tags[PendingPicture](),
		findOldKeys: tags[OldRow](), findOldEvents: tags[OldRow](), findOldDeleted: tags[OldRow](),
		findOldConnects: tags[OldRow](),
	}
	_, conn := withOwner(t)
	result := func(sql string) (name string, columns []string) {
		name, _, _ = strings.Cut(sql, "\n")
		prepared, err := conn.Prepare(t.Context(), "", sql)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, f := range prepared.Fields {
			columns = append(columns, f.Name)
		}
		return name, columns
	}
	for sql, want := range byPosition {
		if name, got := result(sql); !slices.Equal(got, want) {
			t.Errorf("%s has the columns\n%q, want those of its row in their order\n%q", name, got, want)
		}
	}
	for sql, want := range byName {
		name, got := result(sql)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s has the columns\n%q, want those of its row\n%q", name, got, want)
		}
	}
}

// No variable of a row that is scanned by position takes two columns. TestLoad_FillsEachFieldFromItsColumn compares
// names with fields.
func TestColumns_AreOneForEachField(t *testing.T) {
	t.Parallel()
	for name, columns := range map[string][]column{
		"claimRow": (&claimRow{}).columns(), "workRow": (&workRow{}).columns(), "markRow": (&markRow{}).columns(),
		"sweepRow": (&sweepRow{}).columns(), "Finished": finishedColumns(&publishing.Finished{}),
	} {
		values, taken := map[any]string{}, map[string]bool{}
		for _, c := range columns {
			if other := values[c.value]; other != "" || taken[c.name] {
				t.Errorf("%s: column %s is listed twice, or has the field of column %q", name, c.name, other)
			}
			values[c.value], taken[c.name] = c.name, true
		}
	}
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

// The settings of a follower are its root's: a list must not read them once for each follower.
func TestFollowerColumns_LeaveOutSettings(t *testing.T) {
	t.Parallel()
	if strings.Contains(followerColumns, "p.settings") || !strings.Contains(followerColumns, " as settings") {
		t.Errorf("got the columns %s, want an empty object as settings", followerColumns)
	}
}
