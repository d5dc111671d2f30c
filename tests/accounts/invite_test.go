package accounts

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/registration"
)

// seats is a Quota that limits the number of members.
type seats struct{ most atomic.Int64 }

func (s *seats) Limits(context.Context, pg.Querier, tenancy.OrgID) (tenancy.Limits, error) {
	limits := tenancy.NoLimits()
	limits.Members = int(s.most.Load())
	return limits, nil
}

func (w *rig) invite(p tenancy.Principal, email string, role tenancy.Role) (tenancy.Invitation, string) {
	w.t.Helper()
	i, link, err := w.Invite(w.t.Context(), p, tenancy.NewInvitation{Email: email, Role: role, Send: email != ""})
	must(w.t, err)
	return i, link
}

// wantJoined joins with a link and checks which organization the person joined: the zero id if
// none.
func (w *rig) wantJoined(name string, p tenancy.Principal, link string, want tenancy.OrgID) {
	w.t.Helper()
	org, err := w.JoinOrganization(w.t.Context(), p, link)
	if err != nil || org != want {
		w.t.Errorf("%s: got the organization %q, %v, want %q", name, org, err, want)
	}
}

func TestInvite_LinkAdmitsOnePerson(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p, bob, eve := w.owner("ada@example.com"), w.owner("bob@example.com"), w.owner("eve@example.com")
	for name, bad := range map[string]tenancy.NewInvitation{
		"the owner's role":   {Role: tenancy.RoleSuperAdmin},
		"no role":            {},
		"a mail to nobody":   {Role: tenancy.RoleUser, Send: true},
		"not an address":     {Role: tenancy.RoleUser, Email: "bob"},
		"a line break in it": {Role: tenancy.RoleUser, Email: "bob@example.com\r\nBcc: x@example.com"},
	} {
		_, _, err := w.Invite(t.Context(), p, bad)
		wantFault(t, name, err, fault.Invalid)
	}
	i, link := w.invite(p, "", tenancy.RoleAdmin)
	w.wantCount(0, "mail where kind = 'invitation'")
	if all, err := w.Invitations(t.Context(), p); err != nil || len(all) != 1 || all[0].ID != i.ID || all[0].InvitedBy != "ada@example.com" {
		t.Errorf("got %+v, %v, want the invitation", all, err)
	}
	if all, err := w.Invitations(t.Context(), bob); err != nil || len(all) != 0 {
		t.Errorf("another organization: got %+v, %v, want none", all, err)
	}
	w.wantJoined("Bob", bob, link, p.Org)
	w.wantCount(1, "member where org_id = $1 and person_id = $2 and role = 'ADMIN'", p.Org, bob.Person)
	w.wantJoined("Eve, with the used link", eve, link, tenancy.OrgID{})
	w.wantJoined("no link", eve, "x", tenancy.OrgID{})
	w.wantCount(0, "invitation")
	w.wantCount(0, "invitation_link")
	w.wantAudit(p.Org, tenancy.ActionInvited, 1)
	w.wantAudit(p.Org, tenancy.ActionJoined, 1)
	_, again := w.invite(p, "", tenancy.RoleUser)
	w.wantJoined("Bob, who is a member", bob, again, p.Org)
	w.wantCount(1, "member where org_id = $1 and person_id = $2 and role = 'ADMIN'", p.Org, bob.Person)
	w.wantAudit(p.Org, tenancy.ActionJoined, 1)
}

func TestInvite_BoundToAnAddress(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p, bob, eve := w.owner("ada@example.com"), w.owner("bob@example.com"), w.owner("eve@example.com")
	_, shown := w.invite(p, "Bob@Example.com", tenancy.RoleUser)
	mailed := w.link("bob@example.com")
	if shown == mailed {
		t.Error("the mail has the token that the inviter was shown")
	}
	w.wantCount(2, "invitation_link")
	for _, link := range []string{shown, mailed} {
		_, err := w.JoinOrganization(t.Context(), eve, link)
		wantFault(t, "a forwarded link", err, fault.Forbidden)
	}
	w.exec("update person set verified = false")
	_, err := w.JoinOrganization(t.Context(), bob, mailed)
	wantFault(t, "an address that is not verified", err, fault.Forbidden)
	w.wantCount(1, "invitation")
	w.exec("update person set verified = true")
	w.wantJoined("Bob", bob, mailed, p.Org)
	w.wantJoined("the other link", bob, shown, tenancy.OrgID{})
}

func TestInvite_LinkSufficesWithoutMail(t *testing.T) {
	t.Parallel()
	w := open(t, withoutMail)
	p, bob := w.owner("ada@example.com"), w.owner("bob@example.com")
	w.exec("update person set verified = false")
	_, link := w.invite(p, "bob@example.com", tenancy.RoleUser)
	w.wantCount(0, "mail")
	w.wantJoined("Bob", bob, link, p.Org)
}

func TestInvite_ExpiresAndIsRevoked(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p, bob := w.owner("ada@example.com"), w.owner("bob@example.com")
	i, link := w.invite(p, "", tenancy.RoleUser)
	wantFault(t, "another organization's", w.RevokeInvitation(t.Context(), bob, i.ID.String()), fault.NotFound)
	wantFault(t, "no id", w.RevokeInvitation(t.Context(), p, "x"), fault.NotFound)
	wantFault(t, "nobody's", w.RevokeInvitation(t.Context(), p, id.New[tenancy.InvitationTag]().String()), fault.NotFound)
	must(t, w.RevokeInvitation(t.Context(), p, i.ID.String()))
	w.wantJoined("a revoked one", bob, link, tenancy.OrgID{})
	wantFault(t, "twice", w.RevokeInvitation(t.Context(), p, i.ID.String()), fault.NotFound)
	w.wantAudit(p.Org, tenancy.ActionInvitationRevoked, 1)
	_, link = w.invite(p, "bob@example.com", tenancy.RoleUser)
	w.advance(tenancy.InvitationLife)
	w.wantJoined("after two days", bob, link, tenancy.OrgID{})
	w.deliver()
	if got := w.box.subjects("bob@example.com"); got != "" {
		t.Errorf("got the mails %s, want none for an invitation that is over", got)
	}
	if all, err := w.Invitations(t.Context(), p); err != nil || len(all) != 0 {
		t.Errorf("got %+v, %v, want none that is over", all, err)
	}
	r := newRegistration("carl@example.com", "")
	r.Invitation = link
	_, err := w.Register(t.Context(), r)
	wantFault(t, "register with one that is over", err, fault.Invalid)
}

// wantOffer checks the role that an invitation offers to a person; "" means no offer.
func (w *rig) wantOffer(name string, p tenancy.Principal, link string, role tenancy.Role) {
	w.t.Helper()
	want := tenancy.Offer{}
	if role != "" {
		want = tenancy.Offer{Organization: "Organization of ada@example.com", Role: role}
	}
	got, ok, err := w.Offer(w.t.Context(), p, link)
	if err != nil || ok != (role != "") || got != want {
		w.t.Errorf("%s: got %+v, %v, %v, want %+v", name, got, ok, err, want)
	}
}

func TestOffer_OnlyToPeopleWhoCanUseIt(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p, bob, eve := w.owner("ada@example.com"), w.owner("bob@example.com"), w.owner("eve@example.com")
	_, anybody := w.invite(p, "", tenancy.RoleUser)
	_, forBob := w.invite(p, "bob@example.com", tenancy.RoleAdmin)
	w.wantOffer("anybody", eve, anybody, tenancy.RoleUser)
	w.wantOffer("a member", p, anybody, "")
	w.wantOffer("Bob", bob, forBob, tenancy.RoleAdmin)
	w.wantOffer("another address", eve, forBob, "")
	w.wantOffer("no token", eve, "x", "")
	// Looking up an offer adds no member.
	w.wantCount(0, "member where org_id = $1 and person_id <> $2", p.Org, p.Person)
	w.wantCount(2, "invitation")
	w.exec("update person set verified = false where id = $1", bob.Person)
	w.wantOffer("an address that is not confirmed", bob, forBob, "")
	w.exec("update person set verified = true where id = $1", bob.Person)
	w.wantJoined("Eve", eve, anybody, p.Org)
	w.wantOffer("a used one", bob, anybody, "")
	w.advance(tenancy.InvitationLife)
	w.wantOffer("one that is over", bob, forBob, "")
}

func TestInvite_OnceInParallel(t *testing.T) {
	t.Parallel()
	w := openAtOnce(t, nil)
	p := w.owner("ada@example.com")
	var people []tenancy.Principal
	for i := range 12 {
		people = append(people, w.member(p.Org, string(rune('b'+i))+"@example.com", tenancy.RoleUser))
	}
	w.exec("delete from member where role = 'USER'")
	_, link := w.invite(p, "", tenancy.RoleUser)
	orgs := together(len(people), func(i int) tenancy.OrgID {
		org, err := w.JoinOrganization(t.Context(), people[i], link)
		if err != nil {
			t.Errorf("join: %v", err)
		}
		return org
	})
	joined := 0
	for _, org := range orgs {
		if org == p.Org {
			joined++
		}
	}
	if joined != 1 {
		t.Errorf("got %d members by one invitation, want 1", joined)
	}
	w.wantCount(2, "member")
}

func TestInvite_Quota(t *testing.T) {
	t.Parallel()
	quota := &seats{}
	w := open(t, func(w *rig) { w.deps.Quota = quota })
	quota.most.Store(3)
	p, bob, eve := w.owner("ada@example.com"), w.owner("bob@example.com"), w.owner("eve@example.com")
	_, first := w.invite(p, "", tenancy.RoleUser)
	_, second := w.invite(p, "", tenancy.RoleUser)
	_, _, err := w.Invite(t.Context(), p, tenancy.NewInvitation{Role: tenancy.RoleUser})
	wantFault(t, "one member and two invitations of three seats", err, fault.Quota)
	w.wantCount(2, "invitation")
	w.wantJoined("Bob", bob, first, p.Org)
	quota.most.Store(2)
	_, err = w.JoinOrganization(t.Context(), eve, second)
	wantFault(t, "join when the plan has become smaller", err, fault.Quota)
	w.wantCount(1, "invitation")
	quota.most.Store(3)
	w.wantJoined("Eve", eve, second, p.Org)
	w.advance(tenancy.InvitationLife)
	quota.most.Store(4)
	w.invite(p, "", tenancy.RoleUser) // expired invitations do not count
}

func TestRegister_WithInvitation(t *testing.T) {
	t.Parallel()
	w := open(t, func(w *rig) { w.cfg.Registration.Registration = registration.RegisterInvited })
	p := w.owner("ada@example.com")
	_, _ = w.invite(p, "bob@example.com", tenancy.RoleAdmin)
	link := w.link("bob@example.com")
	r := newRegistration("bob@example.com", "")
	r.Invitation = link
	w.register(r)
	code := w.link("bob@example.com")
	in := w.activate(code)
	if in.Org != p.Org || !in.Onboarding {
		t.Errorf("got %+v, want the organization %s", in, p.Org)
	}
	if got := w.principal(in.Session, ""); got.Org != p.Org || got.Role != tenancy.RoleAdmin {
		t.Errorf("got %+v, want an administrator of %s", got, p.Org)
	}
	w.wantCount(1, "organization")
	w.wantCount(0, "invitation")
	_, err := w.Register(t.Context(), r)
	wantFault(t, "the used invitation", err, fault.Invalid)
	r.Invitation = "x"
	_, err = w.Register(t.Context(), r)
	wantFault(t, "no invitation", err, fault.Invalid)

	i, shown := w.invite(p, "", tenancy.RoleUser)
	eve := newRegistration("eve@example.com", "")
	eve.Invitation = shown
	w.register(eve)
	code = w.link("eve@example.com")
	must(t, w.RevokeInvitation(t.Context(), p, i.ID.String()))
	w.wantDeadLink("an invitation that was revoked after the registration", code)
	_, forCarl := w.invite(p, "carl@example.com", tenancy.RoleUser)
	eve.Invitation = forCarl
	confirmations, hashed := w.count("select count(*) from confirmation"), w.Hashed()
	_, err = w.Register(t.Context(), eve)
	wantFault(t, "an invitation for another address", err, fault.Invalid)
	if text := fmt.Sprint(err); !strings.Contains(text, "another address") || strings.Contains(text, "carl") {
		t.Errorf("got %q, want the reason without the address", text)
	}
	w.wantCount(confirmations, "confirmation")
	if got := w.Hashed(); got != hashed {
		t.Errorf("got %d hashes of a refused registration, want 0", got-hashed)
	}
	w.wantCount(2, "person")
}

// hook is a Quota that allows everything. Its next call, which happens while the organization is
// locked, runs a function. It records the number of members at each call.
type hook struct {
	mu      sync.Mutex
	run     func()
	present []int
}

func (h *hook) Limits(ctx context.Context, q pg.Querier, _ tenancy.OrgID) (tenancy.Limits, error) {
	var present int
	if err := q.QueryRow(ctx, "select count(*) from member").Scan(&present); err != nil {
		return tenancy.Limits{}, err
	}
	h.mu.Lock()
	run := h.run
	h.run = nil
	h.present = append(h.present, present)
	h.mu.Unlock()
	if run != nil {
		run()
	}
	return tenancy.NoLimits(), nil
}

// meanwhile makes the next change to the members start fn in the background, and continue only when
// fn has returned or waits for a lock. The error of fn is sent to the channel.
func (h *hook) meanwhile(w *rig, fn func() error) <-chan error {
	done := make(chan error, 1)
	h.present = nil
	h.run = func() {
		ended := make(chan struct{})
		go func() { defer close(ended); done <- fn() }()
		for range 1000 {
			select {
			case <-ended:
				return
			default:
			}
			if w.blocked() > 0 {
				return
			}
			if err := clock.Sleep(w.t.Context(), 2*time.Millisecond); err != nil {
				return
			}
		}
	}
	return done
}

func TestRegister_OneInvitationInParallelWithoutMail(t *testing.T) {
	t.Parallel()
	h := &hook{}
	w := open(t, func(w *rig) { w.deps.Mail, w.deps.Quota = nil, h })
	p := w.owner("ada@example.com")
	_, link := w.invite(p, "", tenancy.RoleUser)
	register := func(email string, n int) error {
		r := newRegistration(email, "")
		r.Invitation, r.From = link, site(n)
		_, err := w.Register(t.Context(), r)
		return err
	}
	other := h.meanwhile(w, func() error { return register("carl@example.com", 1) })
	must(t, register("bob@example.com", 2))
	wantFault(t, "the second with the invitation", <-other, fault.Invalid)
	w.wantCount(2, "person")
	w.wantCount(1, "organization")
}

// TestInvite_JoinBlocksDeletionOfSoleMember checks that a sole member cannot delete the account,
// and with it the organization, while somebody joins.
func TestInvite_JoinBlocksDeletionOfSoleMember(t *testing.T) {
	t.Parallel()
	h := &hook{}
	w := open(t, func(w *rig) { w.deps.Quota = h })
	bob, p := w.owner("bob@example.com"), w.owner("ada@example.com")
	_, link := w.invite(p, "", tenancy.RoleUser)
	deletion := h.meanwhile(w, func() error { return w.DeleteAccount(t.Context(), p, proof) })
	w.wantJoined("Bob", bob, link, p.Org)
	wantFault(t, "the deletion, after Bob has joined", <-deletion, fault.Invalid)
	w.wantCount(0, "organization where deleted_at is not null")
	w.wantCount(0, "person where deleted_at is not null")
}

func TestInvite_ConcurrentJoinsCountSeatsInTurn(t *testing.T) {
	t.Parallel()
	h := &hook{}
	w := open(t, func(w *rig) { w.deps.Quota = h })
	p, bob, eve := w.owner("ada@example.com"), w.owner("bob@example.com"), w.owner("eve@example.com")
	_, first := w.invite(p, "", tenancy.RoleUser)
	_, second := w.invite(p, "", tenancy.RoleUser)
	other := h.meanwhile(w, func() error { _, err := w.JoinOrganization(t.Context(), eve, second); return err })
	w.wantJoined("Bob", bob, first, p.Org)
	must(t, <-other)
	w.wantCount(3, "member where org_id = $1", p.Org)
	if len(h.present) != 2 || h.present[0] != 1 || h.present[1] != 2 {
		t.Errorf("got the counts %v, want 1 and then 2", h.present)
	}
}

func TestInvite_ReplacesEarlierInvitationOfAddress(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p, bob := w.owner("ada@example.com"), w.owner("bob@example.com")
	other := w.owner("eve@example.com")
	w.invite(other, "bob@example.com", tenancy.RoleUser)
	_, shown := w.invite(p, "bob@example.com", tenancy.RoleUser)
	mailed := w.link("bob@example.com")
	again, link := w.invite(p, "Bob@example.com", tenancy.RoleAdmin)
	if all, err := w.Invitations(t.Context(), p); err != nil || len(all) != 1 || all[0].ID != again.ID {
		t.Errorf("got %+v, %v, want only the last invitation", all, err)
	}
	w.wantCount(1, "invitation where org_id = $1", other.Org)
	w.wantJoined("the link of the first", bob, shown, tenancy.OrgID{})
	w.wantJoined("the link of its mail", bob, mailed, tenancy.OrgID{})
	w.wantAudit(p.Org, tenancy.ActionInvited, 2)
	w.wantAudit(p.Org, tenancy.ActionInvitationRevoked, 1)
	w.wantJoined("Bob", bob, link, p.Org)
	_, _, err := w.Invite(t.Context(), p, tenancy.NewInvitation{Email: "BOB@example.com", Role: tenancy.RoleUser})
	wantFault(t, "a member", err, fault.Conflict)
	_, _, err = w.Invite(t.Context(), p, tenancy.NewInvitation{Email: "ada@example.com", Role: tenancy.RoleUser, Send: true})
	wantFault(t, "the inviter", err, fault.Conflict)
	w.wantCount(0, "invitation where org_id = $1", p.Org)
	w.exec("update organization set deleted_at = $1 where id = $2", w.time(), p.Org)
	_, _, err = w.Invite(t.Context(), p, tenancy.NewInvitation{Email: "new@example.com", Role: tenancy.RoleUser})
	wantFault(t, "an organization that will be deleted", err, fault.Forbidden)
}

func TestInvite_ConcurrentInvitesLeaveOnePerAddress(t *testing.T) {
	t.Parallel()
	w := openAtOnce(t, nil)
	p := w.owner("ada@example.com")
	faults := together(8, func(int) error {
		_, _, err := w.Invite(t.Context(), p, tenancy.NewInvitation{Email: "bob@example.com", Role: tenancy.RoleUser})
		return err
	})
	for _, err := range faults {
		must(t, err)
	}
	w.wantCount(1, "invitation")
}

func TestInvite_EndsWithTheInvitersRights(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p, joiner := w.owner("ada@example.com"), w.owner("joiner@example.com")
	for name, end := range map[string]func(admin tenancy.Principal){
		"removed": func(admin tenancy.Principal) {
			_, err := w.RemoveMember(t.Context(), p, admin.Person.String(), false)
			must(t, err)
			w.wantCount(0, "invitation where invited_by = $1", admin.Person)
		},
		"demoted": func(admin tenancy.Principal) {
			must(t, w.setRole(p, admin.Person.String(), tenancy.RoleUser, tenancy.Proof{}))
			w.wantCount(0, "invitation where invited_by = $1", admin.Person)
		},
		"disabled": func(admin tenancy.Principal) {
			w.exec("update member set disabled = true where person_id = $1", admin.Person)
		},
		"to be deleted": func(admin tenancy.Principal) {
			w.exec("update person set deleted_at = now() where id = $1", admin.Person)
		},
		"deleted": func(admin tenancy.Principal) { w.exec("delete from person where id = $1", admin.Person) },
	} {
		admin := w.member(p.Org, strings.ReplaceAll(name, " ", "-")+"@example.com", tenancy.RoleAdmin)
		_, link := w.invite(admin, "", tenancy.RoleAdmin)
		end(admin)
		w.wantJoined(name, joiner, link, tenancy.OrgID{})
	}
}
