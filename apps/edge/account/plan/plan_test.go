package plan_test

import (
	"testing"

	"crier/tests/edgetest"
)

func TestAccounts_EveryRoute(t *testing.T) {
	t.Parallel()
	edgetest.CheckExchanges(t, []edgetest.Exchange{
		{As: edgetest.AdminSession, Method: "GET", Path: "/user/subscription", Status: 200, Parts: []string{`{"subscription":null}`}, Calls: []string{"Self"}},
		{As: edgetest.UserSession, Method: "GET", Path: "/user/subscription/tiers", Status: 200, Parts: []string{`{"month":[],"year":[],"tiers":[]}`}},
	})
}
