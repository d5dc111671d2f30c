package store

import (
	"testing"

	"crier/publishing/db"
	"crier/publishing/scheduler/dispatch"
	"crier/tests/sqltest"
)

func TestColumns_MatchTheStatements(t *testing.T) {
	t.Parallel()
	sqltest.Columns(t, map[string][]string{
		claim: sqltest.Names((&claimRow{}).columns()), loadWork: sqltest.Names((&workRow{}).columns()),
		markCommitting: sqltest.Names((&markRow{}).columns()), finish: sqltest.Names(finishedColumns(&dispatch.Finished{})),
		sweep: sqltest.Names((&sweepRow{}).columns()), sweepChannels: sqltest.Names((&sweepRow{}).columns()),
	}, map[string][]string{
		workMedia:    sqltest.Tags[db.AttachmentRow](),
		heldPosts:    sqltest.Tags[heldRow](),
		findUnknown:  sqltest.Tags[unknownRow](),
		claimUnknown: sqltest.Tags[ClaimedUnknown](),
	})
}

// No two columns of a row that is scanned by position fill the same variable.
// TestLoad_FillsEachFieldFromItsColumn compares names with fields.
func TestColumns_EachFieldHasOneColumn(t *testing.T) {
	t.Parallel()
	for name, columns := range map[string][]db.Column{
		"claimRow": (&claimRow{}).columns(), "workRow": (&workRow{}).columns(), "markRow": (&markRow{}).columns(),
		"sweepRow": (&sweepRow{}).columns(), "Finished": finishedColumns(&dispatch.Finished{}),
	} {
		values, taken := map[any]string{}, map[string]bool{}
		for _, c := range columns {
			if other := values[c.Value]; other != "" || taken[c.Name] {
				t.Errorf("%s: column %s is listed twice, or has the field of column %q", name, c.Name, other)
			}
			values[c.Value], taken[c.Name] = c.Name, true
		}
	}
}
