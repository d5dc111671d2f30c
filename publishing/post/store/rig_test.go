package store_test

import (
	"testing"

	"crier/tests/publishtest"
)

// rig is an organization whose posts the statements of this package read and change.
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
