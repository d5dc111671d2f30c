package registration

import (
	"bytes"
	"context"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/credential"
	"crier/tenancy/db"
	"crier/tenancy/notice"
)

// Activate completes the registration that an activation link belongs to. It returns false if the
// link is invalid or was already used. It also returns false if an account with the address was
// created in the meantime, or if the instance no longer accepts the registration.
//
// Anybody can register any address and choose a password for it. If the link is opened in a browser
// other than the one used to register, Activate therefore also requires the registration's
// password. If the password is missing, the step is StepPassword and the link stays valid. If the
// password is wrong, Activate returns fault.Invalid.
//
// Without this check, the owner of an address could activate an account that somebody else
// registered, and that person would know the account's password.
func (s *Registrations) Activate(ctx context.Context, code, password string, from tenancy.Source) (
	out tenancy.SignIn, ok bool, err error) {
	const op = "tenancy.Activate"
	hash := credential.HashPasted(code)
	step, err := s.proveRegistrant(ctx, op, hash, password, from)
	if pg.IsNoRows(err) {
		return tenancy.SignIn{}, false, nil
	}
	if err != nil || step != tenancy.StepDone {
		return tenancy.SignIn{Step: step}, false, err
	}
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		c, err := credential.LockConfirmation(ctx, tx, hash, credential.ConfirmRegistration, s.clock.Now())
		if err != nil {
			return err
		}
		if err := credential.DeleteConfirmation(ctx, tx, c.ID); err != nil {
			return err
		}
		out, err = s.makeAccount(ctx, tx, op, c.Confirmation, true, from)
		return err
	})
	err = db.AccountFault(op, err)
	if pg.IsNoRows(err) || fault.Is(err, fault.Conflict) || fault.Is(err, fault.Forbidden) {
		return tenancy.SignIn{}, false, nil
	}
	return out, err == nil, err
}

// proveRegistrant returns StepDone if it knows that the person opening a link also made the
// registration, and StepPassword if it needs the password to find out. It returns fault.Invalid for
// a wrong password, and pgx.ErrNoRows for an invalid link.
func (s *Registrations) proveRegistrant(ctx context.Context, op string, hash []byte, password string, from tenancy.Source) (
	tenancy.Step, error) {
	var c credential.Confirmation
	err := s.db.InGate(ctx, op, func(tx *db.GateTx) (err error) {
		c, err = credential.ConfirmationByHash(ctx, tx, hash, credential.ConfirmRegistration, s.clock.Now())
		return err
	})
	if err != nil {
		return "", err
	}
	if from.Device != "" && bytes.Equal(c.Device, secret.HashToken(from.Device)) {
		return tenancy.StepDone, nil
	}
	// The registrant used an identity provider and has no password.
	if c.PasswordHash == "" {
		return "", fault.New(fault.Invalid, op, "Open this link in the browser that you used to register.")
	}
	if password == "" {
		return tenancy.StepPassword, nil
	}
	ok, err := s.proofs.Matches(ctx, from.Site, password, c.PasswordHash)
	if err == nil && !ok {
		return "", &fault.Error{Kind: fault.Invalid, Op: op, Message: "This is not the password of this registration.",
			Fields: []fault.Field{{Name: "password", Message: "is not the password of this registration; if you did " +
				"not register, somebody else did: register yourself"}}}
	}
	return tenancy.StepDone, err
}

// ResendActivation emails a new activation link if there is a registration for the address. If
// there is more than one registration, the email contains no link, because somebody else may have
// made the newest registration. The address is not looked up until the email is rendered, so that
// the response takes the same time for all addresses.
func (s *Registrations) ResendActivation(ctx context.Context, email string) error {
	return s.notices.AddByAddress(ctx, "tenancy.ResendActivation", notice.Resend, email)
}
