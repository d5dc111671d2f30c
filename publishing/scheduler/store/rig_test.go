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

// another returns the rig of a new organization in the same database. Its lease replaces that of r.
func (r *rig) another() *rig {
	r.Helper()
	return &rig{StoreRig: publishtest.NewStoreRigOn(r.Base)}
}

func (r *rig) reap(l dispatch.Lease) int {
	r.Helper()
	return r.Upkeep(l, schedulerstore.UpkeepReap, 0)
}

// age gives up posts that are prepared for longer than 6 hours and followers that wait for longer than one.
func (r *rig) age(l dispatch.Lease) int {
	r.Helper()
	return r.Upkeep(l, schedulerstore.UpkeepStuck, 6*time.Hour) + r.Upkeep(l, schedulerstore.UpkeepOrphans, time.Hour)
}
