package edgetest

import (
	"context"

	"crier/platform/fault"
	"crier/tenancy"
)

func (a accounts) ChangePassword(_ context.Context, _ tenancy.Principal, proof tenancy.Proof, password string) error {
	if err := prove(proof.Password); err != nil {
		return err
	}
	return a.record("ChangePassword", proof.Password, password)
}

func (a accounts) ChangeAddress(
	_ context.Context, _ tenancy.Principal, email string, proof tenancy.Proof,
) (bool, error) {
	if err := prove(proof.Password); err != nil {
		return false, err
	}
	return false, a.record("ChangeAddress", email, proof.Code)
}

func (a accounts) MFAStatus(context.Context, tenancy.Principal) (tenancy.MFAStatus, error) {
	at := Day
	return tenancy.MFAStatus{Enabled: true, Required: true, EnabledAt: &at, RecoveryCodesLeft: 9}, a.record("MFAStatus")
}

func (a accounts) BeginMFA(_ context.Context, _ tenancy.Principal, proof tenancy.Proof) (tenancy.Secret, error) {
	if err := prove(proof.Password); err != nil {
		return tenancy.Secret{}, err
	}
	return tenancy.Secret{Text: "SECRET", URL: "otpauth://totp/x"}, a.record("BeginMFA")
}

func (a accounts) ConfirmMFA(_ context.Context, _ tenancy.Principal, code string) ([]string, error) {
	return []string{"r1", "r2"}, a.record("ConfirmMFA", code)
}

func (a accounts) DisableMFA(_ context.Context, _ tenancy.Principal, proof tenancy.Proof) error {
	if err := prove(proof.Password); err != nil {
		return err
	}
	return a.record("DisableMFA", proof.Code)
}

func (a accounts) ReplaceRecoveryCodes(_ context.Context, _ tenancy.Principal, code string) ([]string, error) {
	return []string{"r3"}, a.record("ReplaceRecoveryCodes", code)
}

func (a accounts) MFAPolicy(context.Context, tenancy.Principal) (bool, error) {
	return true, a.record("MFAPolicy")
}

func (a accounts) SetMFAPolicy(_ context.Context, _ tenancy.Principal, required bool) error {
	return a.record("SetMFAPolicy", required)
}

func (a accounts) Identities(context.Context, tenancy.Principal) ([]tenancy.Identity, error) {
	return []tenancy.Identity{{Provider: "GITHUB", CreatedAt: Day}}, a.record("Identities")
}

func (a accounts) UnlinkIdentity(_ context.Context, _ tenancy.Principal, identity string) error {
	if identity == "last" {
		return fault.New(fault.Conflict, "test", "You could not sign in any more.")
	}
	return a.record("UnlinkIdentity", identity)
}
