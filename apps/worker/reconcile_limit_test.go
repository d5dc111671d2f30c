package worker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"crier/platform/id"
	"crier/tenancy"
)

func TestReconcileLimiter_SharesSlotsAndBacksOff(t *testing.T) {
	t.Parallel()
	l := newReconcileLimiter(longestRest)
	l.slots = 12
	of := func(place string) reconcileKey { return reconcileKey{destination: place} }
	admitted := map[string]int{}
	for range 20 {
		for _, place := range []string{"@a", "@b"} {
			if l.admit(of(place)) {
				admitted[place]++
			}
		}
	}
	if admitted["@a"] != 4 || admitted["@b"] != 4 || !l.admit(of("@c")) {
		t.Fatalf("two silent destinations take %v of 12 slots", admitted)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for range 4 {
		l.done(of("@a"), true, true, now)
	}
	if resting := l.resting(now.Add(30 * time.Second)); len(resting) != 1 || resting[0] != "@a" {
		t.Fatalf("after four failures in a row rest %v", resting)
	}
	if resting := l.resting(now.Add(longestRest)); len(resting) != 0 {
		t.Fatalf("%v rest for ever", resting)
	}
	if !l.admit(of("@a")) || l.admit(of("@a")) {
		t.Fatal("a destination that failed is not asked one question at a time")
	}
	l.done(of("@a"), true, false, now)
	for range 2 {
		if !l.admit(of("@a")) {
			t.Fatal("a destination that answers again is asked one question at a time")
		}
	}
}

func TestReconcileLimiter_BoundsOneOrganization(t *testing.T) {
	t.Parallel()
	l := newReconcileLimiter(longestRest)
	many, other := id.New[tenancy.OrgTag](), id.New[tenancy.OrgTag]()
	admitted := 0
	for n := range 1000 {
		if l.admit(reconcileKey{org: many, destination: fmt.Sprintf("@host-%d.example", n)}) {
			admitted++
		}
	}
	if admitted != orgSlots || !l.admit(reconcileKey{org: other, destination: "@other.example"}) {
		t.Errorf("an organization with many hosts takes %d of %d slots", admitted, l.slots)
	}
	l.done(reconcileKey{org: many, destination: "@host-0.example"}, true, false, time.Now())
	if !l.admit(reconcileKey{org: many, destination: "@host-1000.example"}) || l.admit(reconcileKey{org: many, destination: "@host-1001.example"}) {
		t.Error("a slot that is given back is not taken again, or twice")
	}
}

// failOnce makes one failing request to a destination for each organization.
func failOnce(t *testing.T, l *reconcileLimiter, place string, now time.Time, orgs ...tenancy.OrgID) {
	t.Helper()
	for _, org := range orgs {
		a := reconcileKey{org: org, destination: place}
		if !l.admit(a) {
			t.Fatalf("a question to %s must wait", place)
		}
		l.done(a, true, true, now)
	}
}

func TestReconcileLimiter_EvictsTheOldestFailures(t *testing.T) {
	t.Parallel()
	l, now := newReconcileLimiter(longestRest), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	fill := func(day int) {
		for range maxTargets / maxOrgTargets {
			org := id.New[tenancy.OrgTag]()
			for range maxOrgTargets {
				failOnce(t, l, fmt.Sprintf("@%d-%d.example", day, len(l.all)), now, org)
			}
		}
	}
	fill(1)
	if len(l.all) != maxTargets {
		t.Fatalf("%d destinations are remembered, want %d", len(l.all), maxTargets)
	}
	now = now.Add(firstRest)
	failOnce(t, l, "@fails.example", now, id.New[tenancy.OrgTag]())
	if got := l.resting(now); len(got) != 1 || len(l.all) != maxTargets {
		t.Errorf("%v rest of %d that are remembered, want the last to fail of %d", got, len(l.all), maxTargets)
	}
	a := reconcileKey{org: id.New[tenancy.OrgTag](), destination: "@fails.example"}
	if !l.admit(a) || l.admit(a) {
		t.Error("a destination that failed is not asked one question at a time beside many others that failed")
	}
	now = now.Add(targetLife + longestRest)
	failOnce(t, l, "@last.example", now, id.New[tenancy.OrgTag]())
	if len(l.all) != 2 || l.all["@fails.example"] == nil {
		t.Errorf("%d destinations are remembered long after they failed, want the last and the one that is asked", len(l.all))
	}
}

func TestReconcileLimiter_OrganizationEvictsOnlyItsOwn(t *testing.T) {
	t.Parallel()
	l, now := newReconcileLimiter(longestRest), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	many, other := id.New[tenancy.OrgTag](), id.New[tenancy.OrgTag]()
	failOnce(t, l, "@other.example", now, other)
	failOnce(t, l, "@shared.example", now, many, other)
	for n := range 2 * maxTargets {
		failOnce(t, l, fmt.Sprintf("@host-%d.example", n), now.Add(time.Second), many)
	}
	if got := l.resting(now); !slices.Contains(got, "@other.example") || !slices.Contains(got, "@shared.example") || len(l.all) != maxOrgTargets+2 {
		t.Errorf("%d destinations are remembered, want the %d of one organization and two that failed for another", len(l.all), maxOrgTargets)
	}
}
