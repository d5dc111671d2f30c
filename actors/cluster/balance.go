package cluster

import (
	"slices"

	"github.com/google/uuid"

	clusterstore "crier/actors/cluster/store"
)

// maxHandover limits how many shards a process gives away in one step. Without this limit, the new
// owners might have to start too many organizations' actors at once.
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

// weight hashes a shard and a node with FNV-1a, followed by a finalizer. With FNV-1a alone, a
// change in the last byte would affect only a few bits.
func weight(shard int16, node uuid.UUID) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range append(node[:], byte(shard), byte(shard>>8)) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// workers returns the ids of the nodes that can own shards. These nodes have RoleWorker and are not
// leaving.
func workers(nodes []clusterstore.Node) (out []uuid.UUID) {
	for _, n := range nodes {
		if !n.Leaving && slices.Contains(n.Roles, RoleWorker) {
			out = append(out, n.ID)
		}
	}
	return out
}

// plan returns the shards that the node me should take and the shards that it should give away. The
// node takes a shard without a live owner if it is the shard's preferred owner. It gives away at
// most maxHandover shards whose preferred owner is a different node.
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
