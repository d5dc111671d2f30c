package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"crier/apps/boot"
	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/mail"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/registration"
	"crier/tests/call"
)

// masses returns members that no request body of the interface has, or that a caller must not
// choose.
func masses(org, person string) m {
	return m{
		"role": "SUPERADMIN", "owner": true, "superAdmin": true, "isSuperAdmin": true, "admin": true, "instance": true,
		"instanceAdmin": true, "instance_admin": true, "plan": "ULTIMATE", "tier": "ULTIMATE", "subscription": m{"tier": "ULTIMATE"},
		"verified": true, "activated": true, "emailVerified": true, "orgId": org, "org_id": org, "organizationId": org,
		"organization": m{"id": org}, "personId": person, "person_id": person, "userId": person, "createdBy": person,
		"suspendedAt": nil, "deletedAt": nil, "isLifetime": true, "allowTrial": true, "mfaRequired": false,
	}
}

// with returns the members of both. If both have a member, extra wins.
func with(body, extra m) m {
	out := m{}
	for _, members := range []m{body, extra} {
		for name, value := range members {
			out[name] = value
		}
	}
	return out
}

func TestAccounts_ForbiddenMembersAreIgnored(t *testing.T) {
	t.Parallel()
	s := startInstance(t, nil)
	victim := s.account(t, "victim@example.com")
	more := masses(victim.org, victim.id)
	b := s.browse()
	b.register(t, "eve@example.com", with(m{"company": "Eve's"}, more))
	if got := s.count(t, "select count(*) from person where email = 'eve@example.com'"); got != 0 {
		t.Error("got a person before the link was followed: verified was taken from the body")
	}
	b.activate(t, "eve@example.com", 1)
	if got := b.self(t); got.Admin || got.OrgID == victim.org || got.ID == victim.id {
		t.Errorf("got %+v, want a new person with an organization of their own", got)
	}
	token, _ := victim.invite(t, "eve@example.com", "USER", false)
	b.join(t, token)
	b.want(t, http.StatusCreated, nil, http.MethodPost, "/user/change-org", m{"id": victim.org})
	b.want(t, http.StatusCreated, nil, http.MethodPost, "/user/personal", with(more, m{"fullname": "Eve", "email": "root@example.com"}))
	b.want(t, http.StatusCreated, nil, http.MethodPost, "/user/setup", with(more, m{"company": "Taken", "fullname": "Eve"}))
	if got := b.on(1).self(t); got.Role != "USER" || got.Admin || got.Email != "eve@example.com" {
		t.Errorf("got %+v, want a USER with her address", got)
	}
	for _, c := range []unsafeCall{
		{http.MethodPost, "/settings/api-keys", with(more, m{"name": "Mine"})},
		{http.MethodPost, "/settings/team", with(more, m{"role": "ADMIN", "email": ""})},
		{http.MethodPut, "/settings/team/" + b.id + "/role", with(more, m{"role": "SUPERADMIN", "password": password})},
		{http.MethodPut, "/settings/organization", with(more, m{"name": "Taken"})},
		{http.MethodPut, "/user/mfa/policy", with(more, m{"required": true})},
	} {
		if got := b.ask(t, c.method, c.path, c.body); got.Status != http.StatusForbidden {
			t.Errorf("%s %s by a USER: got %v, want 403", c.method, c.path, got)
		}
	}
	b.want(t, http.StatusCreated, nil, http.MethodPost, "/user/organizations", with(more, m{"name": "Mine", "id": victim.org}))
	b.self(t)
	for _, role := range []string{"SUPERADMIN", "OWNER", "", "superadmin"} {
		if got := b.ask(t, http.MethodPost, "/settings/team", m{"role": role, "email": ""}); got.Status != http.StatusBadRequest {
			t.Errorf("an invitation with the role %q: got %v, want 400", role, got)
		}
	}
	before := s.count(t, "select count(*) from api_key where org_id = $1", victim.org)
	b.want(t, http.StatusCreated, nil, http.MethodPost, "/settings/api-keys",
		with(more, m{"name": "Mine", "id": victim.id, "key": "crier_" + strings.Repeat("a", 40), "prefix": "crier_aaaa"}))
	if got := s.count(t, "select count(*) from api_key where org_id = $1", victim.org); got != before || b.org == victim.org {
		t.Errorf("got %d keys of the other organization, want %d", got, before)
	}
	if got := s.withKey(t, 0, "crier_"+strings.Repeat("a", 40)); got != http.StatusUnauthorized {
		t.Errorf("got %d with a key that the caller chose, want 401", got)
	}
	b.want(t, http.StatusOK, nil, http.MethodPut, "/settings/organization", with(more, m{"name": "Renamed", "id": victim.org}))
	if got := s.count(t, "select count(*) from organization where id = $1 and name = 'Of victim@example.com'", victim.org); got != 1 {
		t.Error("got the other organization renamed")
	}
}

func TestAccounts_InvitationWorksOnceForItsPerson(t *testing.T) {
	t.Parallel()
	s := common(t)
	owner, friend, stranger := s.account(t, "owner@invited.example"), s.account(t, "friend@invited.example"), s.account(t, "stranger@invited.example")
	token, _ := owner.invite(t, "friend@invited.example", "USER", false)
	forwarded := m{"org": token}
	stranger.want(t, http.StatusForbidden, nil, http.MethodPost, "/user/join-org", forwarded)
	other := s.browse().ask(t, http.MethodPost, "/auth/register", m{"email": "other@invited.example", "password": password, "org": token})
	if other.Status != http.StatusBadRequest || !strings.Contains(other.Body, "for another address") {
		t.Errorf("a registration with the invitation of somebody else: got %v, want 400", other)
	}
	if got := friend.on(1).join(t, token); got != owner.org {
		t.Errorf("got the organization %q after others tried the invitation, want %s", got, owner.org)
	}
	if got := friend.join(t, token); got != "" {
		t.Errorf("got the organization %q with a used invitation, want null", got)
	}
	revoked, id := owner.invite(t, "", "USER", false)
	owner.want(t, http.StatusOK, nil, http.MethodDelete, "/settings/invitations/"+id, nil)
	if got := stranger.on(1).join(t, revoked); got != "" {
		t.Errorf("got the organization %q with a revoked invitation, want null", got)
	}
	used := s.browse().ask(t, http.MethodPost, "/auth/register",
		m{"email": "late@invited.example", "password": password, "org": revoked})
	if used.Status != http.StatusBadRequest {
		t.Errorf("a registration with a revoked invitation: got %v, want 400", used)
	}
	anybody, _ := owner.invite(t, "", "USER", false)
	guests := make([]*browser, 6)
	for i := range guests {
		guests[i] = s.account(t, fmt.Sprintf("guest-%d@invited.example", i))
	}
	joined := make([]string, len(guests))
	together(len(guests), func(i int) { joined[i] = guests[i].on(i%2).join(t, anybody) })
	if n := len(strings.Join(joined, "")) / len(owner.org); n != 1 {
		t.Errorf("got %d people in by one link at once, want 1: %q", n, joined)
	}
}

func TestAccounts_CodesWorkOnce(t *testing.T) {
	t.Parallel()
	s := common(t)
	ada := s.account(t, "ada@codes.example")
	factor, recovery := ada.enroll(t)
	if step := s.browse().login(t, "ada@codes.example"); !step.MFARequired {
		t.Fatalf("got %+v, want that a code is required", step)
	}
	for what, proof := range map[string]m{"a code": {"code": factor.code(t)}, "a recovery code": {"recoveryCode": recovery[0]}} {
		const many = 4
		browsers, statuses := make([]*browser, many), make([]int, many)
		tokens := make([]string, many)
		for i := range browsers {
			browsers[i] = s.browse()
			tokens[i] = browsers[i].login(t, "ada@codes.example").MFAToken
		}
		together(many, func(i int) {
			body := with(proof, m{"mfaToken": tokens[i]})
			statuses[i] = browsers[i].on(i%2).ask(t, http.MethodPost, "/auth/mfa/verify", body).Status
		})
		refused := count(statuses, http.StatusUnauthorized) + count(statuses, http.StatusTooManyRequests)
		if count(statuses, http.StatusCreated) != 1 || refused != many-1 {
			t.Errorf("%s sent %d times at once: got %v, want 201 once and 401 or 429 else", what, many, statuses)
		}
	}
}

// count returns how often a status is in a list.
func count(statuses []int, status int) (n int) {
	for _, s := range statuses {
		if s == status {
			n++
		}
	}
	return n
}

func TestAccounts_CodesCannotBeGuessedWithManyTokens(t *testing.T) {
	t.Parallel()
	s := common(t)
	ada := s.account(t, "ada@guessed.example")
	factor, _ := ada.enroll(t)
	const many = 24
	browsers, tokens, statuses := make([]*browser, many), make([]string, many), make([]int, many)
	for i := range browsers {
		browsers[i] = s.browse()
		tokens[i] = browsers[i].login(t, "ada@guessed.example").MFAToken
	}
	guesses := factor.wrong(t, many)
	together(many, func(i int) {
		body := m{"mfaToken": tokens[i], "code": guesses[i]}
		statuses[i] = browsers[i].on(i%2).ask(t, http.MethodPost, "/auth/mfa/verify", body).Status
	})
	if wrong := count(statuses, http.StatusUnauthorized); wrong != 5 || wrong+count(statuses, http.StatusTooManyRequests) != many {
		t.Errorf("%d guesses with as many tokens: got %v, want 401 five times and 429 else", many, statuses)
	}
	b := s.browse()
	step := b.login(t, "ada@guessed.example")
	b.want(t, http.StatusTooManyRequests, nil, http.MethodPost, "/auth/mfa/verify", m{"mfaToken": step.MFAToken, "code": factor.code(t)})
	ada.self(t) // the person's session still works
}

// registering returns the account use cases on the instance's database, without the throttle at the
// edge. The instance's processes send the mails.
func (s *instance) registering(t *testing.T) *boot.Accounts {
	t.Helper()
	db, err := pg.Open(t.Context(), pg.Config{URL: s.database, MaxConns: 12})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	keyring, err := secret.NewKeyring([]string{s.settings["ENCRYPTION_KEYS"]})
	if err != nil {
		t.Fatal(err)
	}
	accounts, err := boot.NewAccounts(boot.AccountsConfig{
		Registration: registration.Config{Registration: registration.RegisterOpen},
	}, boot.AccountsDeps{
		DB: db, Clock: clock.System{}, Keyring: keyring, Mail: mail.NewBox(clock.System{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return accounts
}

func TestAccounts_FiftyRegistrationsOfOneAddressMakeOneAccount(t *testing.T) {
	t.Parallel()
	s := startInstance(t, nil)
	accounts := s.registering(t)
	const many, oneBrowser = 50, "the token of a browser"
	// At most this many mails to one address may be caused by others in an hour. Further
	// registrations get the same response.
	const mails = 24
	together(many, func(i int) {
		address := fmt.Sprintf("198.18.%d.1", i)
		r := tenancy.Registration{
			Email: "Ada@Example.com", Password: password, Organization: fmt.Sprint("Number ", i),
			From: tenancy.NewSource(address, address, "Firefox", oneBrowser),
		}
		if err := register(t.Context(), accounts, r); err != nil {
			t.Errorf("registration %d: %v", i, err)
		}
	})
	links := make([]string, mails)
	for i := range links {
		links[i] = link(t, s.letter(t, "ada@example.com", "Activate", i+1))
	}
	var mu sync.Mutex
	done := 0
	together(mails, func(i int) {
		var out signInAnswer
		b := s.browse().on(i % 2)
		b.cookies["device"] = oneBrowser
		b.want(t, http.StatusCreated, &out, http.MethodPost, "/auth/activate", m{"code": links[i]})
		mu.Lock()
		defer mu.Unlock()
		if out.Can {
			done++
		}
	})
	people, organizations := s.count(t, "select count(*) from person"), s.count(t, "select count(*) from organization")
	if done != 1 || people != 1 || organizations != 1 {
		t.Errorf("got %d completed registrations, %d people and %d organizations, want 1 each", done, people, organizations)
	}
}

// register registers, and tries again while too many passwords are being hashed.
func register(ctx context.Context, accounts *boot.Accounts, r tenancy.Registration) error {
	for range 100 {
		if _, err := accounts.Register(ctx, r); !fault.Is(err, fault.RateLimited) && !fault.Is(err, fault.Unavailable) {
			return err
		}
	}
	return fault.New(fault.RateLimited, "register", "")
}

func TestAccounts_ThousandRegistrationsAreThrottledWithoutErrors(t *testing.T) {
	t.Parallel()
	s := startInstance(t, nil)
	const many, atOnce, clients = 1000, 40, 20
	statuses := make([]int, many)
	together(atOnce, func(worker int) {
		for i := worker; i < many; i += atOnce {
			b := s.browse().on(i % 2)
			b.address = fmt.Sprintf("203.0.113.%d", i%clients)
			statuses[i] = b.ask(t, http.MethodPost, "/auth/register",
				m{"email": fmt.Sprintf("person-%d@example.com", i), "password": password, "company": "Many"}).Status
		}
	})
	taken, refused := count(statuses, http.StatusCreated), count(statuses, http.StatusTooManyRequests)
	// A process that waits too long for Redis counts only its own requests.
	most := clients * 10 * len(s.nodes)
	if taken+refused != many || taken == 0 || taken > most {
		t.Errorf("got %d times 201 and %d times 429 in %d, want no other status and at most %d times 201", taken, refused,
			many, most)
	}
	for i, n := range s.nodes {
		if strings.Contains(n.log.text(), `"level":"ERROR"`) {
			t.Errorf("process %d logged an error", i)
		}
	}
	a, err := call.Do(t.Context(), fresh(), http.MethodGet, "http://"+s.nodes[0].address+"/health", nil)
	if err != nil || a.Status != http.StatusOK {
		t.Errorf("/health afterwards: got %v, %v", a, err)
	}
	await(t, "every queued mail", time.Now().Add(lateLimit), func() bool {
		return len(s.mail.Messages()) >= taken
	}, func() string { return fmt.Sprint(len(s.mail.Messages()), " mails of ", taken) })
}
