package cluster_test

import (
	"testing"

	"crier/platform/pg"
	"crier/tests/dbtest"
	"crier/tests/faultnet"
)

// through returns a database that is reached through a proxy, and the same database reached directly.
func through(t *testing.T) (p *faultnet.Proxy, proxied, direct *pg.DB) {
	t.Helper()
	address := dbtest.URL(t)
	p, way := faultnet.Start(t, address)
	return p, dbtest.OpenURL(t, way), dbtest.OpenURL(t, address)
}
