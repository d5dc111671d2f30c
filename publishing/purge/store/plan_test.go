package store

import (
	"context"
	"crier/platform/pg"
	"crier/tests/dbtest"
	"crier/tests/sqltest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Any number of rows may have the same time, because all posts of a channel are deleted at once. A
// sort would read all of them for every batch.
func TestPlan_FindOldReadsInIndexOrder(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t)
	db := dbtest.OpenURL(t, address)
	for _, state := range []string{"new", "full without due posts"} {
		if state != "new" {
			owner, err := pgx.Connect(t.Context(), address)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = owner.Close(context.WithoutCancel(t.Context())) }()
			sqltest.Fill(t, owner.Config().Database)
			sqltest.Vacuum(t, owner)
		}
		c, err := db.Pool(pg.Retention).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for index, sql := range map[string]string{
			"idempotency_created": findOldKeys, "post_event_at": findOldEvents, "post_deleted": findOldDeleted, "connect_state_expires": findOldConnects,
			"upload_address_expires": findOldUploads,
		} {
			way := sqltest.Plan(t, c.Conn(), state+" "+index, sql)
			if kinds := way.Kinds(); !slices.Equal(kinds, []string{"Limit", "Index Scan"}) || way.Steps[0].Index != index || !strings.Contains(way.Steps[0].Cond, "ROW(") {
				t.Errorf("what is old, planned when all is %s, is found by %v with the condition %q, not in the order of %s", state, kinds, way.Steps[0].Cond, index)
			}
		}
		c.Release()
	}
}

// An organization is purged next to all others, in many statements, and none of them may read other
// organizations' rows. There is no index of rows marked as deleted, which are read once in each
// purge.
func TestPlan_PurgeReadsOneOrganization(t *testing.T) {
	t.Parallel()
	db, owner := sqltest.Open(t)
	sqltest.Fill(t, owner.Config().Database)
	sqltest.Vacuum(t, owner)
	c, err := db.Pool(pg.Tenant).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	if _, err := c.Exec(t.Context(), "set plan_cache_mode = force_generic_plan"); err != nil {
		t.Fatal(err)
	}
	of := regexp.MustCompile(`\b(org_id|id|hash|media_id|part_id|after_post|group_id) `)
	for _, sql := range []string{
		findOwnedPosts, findOwnedChannels, purgePosts, purgeChannels, findOwnedPictures, findOwnedMedia, purgePictures,
		purgeMedia, ownedLeft,
	} {
		name, _, _ := strings.Cut(strings.TrimPrefix(sql, "-- "), "\n")
		way := sqltest.Plan(t, c.Conn(), name, sql)
		for _, table := range []string{"post", "attachment", "media", "channel"} {
			for _, s := range way.Reads(table) {
				if s.Kind != "Bitmap Heap Scan" && !of.MatchString(s.Cond) {
					t.Errorf("%s reads %s by %s %s with %q, want an id or the organization", name, table, s.Kind, s.Index, s.Cond)
				}
			}
		}
	}
	if indexes := sqltest.Plan(t, c.Conn(), "media of an organization", findOwnedMedia).Indexes(); !slices.Contains(indexes, "media_blob") {
		t.Errorf("FindOwnedMedia reads by %v, want media_blob", indexes)
	}
}

func TestPlan_RetentionReadsNoTableWhole(t *testing.T) {
	t.Parallel()
	sqltest.NoTableRead(t, map[pg.Role][]string{pg.Retention: {
		findOldKeys, findOldEvents, findOldDeleted, findOldConnects, pruneKeys, pruneEvents, pruneDeleted, pruneConnects,
	}})
}
