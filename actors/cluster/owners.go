package cluster

import (
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/google/uuid"

	"crier/publishing/scheduler/dispatch"
)

// Owners records what this process knows about the owners of shards. Code that locates or schedules
// organizations reads it, and the process's Member keeps it up to date. Until the process has
// joined the cluster, no shard has an owner. Its methods are safe for concurrent use.
type Owners struct {
	id  uuid.UUID // the Member's id
	log *slog.Logger

	lease     atomic.Pointer[dispatch.Lease]
	owners    atomic.Pointer[map[int16]owner]
	live      atomic.Int64
	suspended atomic.Bool
	wake      chan struct{} // has an element if the next heartbeat is due immediately
}

type owner struct {
	id      uuid.UUID
	address string
}

// NewOwners returns Owners for the Member that joins next, and generates that Member's id.
func NewOwners(log *slog.Logger) *Owners {
	o := &Owners{id: uuid.Must(uuid.NewV7()), log: log, wake: make(chan struct{}, 1)}
	o.set(map[int16]owner{})
	return o
}

// Lease returns the shards that this process may schedule, or none while the process is suspended.
// The result is a snapshot that may be out of date. This is safe because every claim checks the
// lease in Postgres.
func (o *Owners) Lease() dispatch.Lease {
	if o.suspended.Load() {
		return dispatch.Lease{Holder: o.id}
	}
	return *o.lease.Load()
}

// Place returns a shard's owner. here is true if this process is the owner; otherwise address is
// the owner's address. address is empty if the shard has no live owner or the owner has no address.
func (o *Owners) Place(shard int16) (address string, here bool) {
	found := (*o.owners.Load())[shard]
	return found.address, found.id == o.id
}

// LiveCount returns the number of members whose lease has not expired, including this one. It
// returns 0 until the process has joined.
func (o *Owners) LiveCount() int { return int(o.live.Load()) }

// Suspend makes this process give back every shard and take none until Resume is called. It does
// not wait until the shards have been given back. Lease is empty immediately, Deps.Lost is called
// soon afterward, and other members take the shards once Postgres is reachable. If there are no
// other members, the shards have no owner until Resume is called.
//
// The process remains a member and continues its heartbeat. reason is logged.
func (o *Owners) Suspend(reason string) {
	if o.suspended.Swap(true) {
		return
	}
	o.log.Warn("suspended: this process releases its shards and takes none until it resumes", "reason", reason)
	o.wakeUp()
}

// Resume ends a suspension. The process takes its share of the shards during the next few
// heartbeats. Resume does not wait for these shards.
func (o *Owners) Resume() {
	if !o.suspended.Swap(false) {
		return
	}
	o.log.Info("resumed: this process is taking shards again")
	o.wakeUp()
}

// wakeUp starts the next heartbeat immediately. It does not block.
func (o *Owners) wakeUp() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// set replaces the owners. before lists the shards that this process owned before the call, and
// after lists the shards that it owns now. Both include shards that a suspended process has not
// given back yet.
func (o *Owners) set(owners map[int16]owner) (before, after []int16) {
	next := &dispatch.Lease{Holder: o.id}
	for _, shard := range slices.Sorted(maps.Keys(owners)) {
		if owners[shard].id == o.id {
			next.Shards = append(next.Shards, shard)
		}
	}
	if last := o.lease.Swap(next); last != nil {
		before = last.Shards
	}
	o.owners.Store(&owners)
	return before, next.Shards
}

func (o *Owners) others() map[int16]owner {
	owners := maps.Clone(*o.owners.Load())
	maps.DeleteFunc(owners, func(_ int16, x owner) bool { return x.id == o.id })
	return owners
}

// clear empties the lease after the process has left the cluster. It keeps the known owners.
func (o *Owners) clear() { o.lease.Store(&dispatch.Lease{Holder: o.id}) }
