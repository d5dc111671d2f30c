package accounts

import (
	"encoding/hex"
	"strings"
	"testing"

	"crier/tenancy"
)

// vault maps the names of a test's secrets to their values.
type vault map[string]string

func (v vault) add(name string, secrets ...string) {
	for i, s := range secrets {
		v[name+strings.Repeat("'", i)] = s
	}
}

// search reports each secret that occurs in a text: as it is, in lower case or in hexadecimal, as
// dump prints bytes.
func (v vault) search(t *testing.T, where, text string) {
	t.Helper()
	for name, s := range v {
		if len(s) < 6 {
			t.Errorf("the secret %s is %q, which cannot be looked for", name, s)
		}
		for _, form := range []string{s, hex.EncodeToString([]byte(s)), strings.ToLower(s)} {
			if strings.Contains(text, form) {
				t.Errorf("%s has the secret %s", where, name)
			}
		}
	}
}

// TestSecrets_NeverInRowsOrLog uses every kind of secret and looks for the values in all tables and
// in the log, also while mails are queued.
func TestSecrets_NeverInRowsOrLog(t *testing.T) {
	t.Parallel()
	var f *providers
	w := open(t, func(w *rig) { f = w.withProviders() })
	v := vault{"the password": password, "the new password": newPassword, "the enterprise key": enterpriseKey}
	look := func() {
		t.Helper()
		for table, rows := range w.dump() {
			v.search(t, table, strings.Join(rows, "\n"))
		}
		v.search(t, "the log", w.log.String())
	}
	r := newRegistration("bob@example.com", "Engines")
	w.register(r)
	v.add("activation", w.link("bob@example.com"))
	in := w.activate(v["activation"])
	v.add("session", in.Session)
	v.add("device", in.Device)
	p := w.principal(in.Session, "")
	key, k := w.key(p, "CI")
	next, err := w.rotate(p, k.ID.String(), 5)
	must(t, err)
	v.add("keys", key, next.Full)
	_, shown := w.invite(p, "carl@example.com", tenancy.RoleUser)
	v.add("invitation", shown, w.link("carl@example.com"))
	v.add("reset", w.forgot("bob@example.com"))
	must(t, w.Forgot(t.Context(), "bob@example.com"))
	must(t, w.ResendActivation(t.Context(), "bob@example.com"))
	look()
	_, err = w.ResetPassword(t.Context(), v["reset"], newPassword, from(""))
	must(t, err)
	in, err = w.Login(t.Context(), "bob@example.com", newPassword, from(""))
	must(t, err)
	p = w.principal(in.Session, "")
	v.add("second session", in.Session, in.Device)
	must(t, w.ChangePassword(t.Context(), p, tenancy.Proof{Password: newPassword}, password))
	text, codes := w.enroll(p)
	v.add("TOTP", text)
	v.add("recovery", codes...)
	step := w.login("bob@example.com", tenancy.StepMFA).Token
	v.add("step", step)
	_, _ = w.verify(step, "", codes[9])
	old, fresh := w.changeAddress(p, "byron@example.com")
	v.add("address", old, fresh)
	_, _ = w.ConfirmAddress(t.Context(), old, from(""))
	cb := w.callback(nobody, "ada")
	v.add("state", cb.State, strings.Replace(cb.State, "state", "verifier", 1))
	look()
	out, err := w.FinishSignIn(t.Context(), "GITHUB", cb, nobody)
	must(t, err)
	v.add("claim", out.Claim)
	look()
	reset, err := w.SetPasswordOf(t.Context(), "bob@example.com")
	must(t, err)
	v.add("password of the operator", reset)
	must(t, w.DeleteAccount(t.Context(), w.owner("dora@example.com"), proof))
	restore := w.login("dora@example.com", tenancy.StepRestore).Token
	v.add("restoration", restore)
	look()
	w.deliver()
	look()
	if f.begun == 0 || len(v) < 25 {
		t.Errorf("got %d secrets, want to have looked for all", len(v))
	}
	// The search does find a secret that is there.
	w.exec("insert into used_request (id, expires_at) values ($1, now())", v["claim"])
	if got := w.mentions(v["claim"]); len(got) != 1 {
		t.Errorf("got %v, want the row that the test has added", got)
	}
}
