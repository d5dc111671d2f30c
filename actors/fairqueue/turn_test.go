package fairqueue_test

import (
	"testing"

	"pgregory.net/rapid"

	"crier/actors/fairqueue"
	"crier/platform/id"
	"crier/tenancy"
)

func TestEverybodyGetsOneBeforeAnybodyGetsTwo(t *testing.T) {
	t.Parallel()
	big, small := id.New[tenancy.OrgTag](), id.New[tenancy.OrgTag]()
	var turns fairqueue.Turns
	turns.Offer(big, 100)
	turns.Offer(small, 1)
	got := turns.Take(4, 10)
	if len(got) != 2 || got[0] != (fairqueue.Grant{Org: big, Permits: 3}) || got[1] != (fairqueue.Grant{Org: small, Permits: 1}) {
		t.Fatalf("%+v", got)
	}
	if turns.Len() != 0 {
		t.Fatal("those that got a turn still wait")
	}
}

func TestTurnsAreFair(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		orgs := make([]tenancy.OrgID, 5)
		for i := range orgs {
			orgs[i] = id.New[tenancy.OrgTag]()
		}
		var turns fairqueue.Turns
		waiting := map[tenancy.OrgID]int{} // rounds that an organization has waited
		for range rapid.IntRange(1, 60).Draw(t, "rounds") {
			for _, o := range orgs {
				if n := rapid.IntRange(0, 4).Draw(t, "ask"); n > 0 {
					turns.Offer(o, n)
					if _, ok := waiting[o]; !ok {
						waiting[o] = 0
					}
				}
			}
			free := rapid.IntRange(0, 4).Draw(t, "free")
			sum := 0
			for _, g := range turns.Take(free, 3) {
				if _, ok := waiting[g.Org]; !ok || g.Permits < 1 {
					t.Fatalf("a turn nobody asked for: %+v", g)
				}
				sum += g.Permits
				delete(waiting, g.Org)
			}
			if sum > free {
				t.Fatalf("gave %d of %d", sum, free)
			}
			if free > 0 {
				for o := range waiting {
					if waiting[o]++; waiting[o] > len(orgs) {
						t.Fatal("somebody starves")
					}
				}
			}
		}
	})
}
