package accounts

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/jobs"
	"crier/platform/mail"
	"crier/tenancy"
)

func TestMail_RetriesAfterTemporaryFailure(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	w.owner("ada@example.com")
	must(t, w.Forgot(t.Context(), "ada@example.com"))
	w.box.fail = errors.New("the server is away")
	for range 2 {
		if err := w.SendMail(t.Context(), w.queued()[0], true); err == nil {
			t.Error("got nil, want the error, so that the task is repeated")
		}
	}
	w.wantCount(1, "mail")
	w.box.fail = nil
	token := w.link("ada@example.com")
	w.wantCount(0, "mail")
	w.wantReset("the link", token, true)
	w.wantCount(0, "confirmation")
	must(t, w.SendMail(t.Context(), id.New[tenancy.MailTag](), true)) // a mail that does not exist
}

func TestMail_PermanentRefusalDeletesMail(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	w.owner("ada@example.com")
	must(t, w.Forgot(t.Context(), "ada@example.com"))
	w.box.fail = mail.NewBox(w.deps.Clock).Send(t.Context(), mail.Message{}) // a permanent refusal
	if !mail.IsPermanent(w.box.fail) {
		t.Fatalf("%v is not permanent", w.box.fail)
	}
	must(t, w.SendMail(t.Context(), w.queued()[0], true))
	w.wantCount(0, "mail")
	if got := w.log.String(); !strings.Contains(got, "mail refused") || !strings.Contains(got, "ada@example.com") {
		t.Errorf("got the log %s, want the refusal with its recipient", got)
	}
}

func TestMail_SkippedIfNoLongerApplicable(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	i, _ := w.invite(p, "bob@example.com", tenancy.RoleUser)
	must(t, w.RevokeInvitation(t.Context(), p, i.ID.String()))
	_, _ = w.invite(p, "carl@example.com", tenancy.RoleUser)
	must(t, w.Forgot(t.Context(), "nobody@example.com"))
	must(t, w.ResendActivation(t.Context(), "nobody@example.com"))
	_, err := w.ChangeAddress(t.Context(), p, "byron@example.com", proof)
	must(t, err)
	w.exec("delete from confirmation")
	must(t, w.DeleteOrganization(t.Context(), p, proof))
	w.deliver()
	for _, email := range []string{"bob@example.com", "carl@example.com", "nobody@example.com", "byron@example.com"} {
		if got := w.box.subjects(email); got != "" {
			t.Errorf("got the mails %s to %s, want none", got, email)
		}
	}
	w.wantCount(0, "mail")
	w.wantCount(0, "confirmation_link")
}

func TestMail_QueuedNoticesAreLimited(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	for range 25 {
		_, k := w.key(p, "CI")
		must(t, w.DeleteKey(t.Context(), p, k.ID.String()))
	}
	w.wantCount(40, "mail where email = 'ada@example.com'") // 20 of each kind
	w.wantAudit(p.Org, tenancy.ActionKeyRevoked, 25)
	for range 25 {
		must(t, w.Forgot(t.Context(), "ada@example.com")) // the edge limits these calls
	}
	w.login("ada@example.com", tenancy.StepDone)
	must(t, w.ChangePassword(t.Context(), p, tenancy.Proof{Password: password}, newPassword))
	for _, kind := range []string{"new-device", "password-changed"} {
		w.wantCount(1, "mail where email = 'ada@example.com' and kind = $1", kind)
	}
	w.deliver()
	w.key(p, "after they were sent")
	w.wantCount(1, "mail where email = 'ada@example.com'")
	w.exec(`insert into mail (id, kind, email, created_at) select gen_random_uuid(), 'key-created', 'ada@example.com',
		$1::timestamptz - interval '2 days' from generate_series(1, 30)`, w.time()) // given up
	w.key(p, "after others were given up")
	w.wantCount(32, "mail where email = 'ada@example.com'")
}

func TestMail_PreferencesAndUnsubscribe(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	bob := w.member(p.Org, "bob@example.com", tenancy.RoleUser)
	setRole := func(role tenancy.Role) mail.Message {
		w.box.clear()
		must(t, w.setRole(p, bob.Person.String(), role, proof))
		w.deliver()
		all := w.box.to("bob@example.com")
		if len(all) == 0 {
			return mail.Message{}
		}
		return all[0]
	}
	m := setRole(tenancy.RoleAdmin)
	if !strings.HasPrefix(m.Subject, "Your role in ") {
		t.Fatalf("got the mail %q, want that the role has changed", m.Subject)
	}
	if !strings.Contains(m.Text, "Stop emails about your organizations: "+m.Unsubscribe) {
		t.Errorf("got the mail %q, want the link in its footer too", m.Text)
	}
	link, err := url.Parse(m.Unsubscribe)
	if err != nil || link.Scheme != "https" || link.Query().Get("token") == "" {
		t.Fatalf("got List-Unsubscribe %q, %v", m.Unsubscribe, err)
	}
	token := link.Query().Get("token")
	for name, bad := range map[string]string{"nothing": "", "no base64": "!", "a byte less": token[:len(token)-2], "another": "AAAA" + token[4:]} {
		wantFault(t, name, w.Unsubscribe(t.Context(), bad), fault.NotFound)
	}
	before, err := w.Notifications(t.Context(), bob)
	must(t, err)
	must(t, w.Unsubscribe(t.Context(), token))
	must(t, w.Unsubscribe(t.Context(), token))
	n, err := w.Notifications(t.Context(), bob)
	if err != nil || n.Team != tenancy.DeliveryBell || n.Comment != before.Comment || n.Failure != before.Failure {
		t.Errorf("got %+v, %v, want no mails about the team, and the others as before", n, err)
	}
	if m := setRole(tenancy.RoleUser); m.Subject != "" {
		t.Errorf("got the mail %q after the unsubscription, want none", m.Subject)
	}
	n.Team = tenancy.DeliveryMail
	must(t, w.SetNotifications(t.Context(), bob, n))
	if m := setRole(tenancy.RoleAdmin); m.Subject == "" {
		t.Error("got no mail after it was switched on again")
	}
	n.Team = "pigeon"
	wantFault(t, "an unknown delivery", w.SetNotifications(t.Context(), bob, n), fault.Invalid)
	if m := w.forgot("bob@example.com"); m == "" {
		t.Error("got no link")
	}
	if m := w.mailTo("bob@example.com"); m.Unsubscribe != "" {
		t.Errorf("got List-Unsubscribe %q in a mail about the account, want none", m.Unsubscribe)
	}
	w.exec("delete from person where id = $1", bob.Person)
	wantFault(t, "of somebody who is gone", w.Unsubscribe(t.Context(), token), fault.NotFound)
}

func TestPrune_DeletesExpiredRows(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	w.register(newRegistration("eve@example.com", "Engines"))
	w.invite(p, "", tenancy.RoleUser)
	w.enroll(p)
	w.login("ada@example.com", tenancy.StepMFA)
	if n, err := w.PruneExpired(t.Context()); err != nil || n != 0 {
		t.Errorf("got %d, %v, want nothing to be over", n, err)
	}
	w.wantCount(1, "sign_in_step")
	w.advance(8 * 24 * time.Hour)
	if _, err := w.PruneExpired(t.Context()); err != nil {
		t.Error(err)
	}
	for _, table := range []string{"sign_in_step", "confirmation", "invitation", "invitation_link", "mail"} {
		w.wantCount(0, table)
	}
	w.wantCount(1, "device")
	w.advance(tenancy.DeviceMemory)
	if n, err := w.PruneExpired(t.Context()); err != nil || n != 1 {
		t.Errorf("got %d, %v, want the browser", n, err)
	}
	w.wantCount(1, "person")
}

// TestBadRows_HarmOnlyTheirPerson corrupts rows as a disk fault or an operator's mistake might.
func TestBadRows_HarmOnlyTheirPerson(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p, eve := w.owner("ada@example.com"), w.owner("eve@example.com")
	text, _ := w.enroll(eve)
	w.enroll(p)
	w.exec("update mfa set secret = 'nonsense' where person_id = $1", p.Person)
	_, err := w.verify(w.login("ada@example.com", tenancy.StepMFA).Token, "123456", "")
	wantFault(t, "a secret that cannot be opened", err, fault.Internal)
	if _, err := w.verify(w.login("eve@example.com", tenancy.StepMFA).Token, w.code(text, 0), ""); err != nil {
		t.Errorf("another person: %v", err)
	}
	w.exec("update person set notifications = '[1]' where id = $1", p.Person)
	_, err = w.Notifications(t.Context(), p)
	wantFault(t, "notifications that are no object", err, fault.Internal)
	if _, err := w.Notifications(t.Context(), eve); err != nil {
		t.Errorf("another person's notifications: %v", err)
	}
	if _, _, err := w.Self(t.Context(), p); err != nil {
		t.Errorf("the person: %v", err)
	}
	w.deliver()
	must(t, w.Forgot(t.Context(), "eve@example.com"))
	w.exec(`insert into mail (id, kind, email, data) values (gen_random_uuid(), 'role', 'ada@example.com', '"x"'),
		(gen_random_uuid(), 'reset', 'ada@example.com', '{"org": 7}'), (gen_random_uuid(), 'unheard-of', 'ada@example.com', '{}')`)
	failed := 0
	for _, queued := range w.queued() {
		if err := w.SendMail(t.Context(), queued, true); err != nil {
			failed++
		}
	}
	if failed != 3 {
		t.Errorf("got %d failures, want those of the three bad mails", failed)
	}
	w.wantCount(3, "mail")
	w.wantCount(0, "mail where email = 'eve@example.com'")
	w.exec("update person set password_hash = 'nonsense' where id = $1", p.Person)
	_, err = w.Login(t.Context(), "ada@example.com", password, from(""))
	wantFault(t, "a hash that is none", err, fault.Internal)
	w.login("eve@example.com", tenancy.StepMFA)
	w.exec("update person set deleted_at = $1", w.time())
	w.exec("update organization set deleted_at = $1", w.time())
	w.advance(grace + skew + time.Second)
	w.purge(4, "")
	if _, err := w.PruneExpired(t.Context()); err != nil {
		t.Errorf("prune: %v", err)
	}
}

func TestSendMail_WithoutServerLeavesMailToOthers(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	w.owner("ada@example.com")
	must(t, w.Forgot(t.Context(), "ada@example.com"))
	w.deps.Mail = nil
	without := w.instance()
	for _, m := range w.queued() {
		for _, first := range []bool{true, false} {
			if err := without.SendMail(t.Context(), m, first); !errors.Is(err, jobs.ErrLater) {
				t.Errorf("got %v, want jobs.ErrLater", err)
			}
		}
	}
	w.wantCount(1, "mail where kind = 'reset'")
	w.deliver()
	if got := w.box.subjects("ada@example.com"); got == "" {
		t.Error("the process with a server has sent no mail")
	}
}

// TestMail_NamesPeopleRolesAndZone checks that mails name people instead of addresses, spell roles
// out, and give times in the organization's zone.
func TestMail_NamesPeopleRolesAndZone(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	bob := w.member(p.Org, "bob@example.com", tenancy.RoleUser)
	w.exec("update person set name = case email when 'ada@example.com' then 'Ada Byron' else '' end")
	w.exec("update organization set timezone = 'Asia/Kolkata' where id = $1", p.Org)
	w.invite(p, "carl@example.com", tenancy.RoleAdmin)
	must(t, w.setRole(p, bob.Person.String(), tenancy.RoleAdmin, proof))
	_, _, err := w.CreateKey(t.Context(), p, tenancy.NewKey{Name: "deploy"})
	must(t, err)
	w.deliver()
	for to, words := range map[string][]string{
		"carl@example.com": {"“Ada Byron” has invited you", "with the role administrator", "(Asia/Kolkata)"},
		"bob@example.com":  {"“Ada Byron” changed your role", "it is now administrator"},
		"ada@example.com":  {"created by “Ada Byron” on ", "(Asia/Kolkata)"},
	} {
		text := ""
		for _, m := range w.box.to(to) {
			text += m.Text
		}
		for _, want := range append(words, "You are receiving this message") {
			if !strings.Contains(text, want) {
				t.Errorf("the mails to %s have no %q: %s", to, want, text)
			}
		}
		if strings.Contains(text, "“ada@example.com”") || strings.Contains(text, "ADMIN") {
			t.Errorf("the mails to %s name an address or a code: %s", to, text)
		}
	}
	w.exec("update person set name = ''")
	w.box.clear()
	w.invite(p, "dora@example.com", tenancy.RoleUser)
	w.deliver()
	if all := w.box.to("dora@example.com"); len(all) != 1 || !strings.Contains(all[0].Text, "“ada@example.com” has invited you") {
		t.Errorf("got %v, want the address of somebody without a name", all)
	}
}
