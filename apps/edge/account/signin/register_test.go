package signin_test

import (
	"fmt"
	"strings"
	"testing"

	"crier/tenancy"
	"crier/tests/edgetest"
)

// TestRegister_UsesOnlyTheInvitationOfTheBody: another person's link can put an invitation into the
// cookie.
func TestRegister_UsesOnlyTheInvitationOfTheBody(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	s.SetSignIn(tenancy.SignIn{Step: tenancy.StepConfirm})
	a := s.Submit(t, "/auth/register", edgetest.RegistrationBody, "Cookie", "org=fresh")
	edgetest.Want(t, a, 201, `{"activate":true}`)
	if got := edgetest.CookieNames(edgetest.SetCookies(t, a)); got != "" || a.Header.Get("Activate") != "true" {
		t.Errorf("sets %q with %v, want activate only: the invitation is offered after the confirmation", got, a.Header)
	}
	s.WantCalls(t, "Register "+edgetest.Ada+" Ada correct horse Acme")
	body := strings.Replace(edgetest.RegistrationBody, "{", `{"org":"of the body",`, 1)
	edgetest.Want(t, s.Submit(t, "/auth/register", body, "Cookie", "org=of-the-cookie"), 201)
	s.WantCalls(t, "Register "+edgetest.Ada+" Ada correct horse Acme of the body")
}

func TestRegister_LongestNamesFit(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	name, letter := strings.Repeat(`\ud83d\ude00`, 128), `\u0061`
	body := fmt.Sprintf(`{"email":"%s@%s.test","password":"%s","company":"%s","fullname":"%s","org":"%s"}`,
		strings.Repeat(letter, 64), strings.Repeat(letter, 180), name, name, name, strings.Repeat("x", 43))
	edgetest.Want(t, s.Submit(t, "/auth/register", body), 201)
	if calls := s.TakeCalls(); len(calls) != 1 || strings.Count(calls[0], "😀") != 3*128 {
		t.Errorf("calls %.200q, want one with the whole names", calls)
	}
}
