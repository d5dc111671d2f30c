package cluster_test

import (
	"testing"

	"crier/platform/pg"
	"crier/tests/dbtest"
	"crier/tests/faultnet"
)

// openProxied returns a database reached through a proxy, and the same database reached directly.
func openProxied(t *testing.T) (p *faultnet.Proxy, proxied, direct *pg.DB) {
	t.Helper()
	address := dbtest.URL(t)
	p, proxyAddress := faultnet.Start(t, address)
	return p, dbtest.OpenURL(t, proxyAddress), dbtest.OpenURL(t, address)
}
