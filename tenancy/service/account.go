// Package service carries out what is asked of tenancy: sign-in, sessions, API keys and new organizations.
package service

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/alexedwards/argon2id"

	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/limit"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
)

// Deps is what the service needs.
type Deps struct {
	DB          *pg.DB
	Clock       clock.Clock
	Revocations Revocations // nil when no other process receives them; a found key is used for five seconds then
}

const (
	hashWait       = 3 * time.Second // how long a password waits until it is hashed
	waitingPerSite = 8               // passwords of one site that wait
)

// Accounts signs people and programs in.
type Accounts struct {
	store *tenancystore.Store
	clock clock.Clock
	keys  *keyCache
	// sessions are not cached: they end at once.
	sessions *lookUps[tenancystore.Session]
	hash     *argon2id.Params
	slots    *limit.Fair[string] // in which passwords are hashed, by site
	decoy    string
}

// New makes the service. It hashes one password, to have something to compare with when the person is unknown.
func New(d Deps) (*Accounts, error) {
	a := &Accounts{
		store: tenancystore.New(d.DB), clock: d.Clock, slots: newSlots(hashesAtOnce(runtime.GOMAXPROCS(0))),
		hash: &argon2id.Params{Memory: 19 * 1024, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32},
	}
	a.keys = newKeyCache(d.Clock, d.Revocations, a.store.KeysByHash)
	a.sessions = &lookUps[tenancystore.Session]{find: a.findSessions}
	decoy, err := argon2id.CreateHash("no such person", a.hash)
	a.decoy = decoy
	return a, err
}

// hashesAtOnce is how many passwords are hashed at once: each takes a core whole, and tens of megabytes. Half of the cores
// are left to everything else.
func hashesAtOnce(cores int) int { return max(1, cores/2) }

func newSlots(n int) *limit.Fair[string] { return limit.NewFair[string](n, waitingPerSite) }

// NewOwner is a person with an organization of their own.
type NewOwner struct {
	Email, Name, Password, Organization string
}

// CreateOwner makes a person, who must be new, and an organization that they own. A taken address is Conflict.
func (a *Accounts) CreateOwner(ctx context.Context, n NewOwner) (tenancy.Principal, error) {
	const op = "tenancy.CreateOwner"
	if err := n.check(op); err != nil {
		return tenancy.Principal{}, err
	}
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
		return tenancy.Principal{}, pg.Fault(op, err)
	}
	return a.CreateOrganization(ctx, person.ID, n.Organization)
}

func (n NewOwner) check(op string) error {
	for _, text := range []struct{ name, value string }{{"e-mail address", n.Email}, {"name", n.Name}, {"organization's name", n.Organization}} {
		if !tenancy.Storable(text.value) {
			return fault.New(fault.Invalid, op, "The "+text.name+" holds a character that cannot be stored, such as NUL (U+0000).")
		}
	}
	return nil
}

// CreateOrganization makes an organization owned by an existing person.
func (a *Accounts) CreateOrganization(ctx context.Context, person tenancy.PersonID, name string) (tenancy.Principal, error) {
	o := tenancy.Organization{ID: id.New[tenancy.OrgTag](), Name: name, Timezone: "UTC", CreatedAt: a.clock.Now()}
	m := tenancy.Membership{Org: o.ID, Person: person, Role: tenancy.RoleSuperAdmin}
	if err := a.store.CreateOrganization(ctx, o, m); err != nil {
		return tenancy.Principal{}, pg.Fault("tenancy.CreateOrganization", err)
	}
	return tenancy.Principal{Org: o.ID, Person: person, Role: tenancy.RoleSuperAdmin, Via: tenancy.ViaSession}, nil
}

// SetTimezone changes the time zone of the caller's organization to an IANA name, or to the fixed offset of minutes
// east of UTC, and returns it as stored. New channels begin in it; what is booked and repeats keeps its own. Only an
// administrator may.
func (a *Accounts) SetTimezone(ctx context.Context, p tenancy.Principal, timezone string) (string, error) {
	const op = "tenancy.SetTimezone"
	if !p.Role.Manages() {
		return "", fault.New(fault.Forbidden, op, "Only an administrator may change the organization's time zone.")
	}
	asked, err := tenancy.ParseZone(timezone)
	if err != nil {
		return "", err
	}
	zone := asked.Name
	if asked.IsOffset {
		zone = tenancy.FixedZone(asked.Minutes)
	}
	if zone == "" {
		return "", fault.New(fault.Invalid, op, "Send the organization's time zone, such as Europe/Berlin.")
	}
	err = a.store.SetTimezone(ctx, p.Org, zone)
	if pg.IsNoRows(err) {
		return "", fault.New(fault.NotFound, op, "There is no such organization.")
	}
	return zone, pg.Fault(op, err)
}

// Login returns a fresh session token for the right pair of address and password. Anything else is Invalid, with the same
// words and the same work. Passwords are compared for the sites that log-ins come from one after the other, so that the
// log-ins of one hardly delay those of another; RateLimited says that too many of the site wait, or that it took too long.
func (a *Accounts) Login(ctx context.Context, site, email, password string) (string, error) {
	const op = "tenancy.Login"
	person, known, err := a.find(ctx, normal(email))
	if err != nil {
		return "", pg.Fault(op, err)
	}
	stored := person.PasswordHash
	if !known || stored == "" {
		stored = a.decoy
	}
	ok, err := a.matches(ctx, site, password, stored)
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

// find is somebody by address. One that cannot be stored is nobody's, and is not looked up.
func (a *Accounts) find(ctx context.Context, email string) (p tenancy.Person, known bool, err error) {
	if !tenancy.Storable(email) {
		return p, false, nil
	}
	p, err = a.store.PersonByEmail(ctx, email)
	if pg.IsNoRows(err) {
		return p, false, nil
	}
	return p, err == nil, err
}

func (a *Accounts) startSession(ctx context.Context, person tenancy.PersonID) (string, error) {
	const op = "tenancy.startSession"
	token, err := secret.Token("", 43) // 43 base62 characters hold 256 bits
	if err != nil {
		return "", fault.Wrap(fault.Internal, op, "", err)
	}
	now := a.clock.Now()
	if err := a.store.CreateSession(ctx, id.New[tenancy.SessionTag](), person, secret.HashToken(token), now, now.Add(tenancy.SessionAbsolute)); err != nil {
		return "", pg.Fault(op, err)
	}
	return token, nil
}

// Session finds whose live session a token is, in the chosen organization. A choice that is none, or no longer the person's, means
// their first organization, as "" does: the choice is a cookie that outlives memberships. Unauthenticated when there is no such
// session, or the person is a member nowhere.
func (a *Accounts) Session(ctx context.Context, token, organization string) (tenancy.Principal, error) {
	const op = "tenancy.Session"
	chosen, ok := id.Parse[tenancy.OrgTag](organization)
	if !ok {
		chosen = tenancy.OrgID{}
	}
	session, found, err := a.sessions.get(ctx, secret.HashToken(token))
	if err != nil {
		return tenancy.Principal{}, pg.Fault(op, err)
	}
	if !found {
		return tenancy.Principal{}, fault.New(fault.Unauthenticated, op, "Sign in first.")
	}
	m := session.Memberships[0]
	if i := slices.IndexFunc(session.Memberships, func(m tenancy.Membership) bool { return m.Org == chosen }); i >= 0 {
		m = session.Memberships[i]
	}
	return tenancy.Principal{Org: m.Org, Person: m.Person, Role: m.Role, Via: tenancy.ViaSession, Session: session.ID}, nil
}

func (a *Accounts) findSessions(ctx context.Context, hashes [][]byte) (map[string]tenancystore.Session, error) {
	return a.store.SessionsByHash(ctx, hashes, a.clock.Now())
}

// Logout ends a session.
func (a *Accounts) Logout(ctx context.Context, token string) error {
	return pg.Fault("tenancy.Logout", a.store.DeleteSession(ctx, secret.HashToken(token)))
}

func (a *Accounts) hashPassword(ctx context.Context, password string) (string, error) {
	if n := len([]rune(password)); n < 8 || n > 128 {
		return "", fault.New(fault.Invalid, "tenancy.hashPassword", "A password has 8 to 128 characters.")
	}
	release, err := a.slot(ctx, "") // of the operator
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

func (a *Accounts) matches(ctx context.Context, site, password, stored string) (bool, error) {
	release, err := a.slot(ctx, site)
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

// slot waits for one of the few places in which passwords are hashed, for hashWait at most. RateLimited means that too many
// of the site wait, or that there was none in time.
func (a *Accounts) slot(ctx context.Context, site string) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, hashWait)
	defer cancel()
	if release, err = a.slots.Enter(ctx, site); err == nil {
		return release, nil
	}
	message := "Too many log-ins are being made; try again in a moment."
	if errors.Is(err, limit.ErrFull) {
		message = "Too many log-ins from your network are being made; try again when they are answered."
	}
	return nil, &fault.Error{Kind: fault.RateLimited, Op: "tenancy.slot", Message: message, RetryAfter: hashWait, Err: err}
}

func normal(email string) string { return strings.ToLower(strings.TrimSpace(email)) }
