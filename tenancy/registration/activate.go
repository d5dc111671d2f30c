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

// Activate completes the registration of a link. It returns false if the link is invalid or was
// used, if the address has got an account in the meantime, or if the instance no longer takes the
// registration.
//
// Anybody can register an address and choose its password. So a link that is opened in a different
// browser from the one that registered needs the registration's password too. Without a password,
// the step is StepPassword and the link stays valid. A wrong password is fault.Invalid. This way,
// nobody gets an account with somebody else's password by opening a link.
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

// proveRegistrant returns StepDone if the person who opens a link made its registration, and
// StepPassword if that is not known. It returns fault.Invalid for a wrong password, and
// pgx.ErrNoRows for an invalid link.
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
	// The registrant has the identity of a provider and no password.
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

// ResendActivation mails a new link for the address's registration, if there is one. If there are
// several, it sends no link, because somebody else may have made the newest. The address is looked
// up when the mail is rendered, so that the response takes the same time for all addresses.
func (s *Registrations) ResendActivation(ctx context.Context, email string) error {
	return s.notices.AddByAddress(ctx, "tenancy.ResendActivation", notice.Resend, email)
}
