package accounts

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/tenancy"
	"crier/tenancy/registration"
)

func TestOrganization_CreateAndChoose(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p, eve := w.owner("ada@example.com"), w.owner("eve@example.com")
	w.advance(time.Second)
	for name, bad := range map[string]string{"short": "ab", "NUL": "a\x00bc", "long": strings.Repeat("a", 129), "bidi": "abc\u202e"} {
		_, err := w.CreateOrganization(t.Context(), p, bad)
		wantFault(t, name, err, fault.Invalid)
	}
	second, err := w.CreateOrganization(t.Context(), p, " Second ")
	if err != nil || second.Name != "Second" {
		t.Fatalf("got %+v, %v, want Second", second, err)
	}
	all, err := w.Organizations(t.Context(), p)
	if err != nil || len(all) != 2 || all[0].ID != p.Org || all[1].ID != second.ID || all[1].Role != tenancy.RoleSuperAdmin {
		t.Errorf("got %+v, %v, want the two, the oldest first", all, err)
	}
	must(t, w.ChooseOrganization(t.Context(), p, second.ID.String()))
	wantFault(t, "another person's", w.ChooseOrganization(t.Context(), p, eve.Org.String()), fault.Forbidden)
	wantFault(t, "no id", w.ChooseOrganization(t.Context(), p, "x"), fault.Forbidden)
	session := w.login("ada@example.com", tenancy.StepDone).Session
	if got := w.principal(session, second.ID.String()); got.Role != tenancy.RoleSuperAdmin {
		t.Errorf("got %+v in the second organization, want its owner", got)
	}
	if got, err := w.Session(t.Context(), session, eve.Org.String(), "", from("")); err != nil || got.Org != p.Org {
		t.Errorf("another person's organization: got %s, %v, want the first own one", got.Org, err)
	}
	w.wantAudit(second.ID, tenancy.ActionOrganizationCreated, 1)
	w.wantAudit(eve.Org, tenancy.ActionSignedIn, 1)
}

func TestOrganization_MembershipsPerPersonAreLimited(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	ada, p := w.owner("ada@example.com"), w.owner("bob@example.com")
	w.exec(`with made as (insert into organization (id, name) select gen_random_uuid(), 'N' from generate_series(1, 248) returning id)
		insert into member (org_id, person_id, role) select id, $1, 'USER' from made`, p.Person)
	_, err := w.CreateOrganization(t.Context(), p, "The 250th")
	must(t, err)
	_, err = w.CreateOrganization(t.Context(), p, "The 251st")
	wantFault(t, "one more", err, fault.Conflict)
	_, link := w.invite(ada, "", tenancy.RoleUser)
	_, err = w.JoinOrganization(t.Context(), p, link)
	wantFault(t, "an invitation", err, fault.Conflict)
	w.wantCount(250, "member where person_id = $1", p.Person)
	w.wantCount(1, "invitation")
}

func TestOrganization_Settings(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p, eve := w.owner("ada@example.com"), w.owner("eve@example.com")
	text := func(s string) *string { return &s }
	zone := func(s string) *tenancy.ZoneRequest {
		z, err := tenancy.ParseZone(s)
		must(t, err)
		return &z
	}
	for name, bad := range map[string]tenancy.OrganizationChange{
		"nothing":            {},
		"a short name":       {Name: text("ab")},
		"a long description": {Description: text(strings.Repeat("a", 501))},
		"no zone":            {Timezone: &tenancy.ZoneRequest{}},
	} {
		_, err := w.UpdateOrganization(t.Context(), p, bad)
		wantFault(t, name, err, fault.Invalid)
	}
	o, err := w.UpdateOrganization(t.Context(), p, tenancy.OrganizationChange{
		Name: text("Renamed"), Description: text("of engines"), Timezone: zone("Europe/Berlin"),
	})
	if err != nil || o.Name != "Renamed" || o.Description != "of engines" || o.Timezone != "Europe/Berlin" {
		t.Errorf("got %+v, %v, want the new settings", o, err)
	}
	if o, err = w.UpdateOrganization(t.Context(), p, tenancy.OrganizationChange{Timezone: zone("330")}); err != nil ||
		o.Timezone != "+05:30" || o.Name != "Renamed" {
		t.Errorf("got %+v, %v, want the zone +05:30 and the other settings as they were", o, err)
	}
	if got, err := w.Organization(t.Context(), p); err != nil || got != o {
		t.Errorf("got %+v, %v, want %+v", got, err, o)
	}
	if got, err := w.Organization(t.Context(), eve); err != nil || got.Timezone != "UTC" {
		t.Errorf("the other organization: got %+v, %v, want it unchanged", got, err)
	}
	w.wantAudit(p.Org, tenancy.ActionOrganizationChanged, 2)
	w.wantAudit(eve.Org, tenancy.ActionOrganizationChanged, 0)
}

// TestOrganization_ParallelChangesAreNotLost renames the organization while its policy changes.
// Each change writes the whole row.
func TestOrganization_ParallelChangesAreNotLost(t *testing.T) {
	t.Parallel()
	w := openAtOnce(t, nil)
	p := w.owner("ada@example.com")
	w.enroll(p)
	for range 10 {
		w.exec("update organization set mfa_required = false")
		together(6, func(i int) error {
			if i == 0 {
				must(t, w.SetMFAPolicy(t.Context(), p, true))
				return nil
			}
			name := strings.Repeat("n", 3+i)
			_, err := w.UpdateOrganization(t.Context(), p, tenancy.OrganizationChange{Name: &name})
			if err != nil {
				t.Errorf("rename: %v", err)
			}
			return err
		})
		w.wantCount(1, "organization where mfa_required")
		if t.Failed() {
			return
		}
	}
}

func TestSetup_FillsEmptyFields(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	w.exec("update person set name = ''")
	zone, err := tenancy.ParseZone("Europe/Paris")
	must(t, err)
	must(t, w.Setup(t.Context(), p, tenancy.Setup{Name: "Ada Byron", Company: "Other", Timezone: zone}))
	w.wantCount(1, "person where name = 'Ada Byron'")
	w.wantCount(1, "organization where timezone = 'Europe/Paris' and name = 'Organization of ada@example.com'")
	other, err := tenancy.ParseZone("Asia/Tokyo")
	must(t, err)
	must(t, w.Setup(t.Context(), p, tenancy.Setup{Name: "Eve", Timezone: other}))
	w.wantCount(1, "person where name = 'Ada Byron'")
	w.wantCount(1, "organization where timezone = 'Europe/Paris'")
	person, org, err := w.Self(t.Context(), p)
	if err != nil || person.Name != "Ada Byron" || org.ID != p.Org || org.Role != tenancy.RoleSuperAdmin {
		t.Errorf("Self: got %+v, %+v, %v", person, org, err)
	}
}

// TestSetup_KeepsChosenUTC tells UTC that somebody chose from the UTC that every new organization
// starts with.
func TestSetup_KeepsChosenUTC(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p, eve := w.owner("ada@example.com"), w.owner("eve@example.com")
	utc, err := tenancy.ParseZone("UTC")
	must(t, err)
	tokyo, err := tenancy.ParseZone("Asia/Tokyo")
	must(t, err)
	must(t, w.Setup(t.Context(), p, tenancy.Setup{Timezone: utc}))
	name := "Renamed"
	// This change leaves the zone alone.
	_, err = w.UpdateOrganization(t.Context(), eve, tenancy.OrganizationChange{Name: &name})
	must(t, err)
	for _, owner := range []tenancy.Principal{p, eve} {
		must(t, w.Setup(t.Context(), owner, tenancy.Setup{Timezone: tokyo}))
	}
	w.wantCount(1, "organization where id = $1 and timezone = 'UTC'", p.Org)
	w.wantCount(1, "organization where id = $1 and timezone = 'Asia/Tokyo'", eve.Org)
	_, err = w.UpdateOrganization(t.Context(), eve, tenancy.OrganizationChange{Timezone: &utc})
	must(t, err)
	must(t, w.Setup(t.Context(), eve, tenancy.Setup{Timezone: tokyo}))
	w.wantCount(2, "organization where timezone = 'UTC'")
}

func TestOrganizations_IncludeDescription(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	text := "of engines"
	_, err := w.UpdateOrganization(t.Context(), p, tenancy.OrganizationChange{Description: &text})
	must(t, err)
	if all, err := w.Organizations(t.Context(), p); err != nil || len(all) != 1 || all[0].Description != text {
		t.Errorf("got %+v, %v, want the description", all, err)
	}
}

func TestAudit_ConcurrentQueriesPerOrganizationAreLimited(t *testing.T) {
	t.Parallel()
	w := openAtOnce(t, nil)
	p, eve := w.owner("ada@example.com"), w.owner("eve@example.com")
	w.exec("begin")
	w.exec("lock table audit in access exclusive mode")
	refused := make(chan error, 20)
	var asked sync.WaitGroup
	for range cap(refused) {
		asked.Go(func() {
			_, _, err := w.Audit(t.Context(), p, tenancy.AuditQuery{Limit: 1})
			refused <- err
		})
	}
	for range 14 { // 2 wait for the table, 4 for a free place
		wantFault(t, "too many of one organization", <-refused, fault.RateLimited)
	}
	w.awaitBlocked(2)
	if n := w.blocked(); n != 2 {
		t.Errorf("got %d queries that wait for the table, want 2", n)
	}
	w.exec("commit")
	asked.Wait()
	for range 6 {
		if err := <-refused; err != nil {
			t.Errorf("one that waited: %v", err)
		}
	}
	_, _, err := w.Audit(t.Context(), eve, tenancy.AuditQuery{Limit: 1})
	must(t, err)
}

func TestAudit_MemberSeesOwnEntries(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	admin, session, target, _ := w.impersonation()
	bob := w.member(target.Org, "bob@example.com", tenancy.RoleUser)
	acting, err := w.Session(t.Context(), session, "", tenancy.FormatMembership(bob.Org, bob.Person), from(""))
	must(t, err)
	must(t, w.Record(t.Context(), acting, tenancy.ActionChannelConnected, "as Bob"))
	must(t, w.Record(t.Context(), target, tenancy.ActionChannelConnected, "as Ada"))
	for name, q := range map[string]tenancy.AuditQuery{"all": {Limit: 100}, "Ada's": {Limit: 100, Actor: "ada@"}} {
		got, _, err := w.Audit(t.Context(), bob, q)
		must(t, err)
		seen := map[tenancy.Action]string{}
		for _, e := range got {
			if e.Person != bob.Person {
				t.Errorf("%s: got an entry of %s", name, e.Actor)
			}
			seen[e.Action] = e.Impersonator
		}
		if seen[tenancy.ActionImpersonated] != admin.Name || seen[tenancy.ActionChannelConnected] != admin.Name {
			t.Errorf("%s: got %v, want what root did as Bob", name, seen)
		}
	}
}

func TestAudit_QueriesStayInOrganization(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p, eve := w.owner("ada@example.com"), w.owner("eve@example.com")
	began := w.time()
	for i := range 5 {
		w.advance(time.Minute)
		must(t, w.Record(t.Context(), p, tenancy.ActionChannelConnected, strings.Repeat("c", i+1)))
	}
	query := func(q tenancy.AuditQuery) ([]tenancy.AuditEvent, bool) {
		out, more, err := w.Audit(t.Context(), p, q)
		must(t, err)
		return out, more
	}
	if got, more := query(tenancy.AuditQuery{Limit: 2, Action: string(tenancy.ActionChannelConnected)}); len(got) != 2 || !more || got[0].Subject != "ccccc" || got[0].Address != client {
		t.Errorf("got %+v, %v, want the two newest and that there are more", got, more)
	}
	if got, more := query(tenancy.AuditQuery{Limit: 2, Page: 2, Action: string(tenancy.ActionChannelConnected)}); len(got) != 1 || more || got[0].Subject != "c" {
		t.Errorf("the last page: got %+v, %v, want the oldest", got, more)
	}
	if got, _ := query(tenancy.AuditQuery{Limit: 10, From: began.Add(2 * time.Minute), To: began.Add(4 * time.Minute)}); len(got) != 2 {
		t.Errorf("two minutes: got %d entries, want 2: the end is exclusive", len(got))
	}
	if got, _ := query(tenancy.AuditQuery{Limit: 100, Actor: "ADA@"}); len(got) != 7 {
		t.Errorf("by the address: got %d entries, want 7", len(got))
	}
	if got, _ := query(tenancy.AuditQuery{Limit: 100, Actor: p.Person.String()}); len(got) != 7 {
		t.Errorf("by the person: got %d entries, want 7", len(got))
	}
	if got, _ := query(tenancy.AuditQuery{Limit: 100, Actor: "eve"}); len(got) != 0 {
		t.Errorf("another organization's person: got %d entries, want none", len(got))
	}
	for _, e := range []tenancy.AuditQuery{{Limit: 0}, {Limit: 1001}, {Limit: 1, Page: -1}, {Limit: 1, Actor: "\x00"}} {
		_, _, err := w.Audit(t.Context(), eve, e)
		wantFault(t, "a bad query", err, fault.Invalid)
	}
	if _, err := w.super.Exec(t.Context(), "set role crier_tenant"); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{"update audit set actor = 'x'", "delete from audit"} {
		if _, err := w.super.Exec(t.Context(), sql); err == nil {
			t.Errorf("%s worked as a tenant, want the log to be append-only", sql)
		}
	}
}

func TestRole_Matrix(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	roles := map[string]tenancy.Principal{"owner": w.owner("owner@example.com")}
	org := roles["owner"].Org
	for name, role := range map[string]tenancy.Role{"admin": tenancy.RoleAdmin, "admin2": tenancy.RoleAdmin, "user": tenancy.RoleUser, "user2": tenancy.RoleUser} {
		roles[name] = w.member(org, name+"@example.com", role)
	}
	stranger := w.owner("stranger@example.com")
	proof := tenancy.Proof{Password: password}
	for _, c := range []struct {
		by, to string
		role   tenancy.Role
		want   fault.Kind
	}{
		{by: "owner", to: "user", role: tenancy.RoleAdmin}, {by: "owner", to: "admin", role: tenancy.RoleUser},
		{by: "admin", to: "user", role: tenancy.RoleAdmin}, {by: "admin", to: "admin2", role: tenancy.RoleUser},
		{by: "admin", to: "admin", role: tenancy.RoleUser},
		{by: "admin", to: "owner", role: tenancy.RoleUser, want: fault.Forbidden},
		{by: "admin", to: "owner", role: tenancy.RoleAdmin, want: fault.Forbidden},
		{by: "owner", to: "owner", role: tenancy.RoleAdmin, want: fault.Forbidden},
		{by: "admin", to: "user", role: tenancy.RoleSuperAdmin, want: fault.Forbidden},
		{by: "admin", to: "admin", role: tenancy.RoleSuperAdmin, want: fault.Forbidden},
		{by: "user", to: "user2", role: tenancy.RoleAdmin, want: fault.Forbidden},
		{by: "user", to: "user2", role: tenancy.RoleUser, want: fault.Forbidden},
		{by: "user", to: "user", role: tenancy.RoleAdmin, want: fault.Forbidden},
		{by: "user", to: "owner", role: tenancy.RoleUser, want: fault.Forbidden},
		{by: "owner", to: "user", role: "KING", want: fault.Invalid},
		{by: "owner", to: "stranger", role: tenancy.RoleAdmin, want: fault.NotFound},
		{by: "owner", to: "stranger", role: tenancy.RoleSuperAdmin, want: fault.NotFound},
	} {
		target := stranger.Person
		if p, ok := roles[c.to]; ok {
			target = p.Person
		}
		before := w.count("select count(*) from audit where org_id = $1", org)
		err := w.setRole(roles[c.by], target.String(), c.role, proof)
		if (err == nil) != (c.want == "") || err != nil && !fault.Is(err, c.want) {
			t.Errorf("%s makes %s %s: got %v, want %q", c.by, c.to, c.role, err, c.want)
		}
		changed := 0
		if c.want == "" {
			changed = 1
			w.wantCount(1, "member where org_id = $1 and person_id = $2 and role = $3", org, target, c.role)
		}
		w.wantCount(before+changed, "audit where org_id = $1", org)
		w.exec("update member m set role = case when p.email like 'admin%' then 'ADMIN' else 'USER' end from person p where p.id = m.person_id and m.role <> 'SUPERADMIN'")
	}
	wantFault(t, "no id", w.setRole(roles["owner"], "x", tenancy.RoleUser, proof), fault.NotFound)
	wantFault(t, "nobody", w.setRole(roles["owner"], id.New[tenancy.PersonTag]().String(), tenancy.RoleUser, proof), fault.NotFound)
	w.wantCount(1, "member where org_id = $1 and role = 'SUPERADMIN'", stranger.Org)
	if got, err := w.Team(t.Context(), roles["user"]); err != nil || len(got) != 5 || got[0].Email != "owner@example.com" {
		t.Errorf("the team: got %+v, %v, want the five", got, err)
	}
}

func TestRemoveMember_Matrix(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	for _, c := range []struct {
		by, to string
		want   fault.Kind
		mails  int
	}{
		{by: "owner", to: "user", mails: 1}, {by: "owner", to: "admin", mails: 1},
		{by: "owner", to: "owner", want: fault.Forbidden},
		{by: "admin", to: "admin2", mails: 1}, {by: "admin", to: "user", mails: 1},
		{by: "admin", to: "owner", want: fault.Forbidden}, {by: "admin", to: "admin"},
		{by: "user", to: "user2", want: fault.Forbidden}, {by: "user", to: "admin", want: fault.Forbidden},
		{by: "user", to: "user"}, {by: "owner", to: "stranger", want: fault.NotFound},
	} {
		w.exec("truncate person, organization cascade")
		w.box.clear()
		all := map[string]tenancy.Principal{"owner": w.owner("owner@example.com"), "stranger": w.owner("stranger@example.com")}
		org := all["owner"].Org
		for name, role := range map[string]tenancy.Role{"admin": tenancy.RoleAdmin, "admin2": tenancy.RoleAdmin, "user": tenancy.RoleUser, "user2": tenancy.RoleUser} {
			all[name] = w.member(org, name+"@example.com", role)
		}
		session := w.login(c.to+"@example.com", tenancy.StepDone).Session
		w.deliver()
		w.box.clear()
		other := w.instance()
		_, err := w.RemoveMember(t.Context(), all[c.by], all[c.to].Person.String(), false)
		if (err == nil) != (c.want == "") || err != nil && !fault.Is(err, c.want) {
			t.Errorf("%s removes %s: got %v, want %q", c.by, c.to, err, c.want)
		}
		p, err := other.Session(t.Context(), session, org.String(), "", from(""))
		must(t, err)
		if gone := p.Org != org; gone != (c.want == "" || c.to == "stranger") {
			t.Errorf("%s removes %s: another process has %+v", c.by, c.to, p)
		}
		w.deliver()
		if got := len(w.box.to(c.to + "@example.com")); got != c.mails {
			t.Errorf("%s removes %s: got %d mails, want %d", c.by, c.to, got, c.mails)
		}
		w.wantCount(1, "member where org_id = $1 and role = 'SUPERADMIN'", org)
	}
}

func TestRemoveMember_NamesOrRevokesMembersKeys(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	kept, _ := w.key(p, "the owner's")
	for _, revoke := range []bool{false, true} {
		bob := w.member(p.Org, fmt.Sprintf("bob-%t@example.com", revoke), tenancy.RoleAdmin)
		full, key := w.key(bob, "Bob's")
		_, err := w.Authenticate(t.Context(), full)
		must(t, err)
		made, err := w.RemoveMember(t.Context(), p, bob.Person.String(), revoke)
		if err != nil || len(made.Keys) != 1 || made.Keys[0].ID != key.ID {
			t.Errorf("got %+v, %v, want Bob's key", made, err)
		}
		if _, err := w.Authenticate(t.Context(), full); (err != nil) != revoke {
			t.Errorf("with revokeKeys=%t Bob's key answers %v", revoke, err)
		}
	}
	_, err := w.Authenticate(t.Context(), kept)
	must(t, err)
	w.wantAudit(p.Org, tenancy.ActionKeyRevoked, 1)
	user := w.member(p.Org, "user@example.com", tenancy.RoleUser)
	_, err = w.RemoveMember(t.Context(), user, user.Person.String(), true)
	wantFault(t, "a user who leaves and revokes keys", err, fault.Forbidden)
}

func TestRemoveMember_FromOnlyOrganizationLeavesNoAccess(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	bob := w.member(p.Org, "bob@example.com", tenancy.RoleUser)
	session := w.login("bob@example.com", tenancy.StepDone).Session
	_, err := w.RemoveMember(t.Context(), bob, bob.Person.String(), false)
	must(t, err)
	if got := w.principal(session, ""); got.Access != tenancy.AccessNone || !got.Org.IsZero() || got.Role != "" {
		t.Errorf("got %+v, want no organization", got)
	}
	_, err = w.RemoveMember(t.Context(), bob, bob.Person.String(), false)
	wantFault(t, "leave twice", err, fault.Forbidden)
	w.wantAudit(p.Org, tenancy.ActionLeft, 1)
	w.wantAudit(p.Org, tenancy.ActionRemoved, 0)
}

func TestHandOver_SwapsRoles(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	bob := w.member(p.Org, "bob@example.com", tenancy.RoleUser)
	proof := tenancy.Proof{Password: password}
	err := w.setRole(p, bob.Person.String(), tenancy.RoleSuperAdmin, tenancy.Proof{Password: "wrong"})
	wantFault(t, "without the proof", err, fault.Invalid)
	w.exec("update person set deleted_at = now() where id = $1", bob.Person)
	err = w.setRole(p, bob.Person.String(), tenancy.RoleSuperAdmin, proof)
	wantFault(t, "to somebody whose account will be deleted", err, fault.Conflict)
	w.exec("update person set deleted_at = null")
	must(t, w.setRole(p, bob.Person.String(), tenancy.RoleSuperAdmin, proof))
	w.wantCount(1, "member where person_id = $1 and role = 'SUPERADMIN'", bob.Person)
	w.wantCount(1, "member where person_id = $1 and role = 'ADMIN'", p.Person)
	w.wantAudit(p.Org, tenancy.ActionOrganizationOwner, 1)
	err = w.setRole(p, bob.Person.String(), tenancy.RoleSuperAdmin, proof)
	wantFault(t, "repeated with the role of before", err, fault.Forbidden)
	w.wantAudit(p.Org, tenancy.ActionOrganizationOwner, 1)
	err = w.setRole(p, p.Person.String(), tenancy.RoleSuperAdmin, proof)
	wantFault(t, "back, with the role of before", err, fault.Forbidden)
	if m := w.mailTo("bob@example.com"); !strings.HasPrefix(m.Subject, "You are now the owner") {
		t.Errorf("got the mail %q, want that Bob is the owner", m.Subject)
	}
}

func TestHandOver_ConcurrentCallsLeaveOneOwner(t *testing.T) {
	t.Parallel()
	w := openAtOnce(t, nil)
	p := w.owner("ada@example.com")
	var targets []string
	for _, name := range []string{"b", "c", "d", "e", "f"} {
		targets = append(targets, w.member(p.Org, name+"@example.com", tenancy.RoleAdmin).Person.String())
	}
	errs := together(len(targets), func(i int) error {
		by := p
		by.From = site(i)
		return w.setRole(by, targets[i], tenancy.RoleSuperAdmin, tenancy.Proof{Password: password})
	})
	if got := kinds(errs); got[""] != 1 || got[fault.Forbidden] != 4 {
		t.Errorf("got %v (%v), want one hand-over", got, errs)
	}
	w.wantCount(1, "member where role = 'SUPERADMIN'")
	w.wantCount(0, "member where role = 'SUPERADMIN' and person_id = $1", p.Person)
}

// create creates an organization for a person through the same call as the route.
func (w *rig) create(p tenancy.Principal) (tenancy.Organization, error) {
	return w.CreateOrganization(w.t.Context(), p, "Another one")
}

func TestOrganization_CreationsPerPersonAndDayAreLimited(t *testing.T) {
	t.Parallel()
	w := openAtOnce(t, func(w *rig) { w.cfg.Organizations.OrganizationsPerDay = 3 })
	p, bob := w.owner("ada@example.com"), w.owner("bob@example.com")
	w.advance(time.Hour)
	faults := together(6, func(int) error { _, err := w.create(p); return err })
	made := 0
	for _, err := range faults {
		if err == nil {
			made++
			continue
		}
		wantFault(t, "at once", err, fault.RateLimited)
	}
	if made != 2 {
		t.Errorf("got %d organizations by 6 requests at once, want 2 beside the first", made)
	}
	w.wantCount(3, "organization where created_by = $1", p.Person)
	w.member(p.Org, "eve@example.com", tenancy.RoleAdmin)
	eve := w.enter("eve@example.com", p.Org.String())
	must(t, w.setRole(p, eve.Person.String(), tenancy.RoleSuperAdmin, proof))
	_, err := w.RemoveMember(t.Context(), w.enter("ada@example.com", p.Org.String()), p.Person.String(), false)
	must(t, err)
	w.wantCount(1, "organization where created_by = $1 and id = $2", p.Person, p.Org)
	_, err = w.create(p)
	wantFault(t, "after the first was handed over and left", err, fault.RateLimited)
	if got := asFault(t, err); got.RetryAfter != 23*time.Hour || !strings.Contains(got.Message, "3 organizations in 24 hours") {
		t.Errorf("got %q, to be tried again in %v, want the limit and 23 hours", got.Message, got.RetryAfter)
	}
	_, err = w.create(bob)
	must(t, err)
	w.advance(23 * time.Hour)
	_, err = w.create(p)
	must(t, err)
	_, err = w.create(p)
	wantFault(t, "before the second is a day old", err, fault.RateLimited)
}

func asFault(t *testing.T, err error) *fault.Error {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Fatalf("got %v, want a fault", err)
	}
	return f
}

func TestOrganization_CreationsPerPersonAreLimited(t *testing.T) {
	t.Parallel()
	w := open(t, func(w *rig) { w.cfg.Organizations.OrganizationsPerPerson = 3 })
	p := w.owner("ada@example.com")
	second, err := w.create(p)
	must(t, err)
	session := w.login("ada@example.com", tenancy.StepDone).Session
	must(t, w.DeleteOrganization(t.Context(), w.principal(session, second.ID.String()), proof))
	_, err = w.create(p)
	must(t, err)
	_, err = w.create(p)
	wantFault(t, "while one is to be deleted", err, fault.Conflict)
	if got := asFault(t, err).Message; !strings.Contains(got, "You have created 3 organizations; one person may create 3") {
		t.Errorf("got %q, want the limit", got)
	}
	w.advance(grace + skew + time.Second)
	w.purge(1, "")
	_, err = w.create(p)
	must(t, err)
}

// defaults is a Plans in which every organization has the default plan, except those in larger.
type defaults struct{ larger map[tenancy.OrgID]bool }

func (d defaults) OnDefault(orgs []tenancy.OrgID) (plan string, n int) {
	for _, org := range orgs {
		if !d.larger[org] {
			n++
		}
	}
	return "FREE", n
}

func TestOrganization_CreationsWithTheDefaultPlanAreLimited(t *testing.T) {
	t.Parallel()
	plans := defaults{larger: map[tenancy.OrgID]bool{}}
	w := open(t, func(w *rig) { w.cfg.Organizations.DefaultPlanOrganizations, w.deps.Plans = 2, plans })
	p := w.owner("ada@example.com")
	second, err := w.create(p)
	must(t, err)
	_, err = w.create(p)
	wantFault(t, "a third with the default plan", err, fault.Quota)
	if got := asFault(t, err); got.Limit == nil || *got.Limit != (fault.Limit{Name: "organizations", Current: 2, Allowed: 2}) ||
		!strings.Contains(got.Message, "the plan FREE; one person may have 2") {
		t.Errorf("got %+v, want the limit", got)
	}
	w.wantCount(2, "organization")
	plans.larger[second.ID] = true
	_, err = w.create(p)
	must(t, err)
}

// TestOrganization_MailsCountAgainstCreatorOrOwner checks that a person who has left does not use
// up the limits of those who stay.
func TestOrganization_MailsCountAgainstCreatorOrOwner(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p, err := w.CreateOwner(t.Context(), registration.NewOwner{
		Email: "ada@example.com", Password: password, Organization: "Acme", Name: "Ada",
	})
	must(t, err)
	made, err := w.create(p)
	must(t, err)
	p.Org = made.ID
	bob := w.member(p.Org, "bob@example.com", tenancy.RoleAdmin)
	key := bob
	key.Person = tenancy.PersonID{}
	want := func(who tenancy.PersonID) {
		t.Helper()
		w.wantSenders(key, who)
		w.wantSenders(bob, who, bob.Person)
	}
	want(p.Person)
	w.exec("update member set role = case role when 'ADMIN' then 'SUPERADMIN' else 'ADMIN' end where org_id = $1", p.Org)
	want(p.Person)
	w.exec("delete from member where org_id = $1 and person_id = $2", p.Org, p.Person)
	want(bob.Person)
}

// wantSenders checks whose mailboxes a principal's mails count against.
func (w *rig) wantSenders(p tenancy.Principal, people ...tenancy.PersonID) {
	w.t.Helper()
	got, err := w.Senders(w.t.Context(), p)
	must(w.t, err)
	var want []string
	for _, person := range people {
		var mailbox string
		must(w.t, w.super.QueryRow(w.t.Context(), "select mailbox::text from person where id = $1", person).Scan(&mailbox))
		want = append(want, mailbox)
	}
	slices.Sort(want)
	if want = slices.Compact(want); !slices.Equal(got, want) {
		w.t.Errorf("mails count against %v, want %v", got, want)
	}
}

// TestOrganization_CreationsPerMailboxAreLimited checks that accounts with tagged addresses of one
// mailbox count as one person.
func TestOrganization_CreationsPerMailboxAreLimited(t *testing.T) {
	t.Parallel()
	w := openAtOnce(t, func(w *rig) {
		w.cfg.Registration.Registration, w.cfg.Organizations.OrganizationsPerDay = registration.RegisterOpen, 4
	})
	w.owner("ada+1@gmail.com")
	p := w.owner("a.d.a@googlemail.com")
	other := w.owner("ada+1@example.com")
	for _, err := range together(3, func(i int) error {
		_, err := w.create([]tenancy.Principal{p, p, other}[i])
		return err
	}) {
		must(t, err)
	}
	_, err := w.create(p)
	wantFault(t, "the fifth organization of the mailbox", err, fault.RateLimited)
	w.register(newRegistration("ada+2@gmail.com", "Acme"))
	_, _, err = w.Activate(t.Context(), w.link("ada+2@gmail.com"), password, from(""))
	wantFault(t, "a registration", err, fault.RateLimited)
	w.wantCount(0, "person where email = 'ada+2@gmail.com'")
	w.advance(25 * time.Hour)
	_, err = w.create(p)
	must(t, err)
}

// TestOrganization_MailboxColumnMatchesTenancy compares the column mailbox with tenancy.Mailbox.
func TestOrganization_MailboxColumnMatchesTenancy(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	unverified := w.owner("ada@example.org")
	w.exec("update person set verified = false where id = $1", unverified.Person)
	w.wantCount(1, "person where id = $1 and mailbox = md5(id::text)::uuid", unverified.Person)
	for _, email := range []string{
		"ada@example.com", "ada+1@example.com", "a.d.a+b+c@gmail.com", "ada@googlemail.com", "+1@example.com", "+1@gmail.com",
		"a.b@sub.gmail.com", "ada@gmailxcom.example", "ada@notgmail.com", "ä+x@exämple.com", "ada+@example.com",
	} {
		p := w.owner(email)
		var same bool
		must(t, w.super.QueryRow(t.Context(), "select mailbox = md5($2)::uuid from person where id = $1", p.Person, tenancy.Mailbox(email)).Scan(&same))
		if !same {
			t.Errorf("%s: the column mailbox is not the hash of %s", email, tenancy.Mailbox(email))
		}
	}
}

func TestOrganization_CreatorIsPersonNotOperator(t *testing.T) {
	t.Parallel()
	for who, want := range map[registration.Policy]int{
		registration.RegisterOpen: 1, registration.RegisterFirst: 0,
	} {
		w := open(t, func(w *rig) { w.cfg.Registration.Registration = who })
		w.register(newRegistration("ada@example.com", "Acme"))
		in := w.activate(w.link("ada@example.com"))
		p := w.principal(in.Session, "")
		w.wantCount(want, "organization where id = $1 and created_by = $2", in.Org, p.Person)
		w.wantSenders(p, p.Person)
	}
	w := open(t, func(w *rig) {
		w.cfg.Organizations.OrganizationsPerDay, w.cfg.Organizations.OrganizationsPerPerson = 1, 2
	})
	p, err := w.CreateOwner(t.Context(), registration.NewOwner{
		Email: "ada@example.com", Password: password, Organization: "Acme", Name: "Ada",
	})
	must(t, err)
	w.wantCount(1, "organization where created_by is null")
	made, err := w.create(p)
	must(t, err)
	w.wantCount(1, "organization where created_by = $1", p.Person)
	eve := w.owner("eve@example.com")
	w.exec("update member set role = 'ADMIN' where org_id = $1", made.ID)
	w.join(made.ID, eve.Person, tenancy.RoleSuperAdmin)
	must(t, w.DeleteAccount(t.Context(), w.enter("ada@example.com", p.Org.String()), proof))
	w.advance(grace + skew + time.Second)
	w.purge(2, "")
	w.wantCount(1, "organization where id = $1 and created_by is null", made.ID)
}
