package wall

import (
	"net/http"
	"slices"
	"testing"

	"crier/apps/edge"
	"crier/tenancy"
)

// TestRoutes_ImpersonationIsRefusedOrRecorded calls every session route that may change something,
// as an instance administrator who impersonates the owner. Either the route refuses, or the audit
// log names the administrator and the request.
func TestRoutes_ImpersonationIsRefusedOrRecorded(t *testing.T) {
	t.Parallel()
	table, w := readPermissions(t), newWorld(t)
	personal, recorded := 0, 0
	for _, r := range inOrder(edge.Routes()) {
		session := slices.Contains([]string{"member", "admin", "owner", "person", "instance"}, table.routes[table.name(r)].class)
		if r.State != edge.Built || !session || r.Method == http.MethodGet && !r.Changing() {
			continue
		}
		before := w.acted(t, r)
		status, wrong := w.call(t, table, r, "acting")
		for _, fault := range wrong {
			t.Error(fault)
		}
		n := w.acted(t, r) - before
		switch {
		case r.Personal:
			personal++
			if status != http.StatusForbidden || n != 0 {
				t.Errorf("%s is personal: answered %d with %d entries, want 403 and none", r, status, n)
			}
		case n != 1:
			t.Errorf("%s as somebody who acts as the owner: answered %d, the audit log has %d entries of it, want 1", r, status, n)
		default:
			recorded++
		}
	}
	if personal < 15 || recorded < 20 {
		t.Errorf("%d routes were refused and %d recorded, want 15 and 20 at least", personal, recorded)
	}
}

// acted returns the number of audit entries of the first organization that name the administrator
// and a request of the route.
func (w *fixture) acted(t *testing.T, r edge.Route) (n int) {
	t.Helper()
	must(t, w.super.QueryRow(t.Context(), `select count(*) from audit where org_id = $1 and action = $2 and behind = $3
		and actor = $4 and subject like $5`, w.first, tenancy.ActionImpersonatedRequest, w.accounts["acting"].email,
		w.accounts["owner"].email, r.Method+" "+r.Operation+" /%").Scan(&n))
	return n
}
