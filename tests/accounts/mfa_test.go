package accounts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/tenancy"
)

func (w *rig) verify(token, code, recovery string) (tenancy.SignIn, error) {
	return w.VerifyMFA(w.t.Context(), token, code, recovery, from(""))
}

func TestMFA_EnableAndSignIn(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	_, err := w.BeginMFA(t.Context(), p, tenancy.Proof{Password: "wrong"})
	wantFault(t, "begin with a wrong password", err, fault.Invalid)
	_, err = w.ConfirmMFA(t.Context(), p, "000000")
	wantFault(t, "confirm what was not begun", err, fault.Conflict)
	first, err := w.BeginMFA(t.Context(), p, tenancy.Proof{Password: password})
	must(t, err)
	begun, err := w.BeginMFA(t.Context(), p, tenancy.Proof{Password: password})
	must(t, err)
	if first != begun || first.Text == "" {
		t.Errorf("got the factors %+v and %+v in one session, want one", first, begun)
	}
	w.login("ada@example.com", tenancy.StepDone) // a factor that is not confirmed has no effect
	codes, err := w.ConfirmMFA(t.Context(), p, w.code(begun.Text, 0))
	if err != nil || len(codes) != 10 {
		t.Fatalf("got %d recovery codes, %v, want 10", len(codes), err)
	}
	_, err = w.ConfirmMFA(t.Context(), p, w.code(begun.Text, 1))
	wantFault(t, "confirm again", err, fault.Conflict)
	_, err = w.BeginMFA(t.Context(), p, tenancy.Proof{Password: password})
	wantFault(t, "begin again", err, fault.Conflict)
	in := w.login("ada@example.com", tenancy.StepMFA)
	if in.Session != "" || in.Device != "" || in.Token == "" {
		t.Errorf("got %+v, want a token only", in)
	}
	_, err = w.verify(in.Token, w.code(begun.Text, 0), "")
	wantFault(t, "the code that has confirmed", err, fault.Unauthenticated)
	code := w.code(begun.Text, 1)
	// The code is written as apps display it and people copy it.
	done, err := w.verify(in.Token, "\u202a"+code[:3]+"\u00a0"+code[3:]+"\u202c ", "")
	if err != nil || done.Session == "" {
		t.Fatalf("the next code: got %+v, %v, want a session", done, err)
	}
	_, err = w.verify(in.Token, w.code(begun.Text, 1), "")
	wantFault(t, "a used token", err, fault.Unauthenticated)
	status, err := w.MFAStatus(t.Context(), p)
	if err != nil || !status.Enabled || status.Required || status.RecoveryCodesLeft != 10 || status.EnabledAt == nil {
		t.Errorf("got %+v, %v, want enabled with 10 recovery codes", status, err)
	}
	w.wantAudit(p.Org, tenancy.ActionMFAOn, 1)
	if m := w.box.subjects("ada@example.com"); m != "" {
		t.Errorf("got the mails %s before they were delivered", m)
	}
	w.deliver()
	if got := len(w.box.to("ada@example.com")); got != 3 {
		t.Errorf("got the mails %s, want two about browsers and one about the second factor", w.box.subjects("ada@example.com"))
	}
}

func TestMFA_AcceptsAdjacentTimeSteps(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	text, _ := w.enroll(w.owner("ada@example.com"))
	w.advance(10 * time.Minute)
	for _, c := range []struct {
		name  string
		steps int
		want  fault.Kind
	}{
		{name: "two steps ago", steps: -2, want: fault.Unauthenticated},
		{name: "in two steps", steps: 2, want: fault.Unauthenticated},
		{name: "the step before", steps: -1},
		{name: "the step before again", steps: -1, want: fault.Unauthenticated},
		{name: "the present step", steps: 0},
		{name: "the next step", steps: 1},
		{name: "the present step after the next", steps: 0, want: fault.Unauthenticated},
	} {
		in := w.login("ada@example.com", tenancy.StepMFA)
		_, err := w.verify(in.Token, w.code(text, c.steps), "")
		if (err == nil) != (c.want == "") || err != nil && !fault.Is(err, c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

func TestMFA_OneCodeMakesOneSession(t *testing.T) {
	t.Parallel()
	w := openAtOnce(t, nil)
	text, recovery := w.enroll(w.owner("ada@example.com"))
	for _, name := range []string{"code", "recovery code"} {
		codes := [2]string{w.code(text, 0), ""}
		if name == "recovery code" {
			codes = [2]string{"", recovery[3]}
		}
		w.exec("update mfa set tries = 0")
		var tokens []string
		for range 20 {
			tokens = append(tokens, w.login("ada@example.com", tenancy.StepMFA).Token)
		}
		before := w.count("select count(*) from session")
		errs := together(len(tokens), func(i int) error {
			_, err := w.VerifyMFA(t.Context(), tokens[i], codes[0], codes[1], site(i))
			return err
		})
		got := kinds(errs)
		if got[""] != 1 || got[""]+got[fault.Unauthenticated]+got[fault.RateLimited] != 20 {
			t.Errorf("%s: got %v, want one session", name, got)
		}
		w.wantCount(before+1, "session")
		w.advance(time.Hour)
	}
	w.wantCount(9, "recovery_code")
}

func TestMFA_OneTokenMakesOneSession(t *testing.T) {
	t.Parallel()
	w := openAtOnce(t, nil)
	text, recovery := w.enroll(w.owner("ada@example.com"))
	token := w.login("ada@example.com", tenancy.StepMFA).Token
	errs := together(5, func(i int) error {
		if i == 0 {
			_, err := w.verify(token, w.code(text, 0), "")
			return err
		}
		_, err := w.verify(token, "", recovery[i])
		return err
	})
	if got := kinds(errs); got[""] != 1 || got[fault.Unauthenticated] != 4 {
		t.Errorf("got %v, want one session", got)
	}
	w.wantCount(2, "session")
}

func TestMFA_BruteForceOverParallelTokens(t *testing.T) {
	t.Parallel()
	w := openAtOnce(t, nil)
	p := w.owner("ada@example.com")
	text, recovery := w.enroll(p)
	wrong := w.wrongCode(text)
	var tokens []string
	for range 30 {
		tokens = append(tokens, w.login("ada@example.com", tenancy.StepMFA).Token)
	}
	errs := together(100, func(i int) error {
		switch {
		case i%10 == 0:
			return w.DisableMFA(t.Context(), p, tenancy.Proof{Password: password, Code: wrong})
		case i%2 == 0:
			_, err := w.ReplaceRecoveryCodes(t.Context(), p, wrong)
			return err
		case i%10 == 1:
			_, err := w.VerifyMFA(t.Context(), tokens[i%30], "", "wrong", site(i))
			return err
		}
		_, err := w.VerifyMFA(t.Context(), tokens[i%30], wrong, "", site(i))
		return err
	})
	got := kinds(errs)
	if got[""] != 0 || got[fault.Unauthenticated]+got[fault.Invalid] > 5 || got[fault.RateLimited] < 95 {
		t.Errorf("got %v, want at most 5 codes to be checked and the others refused", got)
	}
	w.wantCount(1, "mfa where tries = 5")
	fresh := w.login("ada@example.com", tenancy.StepMFA).Token
	_, err := w.verify(fresh, w.code(text, 0), "")
	wantFault(t, "the right code", err, fault.RateLimited)
	_, err = w.verify(fresh, "", recovery[0])
	wantFault(t, "a recovery code", err, fault.RateLimited)
	_, err = w.ReplaceRecoveryCodes(t.Context(), p, w.code(text, 0))
	wantFault(t, "the right code of a session", err, fault.RateLimited)
	w.advance(15 * time.Minute)
	if _, err := w.verify(w.login("ada@example.com", tenancy.StepMFA).Token, w.code(text, 0), ""); err != nil {
		t.Errorf("after 15 min: %v", err)
	}
	w.wantCount(1, "mfa where tries = 0")
}

func TestMFA_TokenAllowsFiveTries(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	text, _ := w.enroll(w.owner("ada@example.com"))
	token := w.login("ada@example.com", tenancy.StepMFA).Token
	for range 5 {
		_, err := w.verify(token, w.wrongCode(text), "")
		wantFault(t, "a wrong code", err, fault.Unauthenticated)
	}
	w.exec("update mfa set tries = 0")
	_, err := w.verify(token, w.code(text, 0), "")
	wantFault(t, "the sixth try of a token", err, fault.RateLimited)
	if _, err := w.verify(w.login("ada@example.com", tenancy.StepMFA).Token, w.code(text, 0), ""); err != nil {
		t.Errorf("another token: %v", err)
	}
}

func TestMFA_RecoveryCodesReplaced(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	_, err := w.ReplaceRecoveryCodes(t.Context(), p, "000000")
	wantFault(t, "without a second factor", err, fault.Conflict)
	text, old := w.enroll(p)
	in, err := w.verify(w.login("ada@example.com", tenancy.StepMFA).Token, "", old[0])
	if err != nil || in.Session == "" {
		t.Fatalf("a recovery code: %v", err)
	}
	w.wantAudit(p.Org, tenancy.ActionRecoveryUsed, 1)
	_, err = w.ReplaceRecoveryCodes(t.Context(), p, w.wrongCode(text))
	wantFault(t, "a wrong code", err, fault.Invalid)
	fresh, err := w.ReplaceRecoveryCodes(t.Context(), p, w.code(text, 0))
	if err != nil || len(fresh) != 10 {
		t.Fatalf("got %d codes, %v, want 10", len(fresh), err)
	}
	w.wantCount(10, "recovery_code")
	token := w.login("ada@example.com", tenancy.StepMFA).Token
	_, err = w.verify(token, "", old[1])
	wantFault(t, "an old code", err, fault.Unauthenticated)
	if _, err = w.verify(token, "", fresh[1]); err != nil {
		t.Errorf("a new code: %v", err)
	}
	w.wantAudit(p.Org, tenancy.ActionRecoveryCodes, 1)
}

func TestMFA_Disable(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	text, _ := w.enroll(p)
	disable := func(password, code string) error {
		return w.DisableMFA(t.Context(), p, tenancy.Proof{Password: password, Code: code})
	}
	wantFault(t, "a wrong password", disable("wrong", w.code(text, 0)), fault.Invalid)
	wantFault(t, "a wrong code", disable(password, w.wrongCode(text)), fault.Invalid)
	wantFault(t, "no code", disable(password, ""), fault.Invalid)
	must(t, w.SetMFAPolicy(t.Context(), p, true))
	wantFault(t, "the policy", disable(password, w.code(text, 0)), fault.Forbidden)
	w.wantCount(1, "mfa where confirmed_at is not null")
	must(t, w.SetMFAPolicy(t.Context(), p, false))
	w.exec("update mfa set tries = 0")
	must(t, disable(password, w.code(text, 0)))
	w.wantCount(0, "mfa")
	w.wantCount(0, "recovery_code")
	wantFault(t, "twice", disable(password, w.code(text, 1)), fault.Conflict)
	w.login("ada@example.com", tenancy.StepDone)
	w.wantAudit(p.Org, tenancy.ActionMFAOff, 1)
	w.wantAudit(p.Org, tenancy.ActionMFAPolicy, 2)
	if m := w.mailTo("ada@example.com"); m.Subject == "" {
		t.Error("got no mail")
	}
}

// TestMFA_MemberWithoutFactorCanLeave checks that an organization cannot keep a member who does not
// want the second factor that it requires.
func TestMFA_MemberWithoutFactorCanLeave(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	w.member(p.Org, "bob@example.com", tenancy.RoleAdmin)
	carl := w.member(p.Org, "carl@example.com", tenancy.RoleUser)
	session := w.login("bob@example.com", tenancy.StepDone).Session
	w.enroll(p)
	must(t, w.SetMFAPolicy(t.Context(), p, true))
	bob := w.principal(session, p.Org.String())
	_, err := w.RemoveMember(t.Context(), bob, carl.Person.String(), false)
	wantFault(t, "remove another member", err, fault.Forbidden)
	if !strings.Contains(fmt.Sprint(err), "second factor") {
		t.Errorf("got %v, want the reason", err)
	}
	_, err = w.RemoveMember(t.Context(), bob, bob.Person.String(), false)
	must(t, err)
	w.wantCount(2, "member where org_id = $1", p.Org)
	w.wantAudit(p.Org, tenancy.ActionLeft, 1)
}

func TestMFA_PolicyForcesEnrolment(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	wantFault(t, "the policy without an own factor", w.SetMFAPolicy(t.Context(), p, true), fault.Conflict)
	w.enroll(p)
	bob := w.member(p.Org, "bob@example.com", tenancy.RoleUser)
	session := w.login("bob@example.com", tenancy.StepDone).Session
	own, err := w.CreateOrganization(t.Context(), bob, "Bob's own")
	must(t, err)
	must(t, w.SetMFAPolicy(t.Context(), p, true))
	if required, err := w.MFAPolicy(t.Context(), p); err != nil || !required {
		t.Errorf("MFAPolicy: got %v, %v, want true", required, err)
	}
	if got := w.principal(session, p.Org.String()).Access; got != tenancy.AccessEnroll {
		t.Errorf("a session without a second factor: got the access %q, want enroll", got)
	}
	if got := w.principal(session, own.ID.String()).Access; got != tenancy.AccessFull {
		t.Errorf("in another organization: got the access %q, want full", got)
	}
	in := w.login("bob@example.com", tenancy.StepEnroll)
	_, err = w.verify(in.Token, "000000", "")
	wantFault(t, "the token for another purpose", err, fault.Unauthenticated)
	_, err = w.Restore(t.Context(), in.Token, from(""))
	wantFault(t, "the token for a restoration", err, fault.Unauthenticated)
	first, err := w.BeginEnrollment(t.Context(), in.Token)
	must(t, err)
	begun, err := w.BeginEnrollment(t.Context(), in.Token)
	if err != nil || first != begun || first.Text == "" {
		t.Errorf("got the factors %+v and %+v, %v in one sign-in, want one", first, begun, err)
	}
	done, err := w.ConfirmEnrollment(t.Context(), in.Token, w.code(begun.Text, 0), from(""))
	if err != nil || done.Session == "" || len(done.RecoveryCodes) != 10 {
		t.Fatalf("got %+v, %v, want a session and 10 recovery codes", done, err)
	}
	for _, s := range []string{session, done.Session} {
		if got := w.principal(s, p.Org.String()).Access; got != tenancy.AccessFull {
			t.Errorf("after the enrolment: got the access %q, want full", got)
		}
	}
	_, err = w.BeginEnrollment(t.Context(), in.Token)
	wantFault(t, "a used token", err, fault.Unauthenticated)
	w.wantCount(0, "sign_in_step")
}

func TestMFA_TokensEnd(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	text, _ := w.enroll(p)
	token := w.login("ada@example.com", tenancy.StepMFA).Token
	_, err := w.BeginEnrollment(t.Context(), token)
	wantFault(t, "the token to enroll", err, fault.Unauthenticated)
	_, err = w.ConfirmEnrollment(t.Context(), token, w.code(text, 0), from(""))
	wantFault(t, "the token to confirm", err, fault.Unauthenticated)
	w.advance(tenancy.SignInStepLife)
	_, err = w.verify(token, w.code(text, 0), "")
	wantFault(t, "after five minutes", err, fault.Unauthenticated)
	token = w.login("ada@example.com", tenancy.StepMFA).Token
	must(t, w.DisableMFA(t.Context(), p, tenancy.Proof{Password: password, Code: w.code(text, 0)}))
	_, err = w.verify(token, w.code(text, 1), "")
	wantFault(t, "after the factor was disabled", err, fault.Unauthenticated)
	w.wantAlive("the session", w.login("ada@example.com", tenancy.StepDone).Session)
	must(t, w.DisableMFAOf(t.Context(), "ada@example.com"))
	w.wantCount(0, "session")
}

// TestMFA_LostAuthenticator checks that a person with a recovery code can disable the lost factor
// and enroll another one.
func TestMFA_LostAuthenticator(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	_, recovery := w.enroll(p)
	must(t, w.SetMFAPolicy(t.Context(), p, true))
	disable := func(password, code string) error {
		return w.DisableMFA(t.Context(), p, tenancy.Proof{Password: password, Code: code})
	}
	wantFault(t, "a wrong recovery code", disable(password, strings.Repeat("x", len(recovery[0]))), fault.Invalid)
	wantFault(t, "a wrong password", disable("wrong", recovery[0]), fault.Invalid)
	must(t, disable(password, " "+recovery[0]+" "))
	w.wantCount(0, "mfa")
	w.wantCount(0, "recovery_code")
	w.wantAudit(p.Org, tenancy.ActionRecoveryUsed, 1)
	w.wantAudit(p.Org, tenancy.ActionMFAOff, 1)
	w.login("ada@example.com", tenancy.StepEnroll)
	w.enroll(p)
	w.login("ada@example.com", tenancy.StepMFA)
}

// TestMFA_ParallelSignInsDoNotFail signs one person in from several browsers at once, which lock
// the same rows.
func TestMFA_ParallelSignInsDoNotFail(t *testing.T) {
	t.Parallel()
	w := openAtOnce(t, nil)
	p := w.owner("ada@example.com")
	_, recovery := w.enroll(p)
	errs := together(10, func(i int) error {
		for range 5 {
			in, err := patient(func() (tenancy.SignIn, error) { return w.Login(t.Context(), "ada@example.com", password, site(i)) })
			if err != nil {
				return err
			}
			if i >= len(recovery)/2 {
				continue
			}
			if _, err := w.VerifyMFA(t.Context(), in.Token, "", recovery[i], site(i)); err != nil {
				return err
			}
			return nil
		}
		return nil
	})
	for _, err := range errs {
		if err != nil {
			t.Errorf("sign in: %v", err)
		}
	}
	if n := w.count("select deadlocks from pg_stat_database where datname = current_database()"); n != 0 {
		t.Errorf("got %d deadlocks, want none", n)
	}
}

// TestBeginMFA_SameSessionGetsTheSameFactor covers a person who begins twice, for example by a
// double click, and may have scanned either response. Another session gets a different factor, and
// nobody else learns its secret.
func TestBeginMFA_SameSessionGetsTheSameFactor(t *testing.T) {
	t.Parallel()
	w := openAtOnce(t, nil)
	p := w.owner("ada@example.com")
	begin := func(p tenancy.Principal) tenancy.Secret {
		out, err := w.BeginMFA(t.Context(), p, tenancy.Proof{Password: password})
		must(t, err)
		return out
	}
	all := together(4, func(int) tenancy.Secret { return begin(p) })
	for _, got := range append(all, begin(p)) {
		if got != all[0] || !strings.Contains(got.URL, "secret="+got.Text) {
			t.Errorf("got %+v, want the factor %+v", got, all[0])
		}
	}
	if other := begin(w.enter(p.Name, "")); other.Text == all[0].Text {
		t.Error("another session got the same secret, want another one")
	}
}
