package contract

import (
	"net/http"
	"regexp"
	"testing"

	"crier/tenancy"
	"crier/tests/smtptest"
)

// newKey creates another API key for the organization. same is the organization with that key.
func (o org) newKey(t *testing.T) (same org, revoke func()) {
	t.Helper()
	full, key, err := o.app.Accounts.CreateKey(t.Context(), asOperator(o.who), tenancy.NewKey{Name: "another"})
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
	r := common(t)
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
	t.Run("a revoked key is refused at once, and no other key is", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		revoked, revoke := o.newKey(t)
		revoked.get(t, "/is-connected").want(t, http.StatusOK)
		revoke()
		revoked.get(t, "/is-connected").refusal(t, http.StatusUnauthorized)
		o.get(t, "/is-connected").want(t, http.StatusOK)
	})
	t.Run("a person who has not confirmed the address cannot sign in", testUnconfirmedAddress)
}

var activationLink = regexp.MustCompile(`/auth/activate#code=(\w+)`)

func testUnconfirmedAddress(t *testing.T) {
	t.Parallel()
	mails := smtptest.Start(t, smtptest.Plain())
	own := start(t, map[string]string{
		"SMTP_URL": mails.URL(), "MAIL_FROM": "Crier <crier@crier.test>", "REGISTRATION": "open",
	})
	visitor := own.organization(t)
	visitor.prefix, visitor.key = "", ""
	const email = "new@crier.test"
	registered := visitor.do(t, http.MethodPost, "/auth/register", m{
		"provider": "LOCAL", "email": email, "password": password, "company": "Another",
	}).want(t, http.StatusCreated)
	body := m{"provider": "LOCAL", "email": email, "password": password}
	refused := visitor.do(t, http.MethodPost, "/auth/login", body)
	refused.refusal(t, http.StatusBadRequest)
	for name, a := range map[string]answer{"registration": registered, "refusal": refused} {
		if a.Cookie("auth") != "" {
			t.Errorf("the %s sets a session: %v, want none", name, a.Header)
		}
	}
	link := activationLink.FindStringSubmatch(mails.Wait(t, email, "Activate").Text)
	if link == nil {
		t.Fatal("the mail has no link")
	}
	visitor.do(t, http.MethodPost, "/auth/activate", m{"code": link[1], "password": password}).want(t, http.StatusCreated)
	if a := visitor.do(t, http.MethodPost, "/auth/login", body).want(t, http.StatusCreated); a.Cookie("auth") == "" {
		t.Errorf("the sign-in sets no session: %v, want the cookie auth", a.Header)
	}
}
