package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"crier/apps/boot"
	"crier/platform/clock"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/registration"
)

// The numbers of organizations, channels and servers of the drills.
const (
	probeOrganizations   = 4
	probeChannels        = 2
	hangingOrganizations = 5 // together their posts exceed permits
	hangingChannels      = 8 // per organization and for each of the two hang drills
	hangingMachines      = 4
	lateChannels         = 7
	holeOrganizations    = 4
)

// populate creates the organizations as an administrator would, and connects their channels as
// their owners would: first the organizations of the traffic, then the organizations of the drills.
func (w *harness) populate(ctx context.Context, organizations int, faults []fault) error {
	db, err := pg.Open(ctx, pg.Config{URL: w.server.URL("crier"), RolePrefix: "crier", MaxConns: 6})
	if err != nil {
		return err
	}
	defer db.Close()
	tenants, err := boot.NewAccounts(boot.AccountsConfig{}, boot.AccountsDeps{DB: db, Clock: clock.System{}})
	if err != nil {
		return err
	}
	for i := range organizations {
		var accounts []account
		// One grade for each of the perOrganization channels.
		for _, grade := range []string{"A", "A", "C", "C", "E", "E", []string{"A", "C", "E"}[i%3]} {
			accounts = append(accounts, account{platform: w.platform.url(), grade: grade})
		}
		made, err := w.createOrganization(ctx, tenants, fmt.Sprintf("org%d", i+1), accounts)
		if err != nil {
			return err
		}
		w.channels = append(w.channels, made...)
	}
	return w.populateDrills(ctx, tenants, faults)
}

// createOrganization creates an organization with its owner, an API key and channels.
func (w *harness) createOrganization(
	ctx context.Context, tenants *boot.Accounts, name string, accounts []account,
) ([]channel, error) {
	o := organization{name: name, email: name + "@crier.test"}
	w.hashing.Lock() // one at a time, so that none waits for a slot to hash its password
	owner, err := tenants.CreateOwner(ctx, registration.NewOwner{Email: o.email, Name: "Owner", Password: password,
		Organization: o.name})
	w.hashing.Unlock()
	if err != nil {
		return nil, err
	}
	o.key, _, err = tenants.CreateKey(ctx, owner, tenancy.NewKey{Name: "crash"})
	if err != nil {
		return nil, err
	}
	return w.client.connect(ctx, o, accounts)
}

// drillOrganization is one organization of a drill.
type drillOrganization struct {
	kind     string
	accounts []account
}

// populateDrills creates the organizations of the drills that this run has.
func (w *harness) populateDrills(ctx context.Context, tenants *boot.Accounts, faults []fault) error {
	times := map[string]int{}
	for _, s := range faults {
		times[s.Kind]++
	}
	groups := w.drillOrganizations(times)
	made := make([][]channel, len(groups))
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for i, x := range groups {
		g.Go(func() (err error) {
			made[i], err = w.createOrganization(inner, tenants, fmt.Sprintf("%s%d", x.kind, i+1), x.accounts)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	w.drillChannels = map[string][]int{}
	for i, x := range groups {
		for _, c := range made[i] {
			w.drillChannels[x.kind] = append(w.drillChannels[x.kind], len(w.channels))
			w.channels = append(w.channels, c)
		}
	}
	return nil
}

// drillOrganizations returns the organizations that are needed for the given number of drills of
// each kind.
func (w *harness) drillOrganizations(times map[string]int) (out []drillOrganization) {
	add := func(kind string, organizations int, accounts ...account) {
		for range organizations {
			out = append(out, drillOrganization{kind: kind, accounts: accounts})
		}
	}
	repeat := func(n int, grades ...string) (all []account) {
		for i := range n {
			all = append(all, account{platform: w.drillPlatform.url(), grade: grades[i%len(grades)]})
		}
		return all
	}
	for _, kind := range slices.Sorted(maps.Keys(times)) {
		switch n := times[kind]; kind {
		case hang1, hang4:
			var accounts []account
			for i := range hangingChannels {
				machine := w.hangProxies[i%machinesOf(kind)]
				accounts = append(accounts, account{platform: "http://" + machine.Address,
					grade: []string{"A", "C"}[i/hangingMachines%2]})
			}
			add(kind, hangingOrganizations, accounts...)
		case silence:
			add(kind, 1, repeat(n, "A", "C", "A")...)
		case panics:
			add(kind, 1, repeat(n, "A", "C", "C", "E")...)
		case refusedRow:
			add(kind, 1, repeat(n+1, "A", "C")...)
		case noGrant:
			add(kind, 1, repeat(8, "E", "E", "A", "C")...)
		case lateOutage:
			add(kind, 1, repeat(lateChannels, "A", "C")...)
		case blackHole:
			add(kind, holeOrganizations, repeat(1, "A")...)
		}
	}
	if len(out) > 0 {
		add(probe, probeOrganizations, repeat(probeChannels, "A", "C")...)
	}
	return out
}

// machinesOf returns the number of servers that hang in a drill.
func machinesOf(kind string) int {
	if kind == hang1 {
		return 1
	}
	return hangingMachines
}
