package post_test

import (
	"testing"

	"crier/tests/publishtest"
)

var limits = publishtest.Limits

// rig is the use cases of one process with a database.
type rig struct {
	*publishtest.Rig
	platform *platform
}

type platform = publishtest.Platform

func newRig(t *testing.T) *rig {
	t.Helper()
	r := publishtest.NewRig(t)
	return &rig{Rig: r, platform: r.Platform}
}
