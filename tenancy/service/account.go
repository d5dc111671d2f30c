// Package service carries out what is asked of tenancy: sign-in, sessions, API keys and new organizations.
package service

import (
	"context"
	"strings"

	"github.com/alexedwards/argon2id"

	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
)

// Deps is what the service needs.
type Deps struct {
	DB     *pg.DB
	Clock  clock.Clock
	Notice Notice // tells other nodes of revoked keys; nil when there are none
}

// Accounts signs people and programs in.
type Accounts struct {
	store *tenancystore.Store
	clock clock.Clock
	keys  *keyCache
	hash  *argon2id.Params
	slots chan struct{} // every hash takes tens of megabytes
	decoy string
}

// New makes the service. It hashes one password, to have something to compare with when the person is unknown.
func New(d Deps) (*Accounts, error) {
	a := &Accounts{
		store: tenancystore.New(d.DB), clock: d.Clock, slots: make(chan struct{}, 4),
		hash: &argon2id.Params{Memory: 19 * 1024, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32},
	}
	a.keys = newKeyCache(d.Clock, d.Notice)
	decoy, err := argon2id.CreateHash("no such person", a.hash)
	a.decoy = decoy
	return a, err
}

// NewOwner is a person with an organization of their own.
type NewOwner struct {
	Email, Name, Password, Organization string
}

// CreateOwner makes a person, who must be new, and an organization that they own. A taken address is Conflict.
func (a *Accounts) CreateOwner(ctx context.Context, n NewOwner) (tenancy.Principal, error) {
	const op = "tenancy.CreateOwner"
	hash, err := a.hashPassword(ctx, n.Password)
	if err != nil {
		return tenancy.Principal{}, err
	}
	now := a.clock.Now()
	person := tenancy.Person{ID: id.New[tenancy.PersonTag](), Email: normal(n.Email), Name: n.Name, PasswordHash: hash, Activated: true, CreatedAt: now}
	if err := a.store.CreatePerson(ctx, person); err != nil {
		if pg.IsUnique(err, "person_email_key") {
			return tenancy.Principal{}, fault.New(fault.Conflict, op, "This e-mail address is taken.")
		}
		return tenancy.Principal{}, fault.Wrap(fault.Internal, op, "", err)
	}
	return a.CreateOrganization(ctx, person.ID, n.Organization)
}

// CreateOrganization makes an organization owned by an existing person.
func (a *Accounts) CreateOrganization(ctx context.Context, person tenancy.PersonID, name string) (tenancy.Principal, error) {
	o := tenancy.Organization{ID: id.New[tenancy.OrgTag](), Name: name, Timezone: "UTC", CreatedAt: a.clock.Now()}
	m := tenancy.Membership{Org: o.ID, Person: person, Role: tenancy.RoleSuperAdmin}
	if err := a.store.CreateOrganization(ctx, o, m); err != nil {
		return tenancy.Principal{}, fault.Wrap(fault.Internal, "tenancy.CreateOrganization", "", err)
	}
	return tenancy.Principal{Org: o.ID, Person: person, Role: tenancy.RoleSuperAdmin, Via: tenancy.ViaSession}, nil
}

// Login answers a fresh session token for the right pair of address and password. Anything else is Invalid, with the same words and the same work.
func (a *Accounts) Login(ctx context.Context, email, password string) (string, error) {
	const op = "tenancy.Login"
	person, err := a.store.PersonByEmail(ctx, normal(email))
	known := err == nil
	if err != nil && !pg.IsNoRows(err) {
		return "", fault.Wrap(fault.Internal, op, "", err)
	}
	stored := person.PasswordHash
	if !known || stored == "" {
		stored = a.decoy
	}
	ok, err := a.matches(ctx, password, stored)
	if err != nil {
		return "", err
	}
	if !ok || !known || person.PasswordHash == "" {
		return "", fault.New(fault.Invalid, op, "Invalid user name or password.")
	}
	if !person.Activated {
		return "", fault.New(fault.Invalid, op, "Confirm your e-mail address first.")
	}
	return a.startSession(ctx, person.ID)
}

func (a *Accounts) startSession(ctx context.Context, person tenancy.PersonID) (string, error) {
	const op = "tenancy.startSession"
	token, err := secret.Token("", 43) // 43 base62 characters hold 256 bits
	if err != nil {
		return "", fault.Wrap(fault.Internal, op, "", err)
	}
	now := a.clock.Now()
	if err := a.store.CreateSession(ctx, id.New[tenancy.SessionTag](), person, secret.HashToken(token), now, now.Add(tenancy.SessionAbsolute)); err != nil {
		return "", fault.Wrap(fault.Internal, op, "", err)
	}
	return token, nil
}

// Session finds whose live session a token is, in the chosen organization; "" is the person's first. Unauthenticated when it is none, or not a member there.
func (a *Accounts) Session(ctx context.Context, token, organization string) (tenancy.Principal, error) {
	const op = "tenancy.Session"
	denied := fault.New(fault.Unauthenticated, op, "Sign in first.")
	var org tenancy.OrgID
	if organization != "" {
		parsed, ok := id.Parse[tenancy.OrgTag](organization)
		if !ok {
			return tenancy.Principal{}, denied
		}
		org = parsed
	}
	session, m, err := a.store.SessionMembership(ctx, secret.HashToken(token), org, a.clock.Now())
	if pg.IsNoRows(err) {
		return tenancy.Principal{}, denied
	}
	if err != nil {
		return tenancy.Principal{}, fault.Wrap(fault.Internal, op, "", err)
	}
	return tenancy.Principal{Org: m.Org, Person: m.Person, Role: m.Role, Via: tenancy.ViaSession, Session: session}, nil
}

// Logout ends a session.
func (a *Accounts) Logout(ctx context.Context, token string) error {
	if err := a.store.DeleteSession(ctx, secret.HashToken(token)); err != nil {
		return fault.Wrap(fault.Internal, "tenancy.Logout", "", err)
	}
	return nil
}

func (a *Accounts) hashPassword(ctx context.Context, password string) (string, error) {
	if n := len([]rune(password)); n < 8 || n > 128 {
		return "", fault.New(fault.Invalid, "tenancy.hashPassword", "A password has 8 to 128 characters.")
	}
	release, err := a.slot(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	hash, err := argon2id.CreateHash(password, a.hash)
	if err != nil {
		return "", fault.Wrap(fault.Internal, "tenancy.hashPassword", "", err)
	}
	return hash, nil
}

func (a *Accounts) matches(ctx context.Context, password, stored string) (bool, error) {
	release, err := a.slot(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	ok, err := argon2id.ComparePasswordAndHash(password, stored)
	if err != nil {
		return false, fault.Wrap(fault.Internal, "tenancy.matches", "", err)
	}
	return ok, nil
}

// slot waits for one of the few places in which passwords are hashed.
func (a *Accounts) slot(ctx context.Context) (release func(), err error) {
	select {
	case a.slots <- struct{}{}:
		return func() { <-a.slots }, nil
	case <-ctx.Done():
		return nil, fault.Wrap(fault.Unavailable, "tenancy.slot", "Too many sign-ins at once; try again.", ctx.Err())
	}
}

func normal(email string) string { return strings.ToLower(strings.TrimSpace(email)) }
