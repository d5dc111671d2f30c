package store_test

import (
	"testing"

	"crier/tests/publishtest"
)

// rig is an organization whose rows are pruned.
type rig struct{ *publishtest.StoreRig }

func newRig(t *testing.T) *rig {
	t.Helper()
	return &rig{StoreRig: publishtest.NewStoreRig(t)}
}
