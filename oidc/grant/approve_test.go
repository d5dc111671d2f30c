package grant_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/oidc"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/tenancy"
	"crier/tests/tenant"
)

func TestApprove_OneGrantForAClientPersonAndOrganization(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	member := tenant.Join(t, r.db, r.owner.Org, tenancy.RoleUser)
	first := r.tokens(member, nil)
	second := r.tokens(member, func(c *oidc.Consent) {
		c.Scopes = oidc.Scopes{oidc.ScopeRead}
		c.Limits = oidc.Limits{Channels: []string{knownChannel}, Customers: []string{knownCustomer}, MustAsk: true, PostsPerDay: 3}
	})
	r.tokens(r.owner, nil)
	if n := r.count(`select count(*) from oauth_grant`); n != 2 {
		t.Errorf("got %d grants, want one for each person", n)
	}
	for name, access := range map[string]string{"the first installation": first.Access, "the second": second.Access} {
		p := r.wantToken(name, access, "")
		l := p.Agent.Limits
		if p.Agent.Write || l == nil || !l.MustAsk || l.PostsPerDay != 3 || !slices.Equal(l.Channels, []string{knownChannel}) ||
			!slices.Equal(l.Customers, []string{knownCustomer}) {
			t.Errorf("%s: got the agent %+v with limits %+v, want those of the second consent", name, p.Agent, l)
		}
	}
	r.tokens(member, nil)
	if p := r.wantToken("the second installation", second.Access, ""); p.Agent.Write || p.Agent.Limits != nil {
		t.Errorf("got the agent %+v after a consent to everything, want it to read everything: its token has the scope", p.Agent)
	}
}

// A kill after the commit, or a second click, must not grant anything twice.
func TestApprove_ConsentIsUsedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.consent()
	var wg sync.WaitGroup
	var mu sync.Mutex
	codes := 0
	for range 8 {
		wg.Go(func() {
			_, err := r.Grants.Approve(t.Context(), r.owner, c)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				codes++
			} else if !fault.Is(err, fault.Conflict) {
				t.Errorf("got %v, want Conflict", err)
			}
		})
	}
	wg.Wait()
	if n := r.count(`select count(*) from oauth_code`); codes != 1 || n != 1 {
		t.Errorf("%d calls succeeded and left %d codes, want 1", codes, n)
	}
	if n := r.count(`select count(*) from audit where action = 'agent.approved' and subject like 'Claude: mcp:read%'`); n != 1 {
		t.Errorf("got %d audit entries, want 1", n)
	}
}

func TestApprove_Refusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	past, far := time.Now().Add(-time.Hour), time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		person func(p *tenancy.Principal)
		change func(c *oidc.Consent)
		want   fault.Kind
		field  string
	}{
		"an impersonator": {person: func(p *tenancy.Principal) { p.Impersonator = id.New[tenancy.PersonTag]() }, want: fault.Forbidden},
		"a key":           {person: func(p *tenancy.Principal) { p.Via = tenancy.ViaKey }, want: fault.Forbidden},
		"an agent":        {person: func(p *tenancy.Principal) { p.Via = tenancy.ViaAgent }, want: fault.Forbidden},
		"nobody":          {person: func(p *tenancy.Principal) { p.Org, p.Access = tenancy.OrgID{}, tenancy.AccessNone }, want: fault.Forbidden},
		"no factor":       {person: func(p *tenancy.Principal) { p.Access = tenancy.AccessEnroll }, want: fault.Forbidden},
		"suspended":       {person: func(p *tenancy.Principal) { p.Access = tenancy.AccessSuspended }, want: fault.Forbidden},
		"another organization": {
			person: func(p *tenancy.Principal) { p.Org = tenant.New(t, r.db).Org }, want: fault.Forbidden,
		},
		"no scope":           {change: func(c *oidc.Consent) { c.Scopes = nil }, want: fault.Invalid, field: "scopes"},
		"a scope not asked":  {change: func(c *oidc.Consent) { c.Request.Scopes = oidc.Scopes{oidc.ScopeOffline} }, want: fault.Invalid, field: "scopes"},
		"an unknown channel": {change: func(c *oidc.Consent) { c.Limits.Channels = []string{unknownID} }, want: fault.Invalid, field: "channels"},
		"no id":              {change: func(c *oidc.Consent) { c.Limits.Customers = []string{"x"} }, want: fault.Invalid, field: "customers"},
		"an unknown customer": {
			change: func(c *oidc.Consent) { c.Limits.Customers = []string{knownCustomer, unknownID} }, want: fault.Invalid, field: "customers",
		},
		"negative posts":        {change: func(c *oidc.Consent) { c.Limits.PostsPerDay = -1 }, want: fault.Invalid, field: "postsPerDay"},
		"too many posts":        {change: func(c *oidc.Consent) { c.Limits.PostsPerDay = 10_001 }, want: fault.Invalid, field: "postsPerDay"},
		"an end in the past":    {change: func(c *oidc.Consent) { c.Limits.EndsAt = &past }, want: fault.Invalid, field: "endsAt"},
		"an end in the far day": {change: func(c *oidc.Consent) { c.Limits.EndsAt = &far }, want: fault.Invalid, field: "endsAt"},
	} {
		p, consent := r.owner, r.consent()
		if c.person != nil {
			c.person(&p)
		}
		if c.change != nil {
			c.change(&consent)
		}
		_, err := r.Grants.Approve(t.Context(), p, consent)
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != c.want || c.field != "" && (len(f.Fields) != 1 || f.Fields[0].Name != c.field) {
			t.Errorf("%s: got %v, want %s %s", name, err, c.want, c.field)
		}
	}
	for name, change := range map[string]func(q *oidc.AuthorizationRequest){
		"no challenge":           func(q *oidc.AuthorizationRequest) { q.Challenge = "" },
		"what is no hash":        func(q *oidc.AuthorizationRequest) { q.Challenge = "plain" },
		"another redirect URI":   func(q *oidc.AuthorizationRequest) { q.RedirectURI += "/" },
		"no redirect URI":        func(q *oidc.AuthorizationRequest) { q.RedirectURI = "" },
		"an assumed redirection": func(q *oidc.AuthorizationRequest) { q.RedirectSent = false },
	} {
		c := r.consent()
		change(&c.Request)
		_, err := r.Grants.Approve(t.Context(), r.owner, c)
		r.wantCode(name, err, oidc.InvalidRequest)
	}
	gone := r.consent()
	gone.Request.Client.ID = id.New[tenancy.AgentTag]()
	_, err := r.Grants.Approve(t.Context(), r.owner, gone)
	r.wantCode("a client that was pruned", err, oidc.InvalidClient)
	if n := r.count(`select (select count(*) from oauth_grant) + (select count(*) from oauth_code)`); n != 0 {
		t.Errorf("the refusals left %d rows, want none", n)
	}
}

func TestListAndRevoke(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	member, another := tenant.Join(t, r.db, r.owner.Org, tenancy.RoleUser), tenant.Join(t, r.db, r.owner.Org, tenancy.RoleUser)
	end := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	got := r.tokens(member, func(c *oidc.Consent) {
		c.Limits = oidc.Limits{Channels: []string{knownChannel}, MustAsk: true, PostsPerDay: 2, EndsAt: &end}
	})
	own := r.tokens(r.owner, nil)
	list := func(ask func() ([]oidc.Grant, error)) []oidc.Grant {
		all, err := ask()
		must(t, err)
		return all
	}
	mine := list(func() ([]oidc.Grant, error) { return r.Grants.List(t.Context(), member) })
	if len(mine) != 1 || mine[0].Email != member.Name || mine[0].OrgName == "" || mine[0].Client.Name != "Claude" || mine[0].LastUsed != nil ||
		!mine[0].Limits.MustAsk || mine[0].Limits.PostsPerDay != 2 || !mine[0].Limits.EndsAt.Equal(end) || len(mine[0].Limits.Channels) != 1 {
		t.Fatalf("got the own grants %+v", mine)
	}
	r.wantToken("the token", got.Access, "")
	all := list(func() ([]oidc.Grant, error) { return r.Grants.ListAll(t.Context(), r.owner) })
	if len(all) != 2 || all[0].Person != r.owner.Person || all[1].LastUsed == nil {
		t.Errorf("got the grants of the organization %+v", all)
	}
	if _, err := r.Grants.ListAll(t.Context(), member); !fault.Is(err, fault.Forbidden) {
		t.Errorf("a member lists all: %v, want Forbidden", err)
	}
	stranger := tenant.New(t, r.db)
	for name, c := range map[string]struct {
		p     tenancy.Principal
		grant string
	}{
		"another member":           {p: another, grant: mine[0].ID.String()},
		"another organization":     {p: stranger, grant: mine[0].ID.String()},
		"a member, of the owner's": {p: member, grant: all[0].ID.String()},
		"an unknown grant":         {p: r.owner, grant: unknownID},
		"no id":                    {p: r.owner, grant: "x"},
	} {
		if err := r.Grants.Revoke(t.Context(), c.p, c.grant); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: got %v, want NotFound", name, err)
		}
	}
	must(t, r.Grants.Revoke(t.Context(), r.owner, mine[0].ID.String()))
	r.wantToken("the member's token", got.Access, fault.Unauthenticated)
	r.wantToken("the owner's token", own.Access, "")
	if n := r.count(`select count(*) from audit where action = 'agent.revoked' and subject like 'Claude for %'`); n != 1 {
		t.Errorf("got %d audit entries, want 1", n)
	}
}

// A person who leaves and comes back starts without grants.
func TestRemoveMember_EndsTheGrants(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	member := tenant.Join(t, r.db, r.owner.Org, tenancy.RoleUser)
	got := r.tokens(member, nil)
	tenant.Leave(t, r.db, member)
	r.exec(`insert into member (org_id, person_id, role) values ($1, $2, 'USER')`, r.owner.Org, member.Person)
	r.wantToken("the old token", got.Access, fault.Unauthenticated)
	_, err := r.Grants.Refresh(t.Context(), r.client, got.Refresh)
	r.wantCode("the old refresh token", err, oidc.InvalidGrant)
}

func TestTake_ParallelCallsNeverExceedTheLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := r.tokens(r.owner, func(c *oidc.Consent) { c.Limits.PostsPerDay = 10 })
	p := r.wantToken("the token", got.Access, "")
	take := func(p tenancy.Principal, posts int, day string, undo error) error {
		return r.db.InOrg(t.Context(), p.Org.UUID(), func(tx pgx.Tx) error {
			if err := r.Grants.Take(t.Context(), tx, p, posts, day); err != nil {
				return err
			}
			return undo
		})
	}
	undone := errors.New("undone")
	if err := take(p, 10, "2026-01-31", undone); !errors.Is(err, undone) {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	taken := 0
	for range 50 {
		wg.Go(func() {
			err := take(p, 1, "2026-01-31", nil)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				taken++
			} else if !fault.Is(err, fault.Forbidden) || !strings.Contains(err.Error(), "10 posts a day") || !strings.Contains(err.Error(), "2026-01-31") {
				t.Errorf("got %v, want Forbidden with the number and the day", err)
			}
		})
	}
	wg.Wait()
	if taken != 10 {
		t.Errorf("%d posts were queued, want 10", taken)
	}
	if err := take(p, 11, "2026-02-01", nil); !fault.Is(err, fault.Forbidden) {
		t.Errorf("more than a day's posts at once: %v, want Forbidden", err)
	}
	must(t, take(p, 10, "2026-02-01", nil))
	r.revokeAll(r.owner, r.owner)
	must(t, take(p, 1, "2026-02-02", nil))
}
