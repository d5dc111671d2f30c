package fairqueue_test

import (
	"testing"

	"pgregory.net/rapid"

	"crier/actors/fairqueue"
	"crier/platform/id"
	"crier/tenancy"
)

func TestTake_EveryOrganizationGetsOneBeforeAnyGetsTwo(t *testing.T) {
	t.Parallel()
	big, small := id.New[tenancy.OrgTag](), id.New[tenancy.OrgTag]()
	var queue fairqueue.Queue
	queue.Offer(big, 100)
	queue.Offer(small, 1)
	got := queue.Take(4, 10)
	if len(got) != 2 || got[0] != (fairqueue.Grant{Org: big, Permits: 3}) || got[1] != (fairqueue.Grant{Org: small, Permits: 1}) {
		t.Fatalf("got %+v, want 3 permits for the first and 1 for the second", got)
	}
	if queue.Len() != 0 {
		t.Fatalf("%d organizations are queued after their grant, want none", queue.Len())
	}
}

func TestTake_NoOrganizationStarves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		orgs := make([]tenancy.OrgID, 5)
		for i := range orgs {
			orgs[i] = id.New[tenancy.OrgTag]()
		}
		var queue fairqueue.Queue
		waiting := map[tenancy.OrgID]int{} // rounds that each queued organization has waited
		for range rapid.IntRange(1, 60).Draw(t, "rounds") {
			for _, o := range orgs {
				if n := rapid.IntRange(0, 4).Draw(t, "ask"); n > 0 {
					queue.Offer(o, n)
					if _, ok := waiting[o]; !ok {
						waiting[o] = 0
					}
				}
			}
			free := rapid.IntRange(0, 4).Draw(t, "free")
			sum := 0
			for _, g := range queue.Take(free, 3) {
				if _, ok := waiting[g.Org]; !ok || g.Permits < 1 {
					t.Fatalf("got a grant without an offer: %+v", g)
				}
				sum += g.Permits
				delete(waiting, g.Org)
			}
			if sum > free {
				t.Fatalf("got %d permits, want at most %d", sum, free)
			}
			if free > 0 {
				for o := range waiting {
					if waiting[o]++; waiting[o] > len(orgs) {
						t.Fatalf("an organization has waited %d rounds, want at most %d", waiting[o], len(orgs))
					}
				}
			}
		}
	})
}
