package service_test

import (
	"testing"
	"time"

	"crier/platform/clock"
	"crier/publishing"
	"crier/publishing/connector"
	publishingservice "crier/publishing/service"
	"crier/tenancy"
	"crier/tests/publishtest"
)

var limits = publishingservice.Config{
	BaseURL: "http://crier.test", MaxImage: 10 << 20, MaxVideo: 1 << 20, PlatformTimeout: 20 * time.Second, MaxChannels: 1000,
}

// platform is a connector that only has a descriptor.
type platform struct{ connector.Connector }

func (platform) Describe() connector.Descriptor {
	return connector.Descriptor{ID: "sandbox", Name: "Sandbox", Grade: publishing.GradeMarked}
}

// rig is the use cases of one process with a database.
type rig struct {
	*publishtest.Base
	platform *platform
	deps     publishingservice.Deps
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{Base: publishtest.New(t), platform: &platform{}}
	r.deps = publishingservice.Deps{
		DB: r.DB, Blobs: r.Disk, Keyring: r.Keyring, Connectors: r.Registry(r.platform), Clock: clock.System{},
		Waker: publishtest.Waker{}, Log: r.Logger, Node: "test",
	}
	r.deps.Access = r.Access(r.deps.Connectors, nil, nil)
	return r
}

// register makes c the only connector of the rig.
func (r *rig) register(c connector.Connector) {
	r.Helper()
	r.deps.Connectors = r.Registry(c)
	r.deps.Access = r.Access(r.deps.Connectors, nil, nil)
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
