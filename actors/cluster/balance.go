package cluster

import (
	"slices"

	"github.com/google/uuid"

	clusterstore "crier/actors/cluster/store"
)

// maxHandover is how many shards a process gives away in one step. With more, their new owners
// would have to start the actors of too many organizations at once.
const maxHandover = 64

// preferredOwner returns the worker that should own a shard, or uuid.Nil if there are no workers.
// It uses rendezvous hashing: a process that joins or leaves moves only its own share of the
// shards.
func preferredOwner(shard int16, workers []uuid.UUID) uuid.UUID {
	var best uuid.UUID
	var top uint64
	for _, w := range workers {
		if score := weight(shard, w); best == uuid.Nil || score > top {
			best, top = w, score
		}
	}
	return best
}

// weight hashes a shard and a node with FNV-1a and a finalizer, because FNV-1a alone hardly spreads
// a change of the last byte.
func weight(shard int16, node uuid.UUID) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range append(node[:], byte(shard), byte(shard>>8)) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// workers returns the nodes that may own shards: nodes with the role worker that are not leaving.
func workers(nodes []clusterstore.Node) (out []uuid.UUID) {
	for _, n := range nodes {
		if !n.Leaving && slices.Contains(n.Roles, RoleWorker) {
			out = append(out, n.ID)
		}
	}
	return out
}

// plan returns the shards that the node me should take and give away. It takes the shards that
// prefer it and have no live owner, and gives away at most maxHandover of its shards that prefer
// another node.
func plan(me uuid.UUID, nodes []clusterstore.Node, shards []clusterstore.Shard) (take, give []int16) {
	able := workers(nodes)
	alive := map[uuid.UUID]bool{}
	for _, n := range nodes {
		alive[n.ID] = true
	}
	for _, s := range shards {
		switch want := preferredOwner(s.Shard, able); {
		case want == me && s.Owner != me && !alive[s.Owner]:
			take = append(take, s.Shard)
		case want != me && want != uuid.Nil && s.Owner == me && len(give) < maxHandover:
			give = append(give, s.Shard)
		}
	}
	return take, give
}
