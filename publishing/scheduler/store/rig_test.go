package store_test

import (
	"testing"
	"time"

	"crier/publishing/scheduler/dispatch"
	schedulerstore "crier/publishing/scheduler/store"
	"crier/tests/publishtest"
)

// rig is an organization whose posts go through the queue.
type rig struct{ *publishtest.StoreRig }

func newRig(t *testing.T) *rig {
	t.Helper()
	return &rig{StoreRig: publishtest.NewStoreRig(t)}
}

// another returns the rig of a new organization in the same database. Its lease replaces the lease
// of r.
func (r *rig) another() *rig {
	r.Helper()
	return &rig{StoreRig: publishtest.NewStoreRigOn(r.Base)}
}

func (r *rig) reap(l dispatch.Lease) int {
	r.Helper()
	return r.Upkeep(l, schedulerstore.UpkeepReap, 0)
}

// age gives up posts that have been in preparation for more than 6 hours and followers that have
// waited for more than one hour.
func (r *rig) age(l dispatch.Lease) int {
	r.Helper()
	return r.Upkeep(l, schedulerstore.UpkeepStuck, 6*time.Hour) + r.Upkeep(l, schedulerstore.UpkeepOrphans, time.Hour)
}
