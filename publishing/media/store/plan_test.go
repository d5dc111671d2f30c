package store

import (
	"crier/platform/pg"
	"crier/publishing/db"
	"crier/tests/sqltest"
	"slices"
	"strings"
	"testing"
)

// Every upload sums the sizes of the organization's files and must not read other organizations'
// files. Looking up some files must not read all files of the organization.
func TestPlan_StorageSumReadsOnlyTheIndex(t *testing.T) {
	t.Parallel()
	database, owner := sqltest.Open(t)
	sqltest.Fill(t, owner.Config().Database)
	sqltest.Vacuum(t, owner)
	c, err := database.Pool(pg.Tenant).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	// This is the plan for any organization, which a connection uses after a few executions.
	if _, err := c.Exec(t.Context(), "set plan_cache_mode = force_generic_plan"); err != nil {
		t.Fatal(err)
	}
	for name, sql := range map[string]string{"MediaStored": mediaStored, "MediaInsert": mediaInsert} {
		reads := sqltest.Plan(t, c.Conn(), name, sql).Reads("media")
		// The lookup of a file with the same hash.
		reads = slices.DeleteFunc(reads, func(s sqltest.Step) bool { return s.Index == "media_content" })
		if len(reads) != 1 || reads[0].Kind != "Index Only Scan" || reads[0].Index != "media_blob" || !strings.Contains(reads[0].Cond, "org_id = $1") {
			t.Errorf("%s reads %+v, want an index only scan of media_blob", name, reads)
		}
	}
	if indexes := sqltest.Plan(t, c.Conn(), "MediaFind", db.MediaFind).Indexes(); slices.Contains(indexes, "media_org") || slices.Contains(indexes, "media_blob") || len(indexes) != 2 {
		t.Errorf("MediaFind reads by %v, want the indexes of the id and of the key", indexes)
	}
}
