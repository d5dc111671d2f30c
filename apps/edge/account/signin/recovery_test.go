package signin_test

import (
	"fmt"
	"testing"

	"crier/platform/fault"
	"crier/tests/edgetest"
)

func TestRecovery_AnswersOfLinks(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	edgetest.Want(t, s.Call(t, "GET", "/auth/can-register", ""), 200, `{"register":true}`)
	edgetest.Want(t, s.Submit(t, "/auth/activate", `{"code":"used"}`), 201, `{"can":false}`)
	edgetest.Want(t, s.Submit(t, "/auth/activate", `{"code":"another-browser"}`), 201, `{"can":false,"passwordRequired":true}`)
	edgetest.Want(t, s.Submit(t, "/auth/forgot", `{"email":"ADA@example.org "}`), 201, `{"forgot":true}`)
	edgetest.Want(t, s.Submit(t, "/auth/resend-activation", `{"email":"ada@example.org"}`), 201, `{"success":true}`)
	reset := `{"token":%q,"password":"correct horse","repeatPassword":"correct horse"}`
	edgetest.Want(t, s.Submit(t, "/auth/forgot-return", fmt.Sprintf(reset, "token")), 201, `{"reset":true}`)
	edgetest.Want(t, s.Submit(t, "/auth/forgot-return", fmt.Sprintf(reset, "used-token")), 201, `{"reset":false}`)
	edgetest.Want(t, s.Submit(t, "/auth/confirm-email", `{"token":"t"}`), 201, `{"confirmed":true,"changed":true}`)
	edgetest.Want(t, s.Submit(t, "/auth/mfa/enroll/begin", `{"mfaToken":"t"}`), 201, `{"secret":"SECRET","otpauthUrl":"otpauth://totp/x"}`)
	s.WantCalls(t, "CanRegister", "Activate used", "Activate another-browser", "Forgot ada@example.org", "ResendActivation ada@example.org",
		"ResetPassword token correct horse", "ResetPassword used-token correct horse", "ConfirmAddress t", "BeginEnrollment t")
	s.Fail(fault.New(fault.Gone, "fake", "The link is over."))
	edgetest.Want(t, s.Submit(t, "/auth/confirm-email", `{"token":"t"}`), 410, "The link is over.")
}
