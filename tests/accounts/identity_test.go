package accounts

import (
	"testing"

	"crier/platform/fault"
	"crier/platform/secret"
	"crier/tenancy"
)

// linked inserts an identity for a person, and a browser that is remembered for them.
func (w *rig) linked(person tenancy.PersonID, subject, browser string) {
	w.t.Helper()
	w.exec(`insert into identity (id, issuer, subject, person_id, provider)
		values (gen_random_uuid(), 'https://idp', $2, $1, 'GENERIC')`, person, subject)
	w.exec("insert into device (hash, person_id, expires_at) values ($1, $2, now() + interval '9 years')",
		secret.HashToken(browser), person)
}

// TestCredentials_EndWithThePassword checks that whatever an intruder could have added ends when
// the owner takes the account back.
func TestCredentials_EndWithThePassword(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change                func(w *rig, p tenancy.Principal)
		identities, intruders int
	}{
		"a reset": {change: func(w *rig, p tenancy.Principal) {
			done, err := w.ResetPassword(t.Context(), w.forgot(p.Name), newPassword, from("own"))
			if err != nil || !done {
				t.Errorf("reset: got %v, %v", done, err)
			}
		}},
		"the operator": {change: func(w *rig, p tenancy.Principal) {
			_, err := w.SetPasswordOf(t.Context(), p.Name)
			must(t, err)
			w.exec("insert into device (hash, person_id, expires_at) values ($1, $2, now() + interval '9 years')",
				secret.HashToken("own"), p.Person) // the operator's command comes from no browser
		}},
		"a change of password": {identities: 1, change: func(w *rig, p tenancy.Principal) {
			p.From.Device = "own"
			must(t, w.ChangePassword(t.Context(), p, tenancy.Proof{Password: password}, newPassword))
		}},
		"a change of address": {intruders: 1, change: func(w *rig, p tenancy.Principal) {
			old, fresh := w.changeAddress(p, "byron@example.com")
			w.wantConfirmed("the old address", old, false)
			w.wantConfirmed("the new address", fresh, true)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := open(t, nil)
			p, eve := w.owner("ada@example.com"), w.person("eve@example.com")
			w.linked(p.Person, "of Ada", "intruder")
			w.linked(eve, "of Eve", "of Eve")
			w.exec("insert into device (hash, person_id, expires_at) values ($1, $2, now() + interval '9 years')",
				secret.HashToken("own"), p.Person)
			c.change(w, p)
			w.wantCount(c.identities, "identity where person_id = $1", p.Person)
			w.wantCount(c.intruders, "device where person_id = $1 and hash = $2", p.Person, secret.HashToken("intruder"))
			w.wantCount(1, "device where person_id = $1 and hash = $2", p.Person, secret.HashToken("own"))
			w.wantCount(1, "identity where person_id = $1", eve)
			w.wantCount(1, "device where person_id = $1", eve)
		})
	}
}

func TestIdentity_Unlink(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p, eve := w.owner("ada@example.com"), w.owner("eve@example.com")
	w.linked(p.Person, "first", "1")
	w.linked(p.Person, "second", "2")
	list := func() []tenancy.Identity {
		all, err := w.Identities(t.Context(), p)
		must(t, err)
		return all
	}
	all := list()
	if len(all) != 2 {
		t.Fatalf("got %+v, want two", all)
	}
	first := all[0].ID.String()
	for name, err := range map[string]error{
		"somebody else's": w.UnlinkIdentity(t.Context(), eve, first), "no id": w.UnlinkIdentity(t.Context(), p, "x"),
	} {
		wantFault(t, name, err, fault.NotFound)
	}
	behind := p
	behind.Impersonator = eve.Person
	wantFault(t, "an operator who acts as Ada", w.UnlinkIdentity(t.Context(), behind, first), fault.Forbidden)
	must(t, w.UnlinkIdentity(t.Context(), p, first))
	wantFault(t, "twice", w.UnlinkIdentity(t.Context(), p, first), fault.NotFound)
	if m := w.mailTo("ada@example.com"); m.Subject != "A login method was removed from your account at Crier" {
		t.Errorf("got the mail %q, want that a login was removed", m.Subject)
	}
	w.wantAudit(p.Org, tenancy.ActionIdentityUnlinked, 1)
	last := list()[0].ID.String()
	w.exec("update person set password_hash = '' where id = $1", p.Person)
	wantFault(t, "the last way in", w.UnlinkIdentity(t.Context(), p, last), fault.Conflict)
	w.exec("update person set password_hash = $1 where id = $2", cheapHash, p.Person)
	must(t, w.UnlinkIdentity(t.Context(), p, last))
	w.wantCount(0, "identity")
}
