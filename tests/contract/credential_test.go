package contract

import (
	"net/http"
	"testing"

	"crier/tenancy"
)

// newKey creates another API key of the organization. same is the organization with that key.
func (o org) newKey(t *testing.T) (same org, revoke func()) {
	t.Helper()
	full, key, err := o.app.Accounts.CreateKey(t.Context(), o.who, tenancy.NewKey{Name: "another"})
	if err != nil {
		t.Fatal(err)
	}
	same = o
	same.key = full
	return same, func() {
		t.Helper()
		if err := o.app.Accounts.DeleteKey(t.Context(), o.who, key.ID.String()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCredentials_ExpiredOrRevokedAreRefused(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	t.Run("an expired key is refused", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		o.tenant(t, `update api_key set expires_at = now() - interval '1 second'`)
		for range 2 {
			o.get(t, "/is-connected").refusal(t, http.StatusUnauthorized)
		}
		o.do(t, http.MethodPost, "/posts", later("none", part("x"))).refusal(t, http.StatusUnauthorized)
	})
	t.Run("a key that expires later is accepted", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		o.tenant(t, `update api_key set expires_at = now() + interval '1 hour'`)
		o.get(t, "/is-connected").want(t, http.StatusOK)
	})
	t.Run("a revoked key is refused at once, and no other", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		revoked, revoke := o.newKey(t)
		revoked.get(t, "/is-connected").want(t, http.StatusOK)
		revoke()
		revoked.get(t, "/is-connected").refusal(t, http.StatusUnauthorized)
		o.get(t, "/is-connected").want(t, http.StatusOK)
	})
	t.Run("a person who has not confirmed the address cannot sign in", func(t *testing.T) {
		t.Parallel()
		own := start(t, nil)
		o := own.organization(t)
		o.prefix, o.key = "", ""
		body := m{"provider": "LOCAL", "email": o.email, "password": password}
		own.as(t, "none", "", `update person set activated = false`)
		a := o.do(t, http.MethodPost, "/auth/login", body)
		if a.refusal(t, http.StatusBadRequest); a.Cookie("auth") != "" {
			t.Errorf("the refusal sets a session: %v, want none", a.Header)
		}
		own.as(t, "none", "", `update person set activated = true`)
		if a := o.do(t, http.MethodPost, "/auth/login", body).want(t, http.StatusCreated); a.Cookie("auth") == "" {
			t.Errorf("the sign-in sets no session: %v, want the cookie auth", a.Header)
		}
	})
}
