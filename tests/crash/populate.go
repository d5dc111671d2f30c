package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"crier/platform/clock"
	"crier/platform/pg"
	tenancyservice "crier/tenancy/service"
)

// How many organizations, channels and machines the drills have.
const (
	probeOrganizations   = 4
	probeChannels        = 2
	hangingOrganizations = 5 // each with as many posts in flight as it may have: together more than permits
	hangingChannels      = 8 // of each organization in each of the two hangs
	hangingMachines      = 4
	lateChannels         = 7
	holeOrganizations    = 4
)

// populate makes the organizations, as an administrator would, and their channels, as their owners would: first those
// of the traffic, then those of the drills.
func (w *world) populate(ctx context.Context, organizations int, strikes []strike) error {
	db, err := pg.Open(ctx, pg.Config{URL: w.server.URL("crier"), RolePrefix: "crier", MaxConns: 6})
	if err != nil {
		return err
	}
	defer db.Close()
	tenants, err := tenancyservice.New(tenancyservice.Deps{DB: db, Clock: clock.System{}})
	if err != nil {
		return err
	}
	for i := range organizations {
		var accounts []account
		for _, grade := range []string{"A", "A", "C", "C", "E", "E", []string{"A", "C", "E"}[i%3]} { // perOrganization of them
			accounts = append(accounts, account{w.platform.url(), grade})
		}
		made, err := w.enrol(ctx, tenants, fmt.Sprintf("org%d", i+1), accounts)
		if err != nil {
			return err
		}
		w.channels = append(w.channels, made...)
	}
	return w.populateStage(ctx, tenants, strikes)
}

// enrol makes an organization with its owner, a key and channels.
func (w *world) enrol(ctx context.Context, tenants *tenancyservice.Accounts, name string, accounts []account) ([]channel, error) {
	o := organization{name: name, email: name + "@crier.test"}
	owner, err := tenants.CreateOwner(ctx, tenancyservice.NewOwner{Email: o.email, Name: "Owner", Password: password, Organization: o.name})
	if err != nil {
		return nil, err
	}
	if o.key, _, err = tenants.CreateKey(ctx, owner, "crash"); err != nil {
		return nil, err
	}
	return w.client.connect(ctx, o, accounts)
}

// group is one organization of a drill.
type group struct {
	kind     string
	accounts []account
}

// populateStage makes what the drills of this run need, and nothing for those that it has not.
func (w *world) populateStage(ctx context.Context, tenants *tenancyservice.Accounts, strikes []strike) error {
	times := map[string]int{}
	for _, s := range strikes {
		times[s.Kind]++
	}
	groups := w.groups(times)
	made := make([][]channel, len(groups))
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for i, x := range groups {
		g.Go(func() (err error) {
			made[i], err = w.enrol(inner, tenants, fmt.Sprintf("%s%d", x.kind, i+1), x.accounts)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	w.stage = map[string][]int{}
	for i, x := range groups {
		for _, c := range made[i] {
			w.stage[x.kind] = append(w.stage[x.kind], len(w.channels))
			w.channels = append(w.channels, c)
		}
	}
	return nil
}

// groups are the organizations of the drills that are asked for so many times.
func (w *world) groups(times map[string]int) (out []group) {
	add := func(kind string, organizations int, accounts ...account) {
		for range organizations {
			out = append(out, group{kind, accounts})
		}
	}
	repeat := func(n int, grades ...string) (all []account) {
		for i := range n {
			all = append(all, account{w.aside.url(), grades[i%len(grades)]})
		}
		return all
	}
	for _, kind := range slices.Sorted(maps.Keys(times)) {
		switch n := times[kind]; kind {
		case hang1, hang4:
			var accounts []account
			for i := range hangingChannels {
				machine := w.hanging[i%machinesOf(kind)]
				accounts = append(accounts, account{"http://" + machine.Address, []string{"A", "C"}[i/hangingMachines%2]})
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

// machinesOf is how many machines hang in a drill.
func machinesOf(kind string) int {
	if kind == hang1 {
		return 1
	}
	return hangingMachines
}
