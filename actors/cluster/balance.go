package cluster

import (
	"slices"

	"github.com/google/uuid"

	clusterstore "crier/actors/cluster/store"
)

// handover is how many shards one process gives away at a time: enough to be quick, too few to wake all organizations at once.
const handover = 64

// desired is who should own a shard: rendezvous hashing, so that a process that comes or goes moves only its own share.
func desired(shard int16, workers []uuid.UUID) uuid.UUID {
	var best uuid.UUID
	var top uint64
	for _, w := range workers {
		if weight := mix(shard, w); best == uuid.Nil || weight > top {
			best, top = w, weight
		}
	}
	return best
}

// mix is FNV-1a with a finalizer: alone it hardly moves on a changed last byte.
func mix(shard int16, node uuid.UUID) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range append(node[:], byte(shard), byte(shard>>8)) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// workers are those that shards may belong to.
func workers(nodes []clusterstore.Node) (out []uuid.UUID) {
	for _, n := range nodes {
		if !n.Leaving && slices.Contains(n.Roles, RoleWorker) {
			out = append(out, n.ID)
		}
	}
	return out
}

// plan is what one of the living processes should do about the shards: take what no living process owns and it should,
// give a part of what another should have.
func plan(me uuid.UUID, nodes []clusterstore.Node, shards []clusterstore.Shard) (take, give []int16) {
	able := workers(nodes)
	alive := map[uuid.UUID]bool{}
	for _, n := range nodes {
		alive[n.ID] = true
	}
	for _, s := range shards {
		switch want := desired(s.Shard, able); {
		case want == me && s.Owner != me && !alive[s.Owner]:
			take = append(take, s.Shard)
		case want != me && want != uuid.Nil && s.Owner == me && len(give) < handover:
			give = append(give, s.Shard)
		}
	}
	return take, give
}
