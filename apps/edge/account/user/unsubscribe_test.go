package user_test

import (
	"strings"
	"testing"

	"crier/tests/edgetest"
)

// TestUnsubscribe_ByMailProgramAndByPerson: RFC 8058 lets mail programs post a form without cookies
// or an Origin header.
func TestUnsubscribe_ByMailProgramAndByPerson(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	const path = "/auth/unsubscribe?token=mail-token"
	page := s.Call(t, "GET", path, "", "Accept", "text/html")
	edgetest.Want(t, page, 200, `<form method="post">`)
	edgetest.Want(t, page, 200, "emails about failed posts and channels that must be reconnected?")
	if policy := page.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "form-action 'self'") || !strings.HasPrefix(policy, "default-src 'none'") {
		t.Errorf("the policy is %q", policy)
	}
	s.WantCalls(t) // a program that follows links changes nothing
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	edgetest.Want(t, s.Call(t, "POST", path, "List-Unsubscribe=One-Click", form...), 201, `{"unsubscribed":true}`)
	edgetest.Want(t, s.Call(t, "POST", path, "", append(form, "Accept", "text/html,*/*;q=0.5")...), 201, "no longer receive emails about failed posts and channels")
	s.WantCalls(t, "Unsubscribe mail-token", "Unsubscribe mail-token")
	for _, bad := range []string{"/auth/unsubscribe", "/auth/unsubscribe?token=nope"} {
		edgetest.Want(t, s.Call(t, "POST", bad, "", form...), 404)
		edgetest.Want(t, s.Call(t, "GET", bad, ""), 404)
	}
}
