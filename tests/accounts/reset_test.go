package accounts

import (
	"sync"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/tenancy"
)

const newPassword = "a new good password"

func (w *rig) forgot(email string) string {
	w.t.Helper()
	must(w.t, w.Forgot(w.t.Context(), email))
	return w.link(email)
}

func (w *rig) wantReset(name, token string, want bool) {
	w.t.Helper()
	done, err := w.ResetPassword(w.t.Context(), token, newPassword, from(""))
	if err != nil || done != want {
		w.t.Errorf("%s: got %v, %v, want %v", name, done, err, want)
	}
}

func (w *rig) wantPassword(email, password string, want bool) {
	w.t.Helper()
	_, err := w.Login(w.t.Context(), email, password, from(""))
	if want != (err == nil) || !want && !fault.Is(err, fault.Invalid) {
		w.t.Errorf("log-in of %s with %q: got %v, want to work: %v", email, password, err, want)
	}
}

func TestReset_EndsEverythingButTheSecondFactor(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	session := w.login("ada@example.com", tenancy.StepDone).Session
	text, _ := w.enroll(p)
	step := w.login("ada@example.com", tenancy.StepMFA).Token
	other := w.forgot("ada@example.com")
	_, err := w.ChangeAddress(t.Context(), p, "eve@example.com", tenancy.Proof{Password: password})
	must(t, err)
	w.deliver()
	oldSide, newSide := tokenOf(w.mailTo("ada@example.com")), tokenOf(w.mailTo("eve@example.com"))
	w.box.clear()
	token := w.forgot("ada@example.com")
	w.wantReset("the link", token, true)
	w.wantReset("the link again", token, false)
	w.wantReset("an older link", other, false)
	w.wantEnded("a session", session)
	_, err = w.VerifyMFA(t.Context(), step, w.code(text, 0), "", from(""))
	wantFault(t, "a step from before", err, fault.Unauthenticated)
	for _, link := range []string{oldSide, newSide} {
		_, err = w.ConfirmAddress(t.Context(), link, from(""))
		wantFault(t, "a change of address from before", err, fault.NotFound)
	}
	w.wantCount(0, "session")
	w.wantCount(0, "sign_in_step")
	w.wantCount(0, "confirmation")
	w.wantPassword("ada@example.com", password, false)
	in, err := w.Login(t.Context(), "ada@example.com", newPassword, from(""))
	if err != nil || in.Step != tenancy.StepMFA {
		t.Errorf("got the step %q, %v, want the second factor still", in.Step, err)
	}
	w.wantAudit(p.Org, tenancy.ActionPasswordReset, 1)
	w.deliver()
	if got := w.box.subjects("ada@example.com"); got != "Choose a new password for Crier | Your password at Crier was changed" {
		t.Errorf("got the mails %s, want the link and the notice", got)
	}
}

func TestReset_LinkExpiresAndBadPasswordKeepsIt(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	w.owner("ada@example.com")
	token := w.forgot("ADA@example.com")
	_, err := w.ResetPassword(t.Context(), token, "password", from(""))
	wantFault(t, "a common password", err, fault.Invalid)
	_, err = w.ResetPassword(t.Context(), token, "short", from(""))
	wantFault(t, "a short password", err, fault.Invalid)
	w.wantDeadLink("as an activation", token)
	_, err = w.ConfirmAddress(t.Context(), token, from(""))
	wantFault(t, "as a change of address", err, fault.NotFound)
	w.advance(tenancy.ResetLife - time.Second)
	w.wantReset("before 20 min", token, true)
	token = w.forgot("ada@example.com")
	w.advance(tenancy.ResetLife)
	w.wantReset("after 20 min", token, false)
	w.wantReset("nothing", "", false)
}

func TestReset_VerifiesTheAddressOfTheLink(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	w.owner("ada@example.com")
	w.exec("update person set verified = false")
	w.wantReset("the link", w.forgot("ada@example.com"), true)
	w.wantCount(1, "person where verified")
}

func TestReset_OnceInParallel(t *testing.T) {
	t.Parallel()
	w := openAtOnce(t, nil)
	p := w.owner("ada@example.com")
	token := w.forgot("ada@example.com")
	done := together(8, func(i int) bool {
		ok, err := patient(func() (bool, error) { return w.ResetPassword(t.Context(), token, newPassword, site(i)) })
		if err != nil {
			t.Errorf("reset: %v", err)
		}
		return ok
	})
	n := 0
	for _, ok := range done {
		if ok {
			n++
		}
	}
	if n != 1 {
		t.Errorf("got %d resets by one link, want 1", n)
	}
	w.wantAudit(p.Org, tenancy.ActionPasswordReset, 1)
}

// TestReset_OldPasswordLeavesNoSession logs in with the old password while it is being replaced. No
// session may survive.
func TestReset_OldPasswordLeavesNoSession(t *testing.T) {
	t.Parallel()
	w := openAtOnce(t, nil)
	w.owner("ada@example.com")
	for range 5 {
		w.exec("update person set password_hash = $1", cheapHash)
		token := w.forgot("ada@example.com")
		stop := make(chan struct{})
		var guessing sync.WaitGroup
		for i := range 4 {
			guessing.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						_, _ = w.Login(t.Context(), "ada@example.com", password, site(i))
					}
				}
			})
		}
		w.wantReset("the link", token, true)
		close(stop)
		guessing.Wait()
		w.wantCount(0, "session")
		if t.Failed() {
			return
		}
	}
}

func TestChangePassword_EndsOtherSessions(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	other := w.login("ada@example.com", tenancy.StepDone).Session
	reset := w.forgot("ada@example.com")
	err := w.ChangePassword(t.Context(), p, tenancy.Proof{Password: "wrong"}, newPassword)
	wantFault(t, "a wrong old password", err, fault.Invalid)
	err = w.ChangePassword(t.Context(), p, tenancy.Proof{Password: password}, "12345678")
	wantFault(t, "a common password", err, fault.Invalid)
	w.wantAlive("the other session", other)
	must(t, w.ChangePassword(t.Context(), p, tenancy.Proof{Password: password}, newPassword))
	w.wantEnded("the other session", other)
	w.wantReset("a link from before", reset, false)
	w.wantCount(1, "session where id = $1", p.Session)
	w.wantPassword("ada@example.com", password, false)
	w.wantPassword("ada@example.com", newPassword, true)
	w.wantAudit(p.Org, tenancy.ActionPasswordChanged, 1)
}

func TestChangePassword_FirstPasswordNeedsRecentSignIn(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	w.exec("update person set password_hash = ''")
	w.advance(tenancy.RecentSignIn)
	err := w.ChangePassword(t.Context(), p, tenancy.Proof{Password: ""}, newPassword)
	wantFault(t, "ten minutes after the sign-in", err, fault.Invalid)
	w.advance(-time.Second)
	must(t, w.ChangePassword(t.Context(), p, tenancy.Proof{Password: ""}, newPassword))
	w.wantPassword("ada@example.com", newPassword, true)
	must(t, w.Logout(t.Context(), "", from(""))) // without a session
	w.exec("delete from session where id = $1", p.Session)
	err = w.ChangePassword(t.Context(), p, tenancy.Proof{Password: newPassword}, password)
	wantFault(t, "a session that ended meanwhile", err, fault.Unauthenticated)
}

// changeAddress starts a change of address and returns the tokens sent to the old and the new
// address.
func (w *rig) changeAddress(p tenancy.Principal, email string) (string, string) {
	w.t.Helper()
	done, err := w.ChangeAddress(w.t.Context(), p, email, tenancy.Proof{Password: password})
	if err != nil || done {
		w.t.Fatalf("change the address: got %v, %v, want links first", done, err)
	}
	return w.link(p.Name), w.link(email)
}

func (w *rig) wantConfirmed(name, token string, want bool) {
	w.t.Helper()
	done, err := w.ConfirmAddress(w.t.Context(), token, from(""))
	if err != nil || done != want {
		w.t.Errorf("%s: got %v, %v, want %v", name, done, err, want)
	}
}

func TestChangeAddress_NeedsBothLinksInAnyOrder(t *testing.T) {
	t.Parallel()
	for _, oldFirst := range []bool{true, false} {
		w := open(t, nil)
		p := w.owner("ada@example.com")
		reset := w.forgot("ada@example.com")
		first, second := w.changeAddress(p, "Byron@example.com")
		if !oldFirst {
			first, second = second, first
		}
		w.wantConfirmed("one link", first, false)
		w.wantConfirmed("the same link", first, false)
		w.wantCount(1, "person where email = 'ada@example.com'")
		w.wantConfirmed("the other", second, true)
		w.wantCount(1, "person where email = 'byron@example.com' and verified")
		for _, token := range []string{first, second} {
			_, err := w.ConfirmAddress(t.Context(), token, from(""))
			wantFault(t, "a used link", err, fault.NotFound)
		}
		w.wantReset("a link that was sent to the old address", reset, false)
		w.wantAudit(p.Org, tenancy.ActionAddressChanged, 1)
		if m := w.mailTo("ada@example.com"); m.Subject != "Your email address at Crier was changed" {
			t.Errorf("got the mail %q to the old address, want that it was changed", m.Subject)
		}
		w.wantPassword("byron@example.com", password, true)
		w.wantPassword("ada@example.com", password, false)
	}
}

func TestChangeAddress_RefusesTakenAddressAndOldLinks(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	oldA, newA := w.changeAddress(p, "byron@example.com")
	oldB, newB := w.changeAddress(p, "lovelace@example.com")
	for _, token := range []string{oldA, newA} {
		_, err := w.ConfirmAddress(t.Context(), token, from(""))
		wantFault(t, "a link of an earlier request", err, fault.NotFound)
	}
	w.wantConfirmed("the old side", oldB, false)
	w.person("lovelace@example.com")
	_, err := w.ConfirmAddress(t.Context(), newB, from(""))
	wantFault(t, "an address that was taken meanwhile", err, fault.Conflict)
	w.wantCount(1, "person where email = 'ada@example.com'")
	w.wantAudit(p.Org, tenancy.ActionAddressChanged, 0)
	w.box.clear()
	done, err := w.ChangeAddress(t.Context(), p, "lovelace@example.com", tenancy.Proof{Password: password})
	if err != nil || done {
		t.Errorf("an address in use: got %v, %v, want the same answer as for a free one", done, err)
	}
	if m := w.mailTo("lovelace@example.com"); tokenOf(m) != "" {
		t.Errorf("got a link in the mail to the owner of the address: %s", m.Text)
	}
	w.wantConfirmed("the old side alone", w.link("ada@example.com"), false)
	old, fresh := w.changeAddress(p, "new@example.com")
	w.advance(tenancy.ConfirmationLife)
	for _, token := range []string{old, fresh} {
		_, err = w.ConfirmAddress(t.Context(), token, from(""))
		wantFault(t, "after a day", err, fault.NotFound)
	}
	_, err = w.ChangeAddress(t.Context(), p, "x@example.com", tenancy.Proof{Password: "wrong"})
	wantFault(t, "a wrong password", err, fault.Invalid)
	_, err = w.ChangeAddress(t.Context(), p, "ADA@example.com", tenancy.Proof{Password: password})
	wantFault(t, "the present address", err, fault.Invalid)
}

func TestChangeAddress_WithoutMail(t *testing.T) {
	t.Parallel()
	w := open(t, withoutMail)
	p := w.owner("ada@example.com")
	w.person("eve@example.com")
	_, err := w.ChangeAddress(t.Context(), p, "eve@example.com", tenancy.Proof{Password: password})
	wantFault(t, "an address in use", err, fault.Conflict)
	done, err := w.ChangeAddress(t.Context(), p, "byron@example.com", tenancy.Proof{Password: password})
	if err != nil || !done {
		t.Fatalf("got %v, %v, want the change at once", done, err)
	}
	w.wantCount(1, "person where email = 'byron@example.com' and not verified")
	w.wantCount(0, "mail")
}
