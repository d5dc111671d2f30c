package accounts

import (
	"testing"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/tenancy"
	"crier/tenancy/registration"
)

func TestSuspend_BlocksAccessUntilResumed(t *testing.T) {
	t.Parallel()
	w, other := pair(t)
	p, eve := w.owner("ada@example.com"), w.owner("eve@example.com")
	key, _ := w.key(p, "CI")
	evesKey, _ := w.key(eve, "CI")
	session := w.login("ada@example.com", tenancy.StepDone).Session
	wantKey(t, "before", key, "", w.Accounts, other)
	w.publishing.taken()
	_, link := w.invite(p, "", tenancy.RoleUser)
	for range 2 {
		must(t, w.Suspend(t.Context(), p.Org.String(), true))
		if got := w.publishing.taken(); got != "stop "+p.Org.String() {
			t.Errorf("got the calls %q, want stop", got)
		}
	}
	wantKey(t, "suspended", key, fault.Forbidden, w.Accounts, other)
	wantKey(t, "another organization", evesKey, "", w.Accounts, other)
	if got := w.principal(session, p.Org.String()).Access; got != tenancy.AccessSuspended {
		t.Errorf("got the access %q, want suspended", got)
	}
	w.wantJoined("join a suspended organization", eve, link, tenancy.OrgID{})
	must(t, w.Suspend(t.Context(), p.Org.String(), false))
	if got := w.publishing.taken(); got != "resume(true) "+p.Org.String() {
		t.Errorf("got the calls %q, want resume with what fell due", got)
	}
	wantKey(t, "resumed", key, "", w.Accounts, other)
	if got := w.principal(session, p.Org.String()).Access; got != tenancy.AccessFull {
		t.Errorf("got the access %q, want full", got)
	}
	w.wantAudit(p.Org, tenancy.ActionSuspended, 2)
	w.wantAudit(p.Org, tenancy.ActionResumed, 1)
	w.wantCount(1, "instance_event where action = $1 and subject = $2", tenancy.ActionOrgResumed, p.Org.String())
	wantFault(t, "nobody's", w.Suspend(t.Context(), id.New[tenancy.OrgTag]().String(), true), fault.NotFound)
	wantFault(t, "no id", w.Suspend(t.Context(), "x", true), fault.NotFound)
	must(t, w.DeleteOrganization(t.Context(), p, tenancy.Proof{Password: password}))
	must(t, w.Suspend(t.Context(), p.Org.String(), true))
	w.publishing.taken()
	must(t, w.Suspend(t.Context(), p.Org.String(), false))
	if got := w.publishing.taken(); got != "stop "+p.Org.String() && got != "" {
		t.Errorf("got the calls %q, want no resume of an organization that will be deleted", got)
	}
}

func TestOperator_ResetsAndLists(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	admin, err := w.CreateOwner(t.Context(), registration.NewOwner{
		Email: "Root@Example.com", Name: "Root", Password: password, Organization: "Root", Instance: true,
	})
	must(t, err)
	_, err = w.CreateOwner(t.Context(), registration.NewOwner{Email: "root@example.com", Password: password, Organization: "R"})
	wantFault(t, "the address again", err, fault.Conflict)
	_, err = w.CreateOwner(t.Context(), registration.NewOwner{Email: "x@example.com", Password: "password1", Organization: "R"})
	wantFault(t, "a common password", err, fault.Invalid)
	w.wantAudit(admin.Org, tenancy.ActionOrganizationCreated, 1)
	w.wantCount(1, "audit where org_id = $1 and via = 'instance'", admin.Org)
	p := w.owner("ada@example.com")
	w.enroll(p)
	session := w.login("ada@example.com", tenancy.StepMFA)
	fresh, err := w.SetPasswordOf(t.Context(), " ADA@example.com ")
	must(t, err)
	w.wantCount(0, "session where person_id = $1", p.Person)
	_, err = w.verify(session.Token, "000000", "")
	wantFault(t, "a step from before", err, fault.Unauthenticated)
	w.wantPassword("ada@example.com", password, false)
	if in, err := w.Login(t.Context(), "ada@example.com", fresh, from("")); err != nil || in.Step != tenancy.StepMFA {
		t.Errorf("got the step %q, %v, want the second factor still", in.Step, err)
	}
	must(t, w.DisableMFAOf(t.Context(), "ada@example.com"))
	w.wantPassword("ada@example.com", fresh, true)
	must(t, w.SetInstanceAdmin(t.Context(), "ada@example.com", true))
	for _, err := range []error{
		w.DisableMFAOf(t.Context(), "nobody@example.com"), w.SetInstanceAdmin(t.Context(), "no address", true),
	} {
		wantFault(t, "nobody", err, fault.NotFound)
	}
	_, err = w.SetPasswordOf(t.Context(), "nobody@example.com")
	wantFault(t, "nobody", err, fault.NotFound)
	for _, action := range []tenancy.Action{tenancy.ActionPersonCreated, tenancy.ActionPasswordSet, tenancy.ActionMFAReset, tenancy.ActionInstanceAdmin} {
		w.wantCount(1, "instance_event where action = $1", action)
	}
	w.wantAudit(p.Org, tenancy.ActionPasswordReset, 1)
	w.wantAudit(p.Org, tenancy.ActionMFAOff, 1)
	all, err := w.AllOrganizations(t.Context(), tenancy.OrgID{}, 1)
	must(t, err)
	rest, err := w.AllOrganizations(t.Context(), all[0].ID, 10)
	if err != nil || len(all) != 1 || len(rest) != 1 || all[0].ID == rest[0].ID {
		t.Errorf("got %+v and %+v, %v, want the two organizations page by page", all, rest, err)
	}
	if events, err := w.Events(t.Context(), 2); err != nil || len(events) != 2 {
		t.Errorf("got %d events, %v, want the newest two", len(events), err)
	}
}

// impersonation returns an administrator's session and the membership to act as.
func (w *rig) impersonation() (admin tenancy.Principal, session string, target tenancy.Principal, membership string) {
	w.t.Helper()
	admin = w.owner("root@example.com")
	w.exec("update person set instance_admin = true where id = $1", admin.Person)
	target = w.owner("ada@example.com")
	session = w.login("root@example.com", tenancy.StepDone).Session
	return w.principal(session, ""), session, target, tenancy.FormatMembership(target.Org, target.Person)
}

func TestImpersonate_AdministratorsOnlyAndRecorded(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	admin, session, target, membership := w.impersonation()
	if !admin.Instance {
		t.Fatal("the administrator is none")
	}
	found, err := w.Impersonable(t.Context(), admin, "ADA@")
	if err != nil || len(found) != 1 || found[0].ID != membership {
		t.Fatalf("got %+v, %v, want the membership of Ada", found, err)
	}
	_, err = w.Impersonable(t.Context(), target, "root")
	wantFault(t, "a search by anybody", err, fault.Forbidden)
	wantFault(t, "by anybody", w.Impersonate(t.Context(), target, membership), fault.Forbidden)
	must(t, w.Impersonate(t.Context(), admin, membership))
	p, err := w.Session(t.Context(), session, "", membership, from(""))
	if err != nil || p.Person != target.Person || p.Org != target.Org || p.Impersonator != admin.Person || p.ImpersonatorName != "root@example.com" || p.Instance || p.Role != tenancy.RoleSuperAdmin {
		t.Fatalf("got %+v, %v, want Ada with root behind", p, err)
	}
	name := "Renamed"
	_, err = w.UpdateOrganization(t.Context(), p, tenancy.OrganizationChange{Name: &name})
	must(t, err)
	made, err := w.CreateOrganization(t.Context(), p, "Second")
	must(t, err)
	w.wantCount(1, "audit where org_id = $1 and action = $2 and behind = 'root@example.com' and person_id = $3",
		target.Org, tenancy.ActionOrganizationChanged, target.Person)
	w.wantCount(1, "audit where org_id = $1 and behind = 'root@example.com'", made.ID)
	w.wantCount(1, "audit where org_id = $1 and action = $2 and behind = 'root@example.com'", target.Org, tenancy.ActionImpersonated)
	wantFault(t, "from behind", w.Impersonate(t.Context(), p, membership), fault.Forbidden)
	_, err = w.Impersonable(t.Context(), p, "")
	wantFault(t, "a search from behind", err, fault.Forbidden)
	if m := w.mailTo("ada@example.com"); m.Subject != "An operator of Crier used your account" {
		t.Errorf("got the mail %q, want that an operator used the account", m.Subject)
	}
	for name, id := range map[string]string{
		"no membership": "x", "of nobody": tenancy.FormatMembership(target.Org, id.New[tenancy.PersonTag]()),
		"in another organization": tenancy.FormatMembership(admin.Org, target.Person),
	} {
		_, err := w.Session(t.Context(), session, "", id, from(""))
		wantFault(t, name, err, fault.Forbidden)
		wantFault(t, name, w.Impersonate(t.Context(), admin, id), fault.Forbidden)
	}
	adas := w.login("ada@example.com", tenancy.StepDone).Session
	if p, err := w.Session(t.Context(), adas, "", tenancy.FormatMembership(admin.Org, admin.Person), from("")); err != nil || p.Person != target.Person || !p.Impersonator.IsZero() {
		t.Errorf("somebody else with the cookie: got %+v, %v, want no effect", p, err)
	}
	must(t, w.SetInstanceAdmin(t.Context(), "root@example.com", false))
	if p, err := w.instance().Session(t.Context(), session, "", membership, from("")); err != nil || p.Person != admin.Person || p.Instance {
		t.Errorf("after the demotion: got %+v, %v, want root as root", p, err)
	}
	wantFault(t, "after the demotion", w.Impersonate(t.Context(), admin, membership), fault.Forbidden)
}

// TestImpersonate_HeaderAloneIsRecorded checks that a client may send the header without calling
// POST /user/impersonate first.
func TestImpersonate_HeaderAloneIsRecorded(t *testing.T) {
	t.Parallel()
	w := openAtOnce(t, nil)
	admin, session, target, membership := w.impersonation()
	together(5, func(int) any {
		_, err := w.Session(t.Context(), session, "", membership, from(""))
		must(t, err)
		return nil
	})
	const entries = "audit where org_id = $1 and action = $2 and behind = 'root@example.com'"
	w.wantCount(1, entries, target.Org, tenancy.ActionImpersonated)
	w.wantCount(1, "instance_event where action = $1", tenancy.ActionImpersonated)
	w.wantCount(1, "mail where kind = 'impersonated'")
	for range 2 { // the second time there is nothing to end
		must(t, w.Impersonate(t.Context(), admin, ""))
	}
	w.wantCount(1, entries, target.Org, tenancy.ActionImpersonationEnded)
	w.wantCount(1, "instance_event where action = $1", tenancy.ActionImpersonationEnded)
	acting, err := w.Session(t.Context(), session, "", membership, from(""))
	must(t, err)
	w.wantCount(2, entries, target.Org, tenancy.ActionImpersonated)
	must(t, w.Impersonate(t.Context(), acting, "")) // as a request with the cookie does
	w.wantCount(2, entries, target.Org, tenancy.ActionImpersonationEnded)
}

func TestImpersonate_EndsWithTheGrant(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	_, session, target, membership := w.impersonation()
	const entries = "audit where org_id = $1 and action = $2 and behind = 'root@example.com'"
	for round := 1; round <= 2; round++ {
		_, err := w.Session(t.Context(), session, "", membership, from(""))
		must(t, err)
		w.wantCount(round, entries, target.Org, tenancy.ActionImpersonated)
		must(t, w.SetInstanceAdmin(t.Context(), "root@example.com", false))
		w.wantCount(round, entries, target.Org, tenancy.ActionImpersonationEnded)
		w.wantCount(0, "impersonation")
		must(t, w.SetInstanceAdmin(t.Context(), "root@example.com", true))
	}
}

func TestImpersonate_ProfileChangesAreRecorded(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	_, session, target, membership := w.impersonation()
	p, err := w.Session(t.Context(), session, "", membership, from(""))
	must(t, err)
	w.exec("update person set name = '' where id = $1", target.Person)
	change := func(p tenancy.Principal) {
		must(t, w.Setup(t.Context(), p, tenancy.Setup{Name: "Ada Byron"}))
		_, err := w.SetProfile(t.Context(), p, tenancy.Profile{Name: "Ada King"})
		must(t, err)
		must(t, w.SetNotifications(t.Context(), p, tenancy.DefaultNotifications()))
	}
	change(p)
	change(target) // people's changes to their own profile are not recorded
	const entries = "audit where org_id = $1 and action = $2 and behind = 'root@example.com' and person_id = $3"
	w.wantCount(2, entries, target.Org, tenancy.ActionProfileChanged, target.Person)
	w.wantCount(1, entries, target.Org, tenancy.ActionNotificationsChanged, target.Person)
	w.wantAudit(target.Org, tenancy.ActionProfileChanged, 2)
	w.wantAudit(target.Org, tenancy.ActionNotificationsChanged, 1)
}

func TestImpersonate_LogoutIsRecordedAsEnd(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	_, session, target, membership := w.impersonation()
	_, err := w.Session(t.Context(), session, "", membership, from(""))
	must(t, err)
	for range 2 { // the second time there is no session
		must(t, w.Logout(t.Context(), session, from("")))
	}
	w.wantEnded("the session", session)
	w.wantCount(1, "audit where org_id = $1 and action = $2 and behind = 'root@example.com' and address = $3",
		target.Org, tenancy.ActionImpersonationEnded, client)
	w.wantCount(1, "instance_event where action = $1 and actor = 'root@example.com'", tenancy.ActionImpersonationEnded)
	w.wantCount(0, "impersonation")
}

func TestImpersonate_ReachesNoSecrets(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	_, session, target, membership := w.impersonation()
	_, k := w.key(target, "CI")
	_, link := w.invite(target, "", tenancy.RoleUser)
	p, err := w.Session(t.Context(), session, "", membership, from(""))
	must(t, err)
	proof := tenancy.Proof{Password: password}
	ctx := t.Context()
	for name, try := range map[string]func() error{
		"the password":       func() error { return w.ChangePassword(ctx, p, proof, newPassword) },
		"the address":        func() error { _, err := w.ChangeAddress(ctx, p, "x@example.com", proof); return err },
		"begin MFA":          func() error { _, err := w.BeginMFA(ctx, p, proof); return err },
		"confirm MFA":        func() error { _, err := w.ConfirmMFA(ctx, p, "000000"); return err },
		"disable MFA":        func() error { return w.DisableMFA(ctx, p, proof) },
		"recovery codes":     func() error { _, err := w.ReplaceRecoveryCodes(ctx, p, "000000"); return err },
		"the MFA policy":     func() error { return w.SetMFAPolicy(ctx, p, true) },
		"a key":              func() error { _, _, err := w.CreateKey(ctx, p, tenancy.NewKey{Name: "x"}); return err },
		"a rotation":         func() error { _, err := w.RotateKey(ctx, p, k.ID.String(), 0, proof); return err },
		"the sessions":       func() error { _, err := w.ListSessions(ctx, p); return err },
		"end the sessions":   func() error { _, err := w.EndSessions(ctx, p, ""); return err },
		"an invitation":      func() error { _, _, err := w.Invite(ctx, p, tenancy.NewInvitation{Role: tenancy.RoleUser}); return err },
		"join":               func() error { _, err := w.JoinOrganization(ctx, p, link); return err },
		"the account":        func() error { return w.DeleteAccount(ctx, p, proof) },
		"the organization":   func() error { return w.DeleteOrganization(ctx, p, proof) },
		"a restoration":      func() error { return w.RestoreOrganization(ctx, p, p.Org.String()) },
		"the ownership":      func() error { return w.setRole(p, p.Person.String(), tenancy.RoleSuperAdmin, proof) },
		"a sign-in to link":  func() error { _, _, err := w.BeginSignIn(ctx, "GITHUB", "", p); return err },
		"the end of linking": func() error { _, err := w.FinishSignIn(ctx, "GITHUB", tenancy.Callback{}, p); return err },
	} {
		wantFault(t, name, try(), fault.Forbidden)
	}
	w.wantAlive("the administrator's session", session)
	w.wantCount(1, "api_key")
	w.wantCount(1, "organization where id = $1 and deleted_at is null", target.Org)
}
