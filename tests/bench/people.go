package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/apps/boot"
	"crier/platform/clock"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/registration"
	"crier/tests/call"
)

const (
	password   = "a bench of seven words to sign in"
	people     = 1000
	peopleOrgs = 100
)

// crowd is a running service with people who can sign in.
type crowd struct {
	*testDB
	node *node
	orgs []tenant
	// emails has the addresses of the people. The first len(orgs) people each own an organization,
	// and the others are assigned to the organizations in turn as members.
	emails []string
	// hash is the stored password hash of all people, made by the service's own code.
	hash string
	http *http.Client
	// attempts counts log-ins, because each must come from a separate network.
	attempts atomic.Uint32
	// idle is what the service used in idleSpan without requests.
	idle     cost
	idleSpan time.Duration
}

// withPeople runs do with a service whose request limits are out of reach and which trusts
// X-Forwarded-For.
func (r *rig) withPeople(ctx context.Context, users int, do func(w *crowd) error) error {
	return r.withDB(ctx, func(b *testDB) (err error) {
		w := &crowd{testDB: b, idleSpan: time.Duration(r.opts.seconds) * time.Second / 12}
		w.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: users}, Timeout: time.Minute}
		w.node, err = b.serve(ctx,
			append(r.opts.settings, unlimited, "APP_LIMIT=1000000000", "TRUSTED_PROXIES=127.0.0.1")...)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.node.stop()) }()
		if w.orgs, err = b.createTenants(ctx, peopleOrgs, 0); err != nil {
			return err
		}
		if w.hash, err = b.hashOf(ctx, password); err != nil {
			return err
		}
		if err := w.createPeople(ctx); err != nil {
			return err
		}
		if err := b.settle(ctx); err != nil {
			return err
		}
		return errors.Join(w.measureIdle(ctx), do(w))
	})
}

// hashOf creates an owner with the service's own code and returns the stored hash of the password,
// so that the people and the floor use the service's parameters.
func (b *testDB) hashOf(ctx context.Context, password string) (hash string, err error) {
	db, err := pg.Open(ctx, pg.Config{URL: b.server.URL(b.name)})
	if err != nil {
		return "", err
	}
	defer db.Close()
	accounts, err := boot.NewAccounts(boot.AccountsConfig{}, boot.AccountsDeps{DB: db, Clock: clock.System{}})
	if err != nil {
		return "", err
	}
	owner, err := accounts.CreateOwner(ctx, registration.NewOwner{
		Email: "owner@bench.example", Name: "Owner", Password: password, Organization: "Bench",
	})
	if err != nil {
		return "", err
	}
	err = b.super.QueryRow(ctx, "select password_hash from person where id = $1", owner.Person.UUID()).Scan(&hash)
	return hash, err
}

func (w *crowd) createPeople(ctx context.Context) error {
	var persons, members [][]any
	for i := range people {
		person, role := id.New[tenancy.PersonTag]().UUID(), tenancy.RoleUser
		if i < len(w.orgs) {
			role = tenancy.RoleSuperAdmin
		}
		w.emails = append(w.emails, fmt.Sprintf("person%06d@bench.example", i))
		persons = append(persons, []any{person, w.emails[i], "Person", w.hash})
		members = append(members, []any{w.orgs[i%len(w.orgs)].org.UUID(), person, string(role)})
	}
	if _, err := w.super.CopyFrom(ctx, pgx.Identifier{"person"}, []string{"id", "email", "name", "password_hash"},
		pgx.CopyFromRows(persons)); err != nil {
		return err
	}
	_, err := w.super.CopyFrom(ctx, pgx.Identifier{"member"}, []string{"org_id", "person_id", "role"},
		pgx.CopyFromRows(members))
	return err
}

func (w *crowd) measureIdle(ctx context.Context) error {
	before, err := w.cost(ctx, w.node)
	if err != nil {
		return err
	}
	if err := wait(ctx, w.idleSpan); err != nil {
		return err
	}
	after, err := w.cost(ctx, w.node)
	w.idle = after.since(before)
	return err
}

// from returns a header that makes each request come from another network, so that no limit for
// networks delays it; see TRUSTED_PROXIES.
func (w *crowd) from() []string {
	i := w.attempts.Add(1)
	return []string{"X-Forwarded-For", fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)}
}

// login signs in with an address and a password.
func (w *crowd) login(ctx context.Context, email, password string, want int) (call.Answer, error) {
	a, err := call.Do(ctx, w.http, http.MethodPost, "http://"+w.node.address+"/auth/login",
		m{"provider": "LOCAL", "email": email, "password": password}, w.from()...)
	if err == nil && a.Status != want {
		err = fmt.Errorf("log-in as %s: got %.300v, want status %d", email, a, want)
	}
	return a, err
}
