package instance_test

import (
	"errors"
	"slices"
	"testing"

	"crier/tenancy"
	"crier/tests/tenancytest"
)

func TestSyncAllPublishing_FindsWhatTasksGaveUp(t *testing.T) {
	t.Parallel()
	p := newExpiring(t)
	marked, freed, right := tenancytest.Owner(t, p.Accounts, "a@example.com").Org, tenancytest.Owner(t, p.Accounts, "b@example.com").Org,
		tenancytest.Owner(t, p.Accounts, "c@example.com").Org
	tenancytest.Gate(p.t, p.db, `update organization set suspended_at = now() where id = any ($1)`, [][16]byte{marked.UUID(), right.UUID()})
	p.publishing.IsStopped = []tenancy.OrgID{freed, right}
	p.publishing.Fails = errors.New("the disk is full")
	n, err := p.SyncAllPublishing(t.Context())
	slices.Sort(p.publishing.Synced)
	want := []string{"resume " + freed.String(), "stop " + marked.String()}
	if n != 2 || err == nil || !slices.Equal(p.publishing.Synced, want) {
		t.Errorf("got %d, %v and the calls %q, want 2, an error and %q", n, err, p.publishing.Synced, want)
	}
}
