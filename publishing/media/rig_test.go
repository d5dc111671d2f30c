package media_test

import (
	"testing"

	"crier/tenancy"
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

// member is an organization with a channel.
type member struct {
	*rig
	who tenancy.Principal
}

func (r *rig) organization() member {
	r.Helper()
	m := member{rig: r, who: r.Organization()}
	m.Connect(m.who.Org)
	return m
}
