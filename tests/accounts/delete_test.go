package accounts

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/tenancy"
)

const (
	grace = 7 * 24 * time.Hour
	// skew is how far the clock of a process may be ahead of the database, and how long a purge
	// waits after the grace period.
	skew = 5 * time.Minute
)

var proof = tenancy.Proof{Password: password}

// purge runs a purge and fails the test unless it purged n organizations and accounts in all and
// its error contains the text. An empty text means no error.
func (w *rig) purge(n int, fails string) {
	w.t.Helper()
	got, err := w.Purge(w.t.Context())
	if got != n || (err == nil) != (fails == "") || err != nil && !strings.Contains(err.Error(), fails) {
		w.t.Errorf("purge: got %d, %v, want %d and %q", got, err, n, fails)
	}
}

// mentions returns the tables that have rows with one of the texts, with the number of such rows.
func (w *rig) mentions(texts ...string) map[string]int {
	w.t.Helper()
	out := map[string]int{}
	for table, rows := range w.dump() {
		for _, row := range rows {
			for _, text := range texts {
				if strings.Contains(row, text) {
					out[table]++
					break
				}
			}
		}
	}
	return out
}

// dump returns the rows of all tables as text, with bytes in hexadecimal.
func (w *rig) dump() map[string][]string {
	w.t.Helper()
	rows, err := w.super.Query(w.t.Context(), `select format('%I.%I', schemaname, tablename) from pg_tables
		where schemaname not in ('pg_catalog', 'information_schema')`)
	must(w.t, err)
	var tables []string
	for rows.Next() {
		var name string
		must(w.t, rows.Scan(&name))
		tables = append(tables, name)
	}
	must(w.t, rows.Err())
	out := map[string][]string{}
	for _, name := range tables {
		rows, err := w.super.Query(w.t.Context(), "select x::text from "+name+" x")
		must(w.t, err)
		for rows.Next() {
			var text string
			must(w.t, rows.Scan(&text))
			out[name] = append(out[name], text)
		}
		must(w.t, rows.Err())
	}
	return out
}

func TestDeleteAccount_RefusedWhileOthersRemain(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	bob := w.member(p.Org, "bob@example.com", tenancy.RoleUser)
	w.publishing.taken()
	wantFault(t, "a wrong password", w.DeleteAccount(t.Context(), p, tenancy.Proof{}), fault.Invalid)
	wantFault(t, "the owner of others", w.DeleteAccount(t.Context(), p, proof), fault.Invalid)
	w.wantCount(0, "person where deleted_at is not null")
	w.wantCount(0, "organization where deleted_at is not null")
	w.wantAudit(p.Org, tenancy.ActionAccountDeleted, 0)
	session := w.login("bob@example.com", tenancy.StepDone).Session
	must(t, w.DeleteAccount(t.Context(), bob, proof))
	w.wantEnded("Bob's session", session)
	w.wantCount(0, "organization where deleted_at is not null")
	w.wantAudit(p.Org, tenancy.ActionAccountDeleted, 1)
	if got := w.publishing.taken(); got != "" {
		t.Errorf("got the calls %q, want none: the organization stays", got)
	}
	w.advance(grace + skew + time.Second)
	w.purge(1, "")
	w.wantCount(1, "person")
	w.wantCount(1, "member")
}

func TestDeleteAccount_SoleMemberAndUndo(t *testing.T) {
	t.Parallel()
	w, other := pair(t)
	p := w.owner("ada@example.com")
	session := w.login("ada@example.com", tenancy.StepDone).Session
	key, _ := w.key(p, "CI")
	wantKey(t, "before", key, "", w.Accounts, other)
	must(t, w.DeleteAccount(t.Context(), p, proof))
	if got := w.publishing.taken(); got != "stop "+p.Org.String() {
		t.Errorf("got the calls %q, want stop", got)
	}
	w.wantEnded("a session", session)
	wantKey(t, "a key", key, fault.Unauthenticated, w.Accounts, other)
	w.advance(grace)
	w.purge(0, "")
	w.advance(-time.Second)
	in := w.login("ada@example.com", tenancy.StepRestore)
	if in.Session != "" || !in.Until.Equal(w.time().Add(time.Second)) {
		t.Errorf("got %+v, want no session and the end of the grace", in)
	}
	w.wantCount(1, "organization where deleted_at is not null")
	_, err := w.BeginEnrollment(t.Context(), in.Token)
	wantFault(t, "the token for another purpose", err, fault.Unauthenticated)
	done, err := w.Restore(t.Context(), in.Token, from(""))
	if err != nil || done.Session == "" {
		t.Fatalf("restore: got %+v, %v, want a session", done, err)
	}
	if got := w.publishing.taken(); got != "resume(false) "+p.Org.String() {
		t.Errorf("got the calls %q, want resume without what fell due", got)
	}
	w.advance(3 * time.Second) // a process caches for two seconds that the key is unknown
	wantKey(t, "the key again", key, "", w.Accounts, other)
	_, err = w.Restore(t.Context(), in.Token, from(""))
	wantFault(t, "the token again", err, fault.Unauthenticated)
	w.wantCount(0, "person where deleted_at is not null")
	w.wantCount(0, "organization where deleted_at is not null")
	w.wantAudit(p.Org, tenancy.ActionAccountRestored, 1)
	w.advance(grace)
	w.purge(0, "")
	w.deliver()
	if got := w.box.subjects("ada@example.com"); !strings.Contains(got, "Your account at Crier will be deleted") || !strings.Contains(got, "A deletion at Crier was undone") {
		t.Errorf("got the mails %s, want one of the deletion and one of the undo", got)
	}
}

func TestDeleteAccount_NotRestoredAfterGrace(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	must(t, w.DeleteAccount(t.Context(), p, proof))
	w.advance(grace - time.Second)
	in := w.login("ada@example.com", tenancy.StepRestore)
	w.advance(time.Second)
	_, err := w.Restore(t.Context(), in.Token, from(""))
	wantFault(t, "after the grace", err, fault.Gone)
	_, gone := w.Login(t.Context(), "ada@example.com", password, from(""))
	_, unknown := w.Login(t.Context(), "nobody@example.com", password, from(""))
	wantFault(t, "a sign-in after the grace", gone, fault.Invalid)
	if fmt.Sprint(gone) != fmt.Sprint(unknown) {
		t.Errorf("got %v, want the answer for an unknown address: %v", gone, unknown)
	}
	w.wantCount(1, "sign_in_step") // from the log-in before the end of the grace period
	w.wantCount(0, "session")
	w.wantCount(1, "person where deleted_at is not null")
}

func TestDeleteAccount_UndoNeedsSecondFactor(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	text, _ := w.enroll(p)
	must(t, w.DeleteAccount(t.Context(), p, proof))
	in := w.login("ada@example.com", tenancy.StepMFA)
	next, err := w.verify(in.Token, w.code(text, 0), "")
	if err != nil || next.Step != tenancy.StepRestore || next.Session != "" || next.Token == "" {
		t.Fatalf("got %+v, %v, want the confirmation of the undo", next, err)
	}
	if done, err := w.Restore(t.Context(), next.Token, from("")); err != nil || done.Session == "" {
		t.Errorf("got %+v, %v, want a session", done, err)
	}
}

func TestDeleteAccount_EarlierDeletedOrganizationStaysDeleted(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	second, err := w.CreateOrganization(t.Context(), p, "Second")
	must(t, err)
	session := w.login("ada@example.com", tenancy.StepDone).Session
	must(t, w.DeleteOrganization(t.Context(), w.principal(session, second.ID.String()), proof))
	w.advance(time.Hour)
	must(t, w.DeleteAccount(t.Context(), p, proof))
	_, err = w.Restore(t.Context(), w.login("ada@example.com", tenancy.StepRestore).Token, from(""))
	must(t, err)
	w.wantCount(1, "organization where deleted_at is null and id = $1", p.Org)
	w.wantCount(1, "organization where deleted_at is not null and id = $1", second.ID)
}

// TestPurge_WaitsUntilNoProcessAllowsRestore purges with a clock that is as far ahead as allowed,
// while another process still allows a restore.
func TestPurge_WaitsUntilNoProcessAllowsRestore(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	exact := w.deps.Clock
	w.deps.Clock = clock.Func(func() time.Time { return exact.Now().Add(skew) })
	ahead := w.instance()
	p := w.owner("ada@example.com")
	second, err := w.CreateOrganization(t.Context(), p, "Second")
	must(t, err)
	session := w.login("ada@example.com", tenancy.StepDone).Session
	must(t, w.DeleteOrganization(t.Context(), w.principal(session, second.ID.String()), proof))
	w.advance(time.Second)
	must(t, w.DeleteAccount(t.Context(), p, proof))
	w.advance(grace - 2*time.Second)
	w.publishing.taken()
	n, err := ahead.Purge(t.Context())
	if got := w.publishing.taken(); n != 0 || err != nil || got != "" {
		t.Errorf("purge while a restore is allowed: got %d, %v and the calls %q, want nothing", n, err, got)
	}
	in, err := w.Restore(t.Context(), w.login("ada@example.com", tenancy.StepRestore).Token, from(""))
	must(t, err)
	must(t, w.RestoreOrganization(t.Context(), w.principal(in.Session, ""), second.ID.String()))
	w.wantCount(2, "organization where deleted_at is null")
	w.advance(2 * time.Second)
	must(t, w.DeleteAccount(t.Context(), w.principal(in.Session, ""), proof))
	w.advance(grace)
	if n, err := ahead.Purge(t.Context()); n != 0 || err != nil {
		t.Errorf("purge at the end of the grace: got %d, %v, want nothing yet", n, err)
	}
	w.advance(time.Second)
	if n, err := ahead.Purge(t.Context()); n != 3 || err != nil {
		t.Errorf("purge when no clock allows a restore: got %d, %v, want 3", n, err)
	}
}

func TestPurge_LeavesNothing(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p, eve := w.owner("ada@example.com"), w.owner("eve@example.com")
	bob := w.member(p.Org, "bob@example.com", tenancy.RoleAdmin)
	w.enroll(p)
	w.key(bob, "CI")
	w.invite(p, "carl@example.com", tenancy.RoleUser)
	w.forgot("ada@example.com")
	w.changeAddress(p, "byron@example.com")
	w.exec("insert into identity (id, issuer, subject, person_id, provider) values (gen_random_uuid(), 'https://idp', 's', $1, 'GITHUB')", p.Person)
	w.exec("insert into pause (org_id, subject, scope, by) values ($1, $1, 'instance', 'the instance')", p.Org)
	_, err := w.RemoveMember(t.Context(), p, bob.Person.String(), false)
	must(t, err)
	w.login("ada@example.com", tenancy.StepMFA)
	must(t, w.DeleteAccount(t.Context(), p, proof))
	w.deliver()
	if got := w.mentions(p.Org.String()); got["public.audit"] < 5 || got["public.organization"] != 1 {
		t.Fatalf("got the tables %v before the purge, want the organization with its audit log", got)
	}
	w.publishing.taken()
	w.exec("delete from jobs.river_job") // River does this an hour after a task
	w.advance(grace + skew + time.Second)
	w.purge(2, "")
	if got := w.publishing.taken(); got != fmt.Sprintf("stop %s, purge %s", p.Org, p.Org) {
		t.Errorf("got the calls %q, want stop and purge", got)
	}
	if !slices.Contains(w.publishing.forgotten, "ada@example.com") {
		t.Errorf("publishing forgets %v, want the address of the purged person", w.publishing.forgotten)
	}
	// The instance's own log records the purges.
	if got := w.mentions(p.Org.String(), p.Person.String(), "ada@example.com"); len(got) != 1 || got["public.instance_event"] != 2 {
		t.Errorf("got the tables %v, want the two events of the instance only", got)
	}
	w.wantCount(1, "organization where id = $1", eve.Org)
	w.wantCount(2, "person")
	w.purge(0, "")
	w.wantCount(1, "instance_event where action = $1", tenancy.ActionOrgPurged)
	w.wantCount(1, "instance_event where action = $1", tenancy.ActionPersonPurged)
}

func TestPurge_FailureDoesNotStopOthers(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	var all []tenancy.Principal
	for _, email := range []string{"a@example.com", "b@example.com", "c@example.com"} {
		p := w.owner(email)
		must(t, w.DeleteAccount(t.Context(), p, proof))
		all = append(all, p)
	}
	w.publishing.failing[all[0].Org] = errors.New("the disk is full")
	w.advance(grace + skew + time.Second)
	w.purge(4, "the disk is full")
	w.wantCount(1, "organization where id = $1", all[0].Org)
	w.wantCount(1, "person where id = $1", all[0].Person)
	delete(w.publishing.failing, all[0].Org)
	w.purge(2, "")
	w.wantCount(0, "organization")
	w.wantCount(0, "person")
}

func TestPurge_CrashBetweenOrganizationAndPerson(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	must(t, w.DeleteAccount(t.Context(), p, proof))
	w.advance(grace + skew + time.Second)
	w.exec("delete from organization") // done by a purge that crashed
	w.purge(1, "")
	w.wantCount(0, "person")
}

func TestDeleteOrganization_OwnerDeletesAndRestores(t *testing.T) {
	t.Parallel()
	w, other := pair(t)
	p := w.owner("ada@example.com")
	bob := w.member(p.Org, "bob@example.com", tenancy.RoleAdmin)
	w.member(p.Org, "carl@example.com", tenancy.RoleUser)
	key, _ := w.key(p, "CI")
	wantKey(t, "before", key, "", w.Accounts, other)
	w.deliver()
	w.box.clear()
	w.publishing.taken()
	wantFault(t, "an administrator", w.DeleteOrganization(t.Context(), bob, proof), fault.Forbidden)
	wantFault(t, "a wrong password", w.DeleteOrganization(t.Context(), p, tenancy.Proof{}), fault.Invalid)
	session := w.login("bob@example.com", tenancy.StepDone).Session
	must(t, w.DeleteOrganization(t.Context(), p, proof))
	if got := w.publishing.taken(); got != "stop "+p.Org.String() {
		t.Errorf("got the calls %q, want stop", got)
	}
	wantKey(t, "a key", key, fault.Unauthenticated, w.Accounts, other)
	if got := w.principal(session, ""); got.Access != tenancy.AccessNone {
		t.Errorf("a member: got %+v, want no access", got)
	}
	w.deliver()
	// Bob gets two, one for his browser.
	for email, want := range map[string]int{"ada@example.com": 1, "bob@example.com": 2, "carl@example.com": 1} {
		if got := len(w.box.to(email)); got != want {
			t.Errorf("got the mails %s to %s, want %d", w.box.subjects(email), email, want)
		}
	}
	wantFault(t, "restored by an administrator", w.RestoreOrganization(t.Context(), bob, p.Org.String()), fault.NotFound)
	wantFault(t, "no id", w.RestoreOrganization(t.Context(), p, "x"), fault.NotFound)
	wantFault(t, "nobody's", w.RestoreOrganization(t.Context(), p, id.New[tenancy.OrgTag]().String()), fault.NotFound)
	w.publishing.taken()
	must(t, w.RestoreOrganization(t.Context(), p, p.Org.String()))
	if got := w.publishing.taken(); got != "resume(false) "+p.Org.String() {
		t.Errorf("got the calls %q, want resume without what fell due", got)
	}
	w.advance(3 * time.Second)
	wantKey(t, "the key again", key, "", w.Accounts, other)
	if got := w.principal(session, p.Org.String()); got.Access != tenancy.AccessFull {
		t.Errorf("a member: got %+v, want access", got)
	}
	w.wantAudit(p.Org, tenancy.ActionOrganizationDeleted, 1)
	w.wantAudit(p.Org, tenancy.ActionOrganizationRestored, 1)
	must(t, w.DeleteOrganization(t.Context(), p, proof))
	w.advance(grace)
	wantFault(t, "after the grace", w.RestoreOrganization(t.Context(), p, p.Org.String()), fault.NotFound)
	w.advance(skew + time.Second)
	w.purge(1, "")
	w.wantCount(3, "person")
	w.wantCount(0, "organization")
}

func TestDeleteOrganization_IsListedForItsOwner(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	bob := w.member(p.Org, "bob@example.com", tenancy.RoleAdmin)
	must(t, w.DeleteOrganization(t.Context(), p, proof))
	all, err := w.Organizations(t.Context(), p)
	if err != nil || len(all) != 1 || all[0].DeletedAt == nil {
		t.Fatalf("got %+v, %v, want the one that can be restored", all, err)
	}
	if got, err := w.Organizations(t.Context(), bob); err != nil || len(got) != 0 {
		t.Errorf("got %+v, %v for another member, want none", got, err)
	}
	wantFault(t, "choose it", w.ChooseOrganization(t.Context(), p, p.Org.String()), fault.Forbidden)
	w.box.clear()
	must(t, w.RestoreOrganization(t.Context(), p, all[0].ID.String()))
	w.wantAudit(p.Org, tenancy.ActionOrganizationRestored, 1)
	w.deliver()
	for _, email := range []string{"ada@example.com", "bob@example.com"} {
		if got := w.box.subjects(email); !strings.Contains(got, "A deletion at Crier was undone") {
			t.Errorf("got the mails %s to %s, want that the deletion was undone", got, email)
		}
	}
}

func TestDelete_PublishingFailureKeepsRequest(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	w.publishing.failing[p.Org] = fault.New(fault.Unavailable, "x", "away")
	if err := w.DeleteAccount(t.Context(), p, proof); err != nil && !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v, want nil or Unavailable", err)
	}
	w.wantCount(1, "organization where deleted_at is not null")
	delete(w.publishing.failing, p.Org)
	w.publishing.taken()
	must(t, w.SyncPublishing(t.Context(), p.Org))
	if got := w.publishing.taken(); got != "stop "+p.Org.String() {
		t.Errorf("got the calls %q, want stop", got)
	}
	// An organization that does not exist.
	must(t, w.SyncPublishing(t.Context(), id.New[tenancy.OrgTag]()))
	w.wantCount(1, "jobs.river_job where kind <> 'mail' and args->>'id' = $1", p.Org.String())
}
