package store_test

import (
	"testing"

	"crier/publishing"
	poststore "crier/publishing/post/store"
	"crier/tenancy"
)

func TestRootPage_CountsUpToCountAhead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const stored = publishing.CountAhead + 50
	r.Exec(`insert into post (org_id, id, group_id, channel_id, shard, state, due, publish_date)
		select $1, gen_random_uuid(), gen_random_uuid(), $2, $3, 'QUEUE', now(), now() + i * interval '1 hour' from generate_series(1, $4::int) i`,
		r.Org, r.Channel(), tenancy.Shard(r.Org), stored)
	for number, want := range map[int]int{0: publishing.CountAhead + 20, 1: publishing.CountAhead + 40, 2: stored, 400: stored, 600: stored} {
		posts, total, err := poststore.RootPage(t.Context(), r.Store, r.Org, publishing.Page{Number: number, Limit: 20}, publishing.CustomerID{})
		r.OK(err)
		if total != want || len(posts) != min(20, max(0, stored-number*20)) {
			t.Errorf("page %d has %d posts of %d, want a total of %d", number, len(posts), total, want)
		}
	}
}
