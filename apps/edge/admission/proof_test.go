package admission_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/tests/edgetest"
)

// tryProof proves the owner's identity for a change and fails the test unless the response has the
// status want.
func tryProof(t *testing.T, d edgetest.BehindProxy, from, path, password string, want int) {
	t.Helper()
	method := "POST"
	if strings.HasSuffix(path, "/role") {
		method = "PUT"
	}
	body := fmt.Sprintf(`{"oldPassword":%q,"password":%q,"newPassword":"correct horse","email":"new@example.org","confirm":"DELETE","role":"SUPERADMIN"}`, password, password)
	a := d.Call(t, method, path, body, "Content-Type", "application/json", "auth", edgetest.OwnerSession, "X-Forwarded-For", from)
	if a.Status != want {
		t.Fatalf("%s with %q from %s: answered %d %s, want %d", path, password, from, a.Status, a.Body, want)
	}
}

func TestProof_WrongOnesDelayLikeLogins(t *testing.T) {
	t.Parallel()
	for path, success := range map[string]int{
		"/user/change-password": 201, "/user/change-email": 201, "/user/mfa/begin": 201, "/user/mfa/disable": 201,
		"/settings/delete-account": 201, "/settings/delete-organization": 201, "/settings/team/x1/role": 200,
	} {
		d := edgetest.NewBehindProxy(t)
		tryProof(t, d, edgetest.Home, path, "right", success)
		for range 4 {
			tryProof(t, d, edgetest.Home, path, "wrong", 400)
		}
		// Log-ins and proofs of an account count together.
		d.TryLogin(t, edgetest.Home, edgetest.Ada, "wrong", 400)
		tryProof(t, d, edgetest.Home, path, "right", 429)
		d.TryLogin(t, edgetest.Home, edgetest.Ada, "right", 60)
		d.Forward(time.Minute)
		tryProof(t, d, edgetest.Home, path, "right", success)
	}
}

func TestProof_OtherRefusalsAreNotCounted(t *testing.T) {
	t.Parallel()
	d := edgetest.NewBehindProxy(t)
	for _, err := range []error{
		fault.New(fault.Conflict, "fake", "There is one."), fault.New(fault.Unavailable, "fake", "Later."),
		&fault.Error{Kind: fault.Invalid, Op: "fake", Fields: []fault.Field{{Name: "newPassword", Message: "is too common"}}},
	} {
		d.Fail(err)
		for range 10 {
			if a := d.Call(t, "POST", "/user/change-password", `{"oldPassword":"right","newPassword":"correct horse"}`,
				"Content-Type", "application/json", "auth", edgetest.UserSession); a.Status == 429 {
				t.Fatalf("%v: answered 429", err)
			}
		}
	}
	d.Fail(nil)
	tryProof(t, d, edgetest.Home, "/user/change-password", "right", 201)
}
