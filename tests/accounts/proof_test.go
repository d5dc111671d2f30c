package accounts

import (
	"errors"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/tenancy"
)

// needsCode fails the test unless the error asks for a code of the second factor.
func needsCode(t *testing.T, name string, err error) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != fault.Invalid || f.Remedy != fault.RemedyCode {
		t.Errorf("%s: got %v, want a question for a code", name, err)
	}
}

// proven returns the commands that require proof of the person's identity.
func (w *rig) proven(p tenancy.Principal) map[string]func(proof tenancy.Proof) error {
	ctx := w.t.Context()
	return map[string]func(proof tenancy.Proof) error{
		"change the password": func(proof tenancy.Proof) error { return w.ChangePassword(ctx, p, proof, newPassword) },
		"change the address": func(proof tenancy.Proof) error {
			_, err := w.ChangeAddress(ctx, p, "byron@example.com", proof)
			return err
		},
		"hand the organization over": func(proof tenancy.Proof) error {
			return w.setRole(p, p.Person.String(), tenancy.RoleSuperAdmin, proof)
		},
		"delete the organization": func(proof tenancy.Proof) error { return w.DeleteOrganization(ctx, p, proof) },
		"delete the account":      func(proof tenancy.Proof) error { return w.DeleteAccount(ctx, p, proof) },
		"create a key": func(proof tenancy.Proof) error {
			_, _, err := w.CreateKey(ctx, p, tenancy.NewKey{Name: "CI", Proof: proof})
			return err
		},
		"rotate a key": func(proof tenancy.Proof) error {
			_, err := w.RotateKey(ctx, p, "", 0, proof)
			return err
		},
	}
}

func TestProof_AsksForTheSecondFactor(t *testing.T) {
	t.Parallel()
	for name := range (&rig{t: t}).proven(tenancy.Principal{}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := open(t, nil)
			p := w.owner("ada@example.com")
			text, _ := w.enroll(p)
			w.advance(tenancy.RecentSignIn)
			try := w.proven(p)[name]
			needsCode(t, "the password alone", try(tenancy.Proof{Password: password}))
			err := try(tenancy.Proof{Password: password, Code: w.wrongCode(text)})
			wantFault(t, "a wrong code", err, fault.Invalid)
			w.wantCount(1, "mfa where tries = 1")
			err = try(tenancy.Proof{Password: "wrong", Code: w.code(text, 0)})
			wantFault(t, "a wrong password", err, fault.Invalid)
			must(t, try(tenancy.Proof{Password: password, Code: w.code(text, 0)}))
		})
	}
}

func TestProof_TakesARecoveryCodeOnce(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	_, codes := w.enroll(p)
	w.advance(tenancy.RecentSignIn)
	create := w.proven(p)["create a key"]
	must(t, create(tenancy.Proof{Password: password, Code: codes[0]}))
	err := create(tenancy.Proof{Password: password, Code: codes[0]})
	wantFault(t, "a recovery code again", err, fault.Invalid)
	w.wantAudit(p.Org, tenancy.ActionRecoveryUsed, 1)
}

func TestProof_WrongCodesCount(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	text, _ := w.enroll(p)
	w.advance(tenancy.RecentSignIn)
	for range 5 {
		wantFault(t, "a wrong code", w.DeleteAccount(t.Context(), p, tenancy.Proof{Password: password, Code: w.wrongCode(text)}), fault.Invalid)
	}
	err := w.DeleteAccount(t.Context(), p, tenancy.Proof{Password: password, Code: w.code(text, 0)})
	wantFault(t, "the right code behind five wrong ones", err, fault.RateLimited)
	w.wantCount(0, "person where deleted_at is not null")
}

func TestProof_SignInWithTheFactorIsEnoughForTenMinutes(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	text, _ := w.enroll(w.owner("ada@example.com"))
	in := w.login("ada@example.com", tenancy.StepMFA)
	in, err := w.verify(in.Token, w.code(text, 0), "")
	must(t, err)
	p := w.principal(in.Session, "")
	w.advance(tenancy.RecentSignIn - time.Second)
	must(t, w.ChangePassword(t.Context(), p, tenancy.Proof{Password: password}, newPassword))
	_, _, err = w.CreateKey(t.Context(), p, tenancy.NewKey{Name: "CI"})
	must(t, err)
	w.advance(time.Second)
	needsCode(t, "ten minutes later", w.ChangePassword(t.Context(), p, tenancy.Proof{Password: newPassword}, password))
	_, _, err = w.CreateKey(t.Context(), p, tenancy.NewKey{Name: "CI"})
	wantFault(t, "a key ten minutes later", err, fault.Invalid)
}

func TestProof_SessionFromBeforeTheFactorNeedsACode(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	old := w.enter("ada@example.com", "")
	w.enroll(p)
	needsCode(t, "a recent session without the factor", w.DeleteAccount(t.Context(), old, proof))
	_, _, err := w.CreateKey(t.Context(), old, tenancy.NewKey{Name: "CI"})
	needsCode(t, "a key", err)
}

func TestCreateKey_NeedsARecentSignInOrThePassword(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	create := w.proven(p)["create a key"]
	must(t, create(tenancy.Proof{}))
	w.advance(tenancy.RecentSignIn)
	wantFault(t, "an old session alone", create(tenancy.Proof{}), fault.Invalid)
	wantFault(t, "a wrong password", create(tenancy.Proof{Password: "wrong"}), fault.Invalid)
	must(t, create(proof))
	w.wantCount(2, "api_key")
}

// ended returns commands of a person. Each must notice that the session has ended.
func (w *rig) ended(p tenancy.Principal) map[string]func() error {
	ctx := w.t.Context()
	out := map[string]func() error{
		"create an organization": func() error { _, err := w.CreateOrganization(ctx, p, "Another"); return err },
		"join":                   func() error { _, err := w.JoinOrganization(ctx, p, "token"); return err },
		"begin MFA":              func() error { _, err := w.BeginMFA(ctx, p, proof); return err },
		"confirm MFA":            func() error { _, err := w.ConfirmMFA(ctx, p, "000000"); return err },
		"disable MFA":            func() error { return w.DisableMFA(ctx, p, proof) },
		"recovery codes":         func() error { _, err := w.ReplaceRecoveryCodes(ctx, p, "000000"); return err },
		"the MFA policy":         func() error { return w.SetMFAPolicy(ctx, p, false) },
		"the profile":            func() error { _, err := w.SetProfile(ctx, p, tenancy.Profile{Name: "Eve"}); return err },
		"the notifications":      func() error { return w.SetNotifications(ctx, p, tenancy.DefaultNotifications()) },
		"setup":                  func() error { return w.Setup(ctx, p, tenancy.Setup{Name: "Eve"}) },
		"end the sessions":       func() error { _, err := w.EndSessions(ctx, p, ""); return err },
		"restore":                func() error { return w.RestoreOrganization(ctx, p, p.Org.String()) },
		"unlink":                 func() error { return w.UnlinkIdentity(ctx, p, p.Org.String()) },
	}
	for _, name := range []string{"change the password", "change the address", "delete the account"} {
		out[name] = func() error { return w.proven(p)[name](proof) }
	}
	return out
}

// TestPeople_EndedSessionCannotAct ends the session after a command's guard has run and before its
// transaction.
func TestPeople_EndedSessionCannotAct(t *testing.T) {
	t.Parallel()
	w := openAtOnce(t, nil)
	for name := range w.ended(tenancy.Principal{}) {
		p := w.owner(string(rune('a'+w.count("select count(*) from person"))) + "@example.com")
		w.exec("begin")
		w.exec("select 1 from person where id = $1 for update", p.Person)
		result := make(chan error, 1)
		go func() { result <- w.ended(p)[name]() }()
		w.awaitBlocked(1)
		w.exec("delete from session where person_id = $1", p.Person)
		w.exec("commit")
		wantFault(t, name, <-result, fault.Unauthenticated)
	}
	w.wantCount(0, "person where deleted_at is not null or name <> 'Ada' or password_hash <> $1", cheapHash)
	w.wantCount(0, "mfa")
}

func TestDeleteAccount_ConcurrentDeletesRestoreWhole(t *testing.T) {
	t.Parallel()
	w, other := pair(t)
	for range 6 {
		p := w.owner(string(rune('a'+w.count("select count(*) from person"))) + "@example.com")
		errs := together(2, func(i int) error {
			if i == 0 {
				return w.DeleteAccount(t.Context(), p, proof)
			}
			return other.DeleteAccount(t.Context(), p, proof)
		})
		if got := kinds(errs); got[""]+got[fault.Unauthenticated] != 2 || got[""] == 0 {
			t.Fatalf("got %v, want that both work, or that one finds its session ended", errs)
		}
		w.advance(time.Second)
		_, err := w.Restore(t.Context(), w.login(p.Name, tenancy.StepRestore).Token, from(""))
		must(t, err)
		w.wantCount(1, "organization where id = $1 and deleted_at is null and deleted_with is null", p.Org)
		w.wantAudit(p.Org, tenancy.ActionAccountDeleted, 1)
	}
}
