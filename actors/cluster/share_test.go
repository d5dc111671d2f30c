package cluster_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"crier/actors/cluster"
	"crier/tenancy"
	"crier/tests/dbtest"
)

// ownEachShardOnce reports whether every shard is owned by exactly one of the members.
func ownEachShardOnce(members ...*cluster.Member) bool {
	seen := map[int16]int{}
	for _, m := range members {
		for _, s := range m.Lease().Shards {
			seen[s]++
		}
	}
	if len(seen) != tenancy.Shards {
		return false
	}
	for _, n := range seen {
		if n != 1 {
			return false
		}
	}
	return true
}

func TestMember_ShardsAreSharedEvenly(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	var members []*cluster.Member
	for range 3 {
		members = append(members, join(t, quick, db))
	}
	eventually(t, "every member owns a fair share", func() bool {
		return ownEachShardOnce(members...) && !slices.ContainsFunc(members, func(m *cluster.Member) bool { return len(m.Lease().Shards) < tenancy.Shards/6 })
	})
	eventually(t, "each member sees three", func() bool {
		return !slices.ContainsFunc(members, func(m *cluster.Member) bool { return m.LiveCount() != 3 })
	})
	if err := members[0].Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(members[0].Lease().Shards); n != 0 {
		t.Fatalf("got %d shards after Release, want 0", n)
	}
	eventually(t, "the others own all shards", func() bool { return ownEachShardOnce(members[1:]...) })
	leave(t, members[0])
	leave(t, members[1])
	eventually(t, "the last member owns all shards", func() bool { return ownEachShardOnce(members[2]) })
	leave(t, members[2])
}

func TestPlace_MembersAgreeOnOwners(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	joinAt := func(address string, roles ...string) *cluster.Member {
		cfg := quick
		cfg.Roles = roles
		log := slog.New(slog.DiscardHandler)
		deps := cluster.Deps{DB: db, Home: home(t, t.TempDir()), Log: log, Owners: cluster.NewOwners(log)}
		m, err := cluster.Join(t.Context(), cfg, address, deps)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Leave(context.Background()) })
		return m
	}
	front := joinAt("front:1", cluster.RoleEdge)
	one, two := joinAt("one:1", cluster.RoleWorker), joinAt("two:1", cluster.RoleEdge, cluster.RoleWorker)
	eventually(t, "all members agree on the owners", func() bool {
		if len(front.Lease().Shards) != 0 || !ownEachShardOnce(one, two) {
			return false
		}
		for s := range int16(tenancy.Shards) {
			address, here := front.Place(s)
			_, first := one.Place(s)
			_, second := two.Place(s)
			if here || first == second || address != map[bool]string{true: "one:1", false: "two:1"}[first] {
				return false
			}
		}
		return true
	})
}
