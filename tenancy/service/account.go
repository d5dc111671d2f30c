// Package service implements sign-in, sessions, API keys and the creation of people and organizations.
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

// Deps are what New needs. Only Revocations may be nil.
type Deps struct {
	DB    *pg.DB
	Clock clock.Clock
	// Revocations is nil when there are no other processes to exchange revocations with. Then a found key is cached for
	// only five seconds.
	Revocations Revocations
}

const (
	// hashWait is how long a log-in waits for a slot.
	hashWait = 3 * time.Second
	// waitingPerSite is the greatest number of log-ins of one site that wait for a slot.
	waitingPerSite = 8
)

// Accounts authenticates people and programs, and creates people, organizations and keys. It is safe for concurrent
// use.
type Accounts struct {
	store *tenancystore.Store
	clock clock.Clock
	keys  *keyCache
	// sessions are not cached, so that a session ends at once in all processes.
	sessions *lookUps[tenancystore.Session]
	hash     *argon2id.Params
	slots    *limit.Fair[string] // limits concurrent hashing of passwords, fairly by site
	decoy    string              // the hash that is compared when the person is unknown
}

// New returns an Accounts. It computes one password hash, which takes about as long as a log-in. It returns the error
// of the system's source of randomness.
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

// hashesAtOnce returns the number of passwords that are hashed concurrently. Each needs a whole core and tens of
// megabytes, so half of the cores are left for other work.
func hashesAtOnce(cores int) int { return max(1, cores/2) }

func newSlots(n int) *limit.Fair[string] { return limit.NewFair[string](n, waitingPerSite) }

// NewOwner is the input of CreateOwner. Email is stored in lower case, without spaces around it.
type NewOwner struct {
	Email, Name, Password string
	// Organization is the name of the organization, of 1 to 128 characters.
	Organization string
}

// CreateOwner creates a person and an organization that the person owns. An address that is in use is fault.Conflict. A
// password that has not 8 to 128 characters, and a text that the database cannot store, are fault.Invalid. After a
// crash the person may exist without an organization.
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
	person := tenancy.Person{
		ID: id.New[tenancy.PersonTag](), Email: normal(n.Email), Name: n.Name,
		PasswordHash: hash, Activated: true, CreatedAt: now,
	}
	if err := a.store.CreatePerson(ctx, person); err != nil {
		if pg.IsUnique(err, "person_email_key") {
			return tenancy.Principal{}, fault.New(fault.Conflict, op, "This e-mail address is taken.")
		}
		return tenancy.Principal{}, pg.Fault(op, err)
	}
	return a.CreateOrganization(ctx, person.ID, n.Organization)
}

func (n NewOwner) check(op string) error {
	for _, text := range []struct{ name, value string }{
		{name: "e-mail address", value: n.Email},
		{name: "name", value: n.Name},
		{name: "organization's name", value: n.Organization},
	} {
		if !tenancy.Storable(text.value) {
			return fault.New(fault.Invalid, op,
				"The "+text.name+" holds a character that cannot be stored, such as NUL (U+0000).")
		}
	}
	return nil
}

// CreateOrganization creates an organization that an existing person owns. It returns the principal of that person. The
// errors are those of pg.Fault.
func (a *Accounts) CreateOrganization(
	ctx context.Context, person tenancy.PersonID, name string,
) (tenancy.Principal, error) {
	o := tenancy.Organization{ID: id.New[tenancy.OrgTag](), Name: name, Timezone: "UTC", CreatedAt: a.clock.Now()}
	m := tenancy.Membership{Org: o.ID, Person: person, Role: tenancy.RoleSuperAdmin}
	if err := a.store.CreateOrganization(ctx, o, m); err != nil {
		return tenancy.Principal{}, pg.Fault("tenancy.CreateOrganization", err)
	}
	return tenancy.Principal{Org: o.ID, Person: person, Role: tenancy.RoleSuperAdmin, Via: tenancy.ViaSession}, nil
}

// SetTimezone sets the time zone of the principal's organization and returns the stored name. New channels get this
// zone; existing channels and recurring posts keep theirs. A principal who is no administrator is fault.Forbidden, and
// the zero ZoneRequest is fault.Invalid.
func (a *Accounts) SetTimezone(ctx context.Context, p tenancy.Principal, asked tenancy.ZoneRequest) (string, error) {
	const op = "tenancy.SetTimezone"
	if !p.Role.Manages() {
		return "", fault.New(fault.Forbidden, op, "Only an administrator may change the organization's time zone.")
	}
	zone := asked.Name
	if asked.IsOffset {
		zone = tenancy.FixedZone(asked.Minutes)
	}
	if zone == "" {
		return "", fault.New(fault.Invalid, op, "Send the organization's time zone, such as Europe/Berlin.")
	}
	err := a.store.SetTimezone(ctx, p.Org, zone)
	if pg.IsNoRows(err) {
		return "", fault.New(fault.NotFound, op, "There is no such organization.")
	}
	return zone, pg.Fault(op, err)
}

// Login checks an address and a password and returns the token of a new session. A wrong password and an unknown
// address are fault.Invalid with the same message after the same work. Sites, the networks of clients, take turns in
// the hashing of passwords, so that many log-ins of one site hardly delay those of others. Login returns
// fault.RateLimited when too many log-ins of the site are waiting, or after waiting for hashWait.
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

// find returns the person with an address; known is false when there is none. It does not look up an address that
// cannot be stored.
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

// startSession creates a session and returns its token, of which only the hash is stored.
func (a *Accounts) startSession(ctx context.Context, person tenancy.PersonID) (string, error) {
	const op = "tenancy.startSession"
	token, err := secret.Token("", 43) // 43 base62 characters have 256 bits
	if err != nil {
		return "", fault.Wrap(fault.Internal, op, "", err)
	}
	now := a.clock.Now()
	session, expires := id.New[tenancy.SessionTag](), now.Add(tenancy.SessionAbsolute)
	if err := a.store.CreateSession(ctx, session, person, secret.HashToken(token), now, expires); err != nil {
		return "", pg.Fault(op, err)
	}
	return token, nil
}

// Session returns the principal of a session token in the chosen organization. If the choice is empty, not valid or not
// an organization of the person, it is replaced by the person's first organization, because the choice is in a cookie
// that may be older than a change of memberships. Session returns fault.Unauthenticated when there is no live session,
// and when the person has no enabled membership.
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
	i := slices.IndexFunc(session.Memberships, func(m tenancy.Membership) bool { return m.Org == chosen })
	if i >= 0 {
		m = session.Memberships[i]
	}
	return tenancy.Principal{
		Org: m.Org, Person: m.Person, Role: m.Role, Via: tenancy.ViaSession, Session: session.ID,
	}, nil
}

func (a *Accounts) findSessions(ctx context.Context, hashes [][]byte) (map[string]tenancystore.Session, error) {
	return a.store.SessionsByHash(ctx, hashes, a.clock.Now())
}

// Logout deletes the session of a token. A token without a session is no error.
func (a *Accounts) Logout(ctx context.Context, token string) error {
	return pg.Fault("tenancy.Logout", a.store.DeleteSession(ctx, secret.HashToken(token)))
}

// hashPassword returns fault.Invalid for a password that has not 8 to 128 characters, and the errors of slot.
func (a *Accounts) hashPassword(ctx context.Context, password string) (string, error) {
	if n := len([]rune(password)); n < 8 || n > 128 {
		return "", fault.New(fault.Invalid, "tenancy.hashPassword", "A password has 8 to 128 characters.")
	}
	release, err := a.slot(ctx, "") // the operator has no site
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

// matches reports whether the password has the stored hash. It returns the errors of slot, and fault.Internal for a
// stored text that is no hash.
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

// slot waits at most hashWait for a slot in which a password may be hashed. The caller calls release. It returns
// fault.RateLimited when too many log-ins of the site are waiting, and when no slot became free in time.
func (a *Accounts) slot(ctx context.Context, site string) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, hashWait)
	defer cancel()
	release, err = a.slots.Enter(ctx, site)
	if err != nil {
		message := "Too many log-ins are being made; try again in a moment."
		if errors.Is(err, limit.ErrFull) {
			message = "Too many log-ins from your network are being made; try again when they are answered."
		}
		return nil, &fault.Error{
			Kind: fault.RateLimited, Op: "tenancy.slot", Message: message, RetryAfter: hashWait, Err: err,
		}
	}
	return release, nil
}

// normal returns an address in the form in which it is stored.
func normal(email string) string { return strings.ToLower(strings.TrimSpace(email)) }
