package password

import (
	"context"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/credential"
	"crier/tenancy/db"
	"crier/tenancy/entry"
	"crier/tenancy/notice"
	passwordstore "crier/tenancy/password/store"
	"crier/tenancy/passwords"
)

// Forgot emails a password reset link if the address belongs to a person. The address is not looked
// up until the email is rendered, so that the response takes the same time for all addresses.
func (s *Passwords) Forgot(ctx context.Context, email string) error {
	return s.notices.AddByAddress(ctx, "tenancy.Forgot", notice.Reset, email)
}

// ResetPassword sets a new password for the person to whom the link was sent, and ends all of the
// person's sessions. It also unlinks the person's provider identities, because somebody who took
// over the account could have linked one of them. It does not remove a second factor. ResetPassword
// returns false if the link is invalid or was already used.
func (s *Passwords) ResetPassword(ctx context.Context, token, password string, from tenancy.Source) (bool, error) {
	const op = "tenancy.ResetPassword"
	if err := passwords.Check(op, "password", password); err != nil {
		return false, err
	}
	now, link := s.clock.Now(), credential.HashPasted(token)
	// Check the link first, so that no password is hashed for an invalid link.
	err := s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		_, err := credential.ConfirmationByHash(ctx, tx, link, credential.ConfirmReset, now)
		return err
	})
	if pg.IsNoRows(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	hash, err := s.proofs.Hash(ctx, from.Site, password)
	if err != nil {
		return false, err
	}
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		c, err := credential.LockConfirmation(ctx, tx, link, credential.ConfirmReset, now)
		if err != nil {
			return err
		}
		person, err := db.LockPerson(ctx, tx, c.Person)
		if err != nil {
			return err
		}
		if err := passwordstore.SetPassword(ctx, tx, person.ID, hash); err != nil {
			return err
		}
		if person.Email == c.Email {
			if err := passwordstore.SetVerified(ctx, tx, person.ID); err != nil {
				return err
			}
		}
		// This also ends the link.
		if _, err := entry.EndSessions(ctx, tx, person.ID, tenancy.SessionID{}, from.Device); err != nil {
			return err
		}
		if err := db.DeleteIdentities(ctx, tx, person.ID); err != nil {
			return err
		}
		event := db.PersonEvent(person, from, tenancy.ActionPasswordReset)
		if err := db.AuditPerson(ctx, tx, person.ID, event, now); err != nil {
			return err
		}
		return s.notices.Notify(ctx, tx, notice.PasswordChanged, person.Email, notice.Notice{Address: from.Client})
	})
	if pg.IsNoRows(err) {
		return false, nil
	}
	return err == nil, err
}

// SetPasswordOf sets a random password for the person with the given address and returns the
// password. It ends all of the person's sessions and unlinks the person's provider identities. Only
// the operator may call it. It returns fault.NotFound if no account has the address.
func (s *Passwords) SetPasswordOf(ctx context.Context, email string) (string, error) {
	const op = "tenancy.SetPasswordOf"
	password, err := secret.Token("", 20)
	if err != nil {
		return "", fault.Wrap(fault.Internal, op, "", err)
	}
	hash, err := s.proofs.Hash(ctx, "", password)
	if err != nil {
		return "", err
	}
	return password, s.db.OfPerson(ctx, op, email, func(tx *db.GateTx, person tenancy.Person) error {
		if err := passwordstore.SetPassword(ctx, tx, person.ID, hash); err != nil {
			return err
		}
		if _, err := entry.EndSessions(ctx, tx, person.ID, tenancy.SessionID{}, ""); err != nil {
			return err
		}
		if err := db.DeleteIdentities(ctx, tx, person.ID); err != nil {
			return err
		}
		event := db.InstanceEvent(db.Operator, tenancy.ActionPasswordReset, person.Email)
		if err := db.AuditPerson(ctx, tx, person.ID, event, s.clock.Now()); err != nil {
			return err
		}
		if err := s.notices.Notify(ctx, tx, notice.PasswordChanged, person.Email, notice.Notice{
			Address: db.Operator,
		}); err != nil {
			return err
		}
		return s.db.AddInstanceEvent(ctx, tx, tenancy.ActionPasswordSet, person.Email)
	})
}
