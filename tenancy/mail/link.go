package mail

import (
	"context"

	"crier/platform/id"
	"crier/platform/mail"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/credential"
	"crier/tenancy/db"
	mailstore "crier/tenancy/mail/store"
	"crier/tenancy/notice"
)

// renderRegistration creates an activation link and returns the activation email. The email
// contains no link if its address already has an account. A Resend email also contains no link if
// there are several registrations for the address.
func (s *Mails) renderRegistration(
	ctx context.Context, m mailstore.Mail, n notice.Notice,
) (out mail.Message, err error) {
	const op = "tenancy.renderRegistration"
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		c, several, err := s.registration(ctx, tx, m, n)
		if err != nil {
			return err
		}
		_, err = db.PersonByEmail(ctx, tx, m.Email)
		if err == nil {
			out = s.mails.AlreadyRegistered(m.Email, s.mails.Frontend+"/auth/login", s.mails.Frontend+"/auth/forgot")
			return nil
		}
		if !pg.IsNoRows(err) {
			return err
		}
		if several {
			out = s.mails.RegisterAgain(m.Email, s.mails.Frontend+"/auth")
			return nil
		}
		code, err := s.confirmationLink(ctx, tx, op, c, credential.SideNew)
		out = s.mails.Activation(m.Email, s.mails.Link("/auth/activate", "code", code))
		return err
	})
	return out, notice.Obsolete(err)
}

// registration returns the registration that a queued email is about. For a Resend email, it
// returns the newest registration for the address, and several is true if there are others.
func (s *Mails) registration(ctx context.Context, tx *db.GateTx, m mailstore.Mail, n notice.Notice) (
	c credential.Confirmation, several bool, err error) {
	if notice.Kind(m.Kind) != notice.Resend {
		c, err = credential.ReadConfirmation(ctx, tx, n.Confirmation, s.clock.Now())
		return c, false, err
	}
	found, err := credential.Registrations(ctx, tx, m.Email, s.clock.Now())
	if err != nil {
		return c, false, err
	}
	if len(found) == 0 {
		return c, false, notice.ErrObsolete
	}
	return found[0], len(found) > 1, nil
}

// confirmationLink creates a confirmation link and returns its token.
func (s *Mails) confirmationLink(ctx context.Context, tx *db.GateTx, op string,
	c credential.Confirmation, side credential.Side) (string, error) {
	t, hash, err := credential.New(op)
	if err != nil {
		return "", err
	}
	return t, credential.AddConfirmationLink(ctx, tx, c.ID, hash, side)
}

// renderReset creates a password reset link and returns the email that contains it. It returns
// ErrObsolete if no account has the email address.
func (s *Mails) renderReset(ctx context.Context, m mailstore.Mail) (out mail.Message, err error) {
	const op = "tenancy.renderReset"
	now := s.clock.Now()
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		person, err := db.PersonByEmail(ctx, tx, m.Email)
		if err != nil {
			return err
		}
		c := credential.Confirmation{
			ID: id.New[tenancy.ConfirmationTag](), Kind: credential.ConfirmReset, Email: m.Email, Person: person.ID,
			CreatedAt: now, ExpiresAt: now.Add(tenancy.ResetLife),
		}
		if err := credential.CreateConfirmation(ctx, tx, c); err != nil {
			return err
		}
		code, err := s.confirmationLink(ctx, tx, op, c, credential.SideNew)
		out = s.mails.ResetPassword(m.Email, s.mails.Link("/auth/forgot-return", "token", code), tenancy.ResetLife)
		return err
	})
	return out, notice.Obsolete(err)
}

// renderAddress creates a link with which the owner of the old or the new email address confirms an
// address change, and returns the email that contains the link. If an account already uses the new
// address, the email to that address contains no link.
func (s *Mails) renderAddress(ctx context.Context, m mailstore.Mail, n notice.Notice) (out mail.Message, err error) {
	const op = "tenancy.renderAddress"
	side := credential.SideNew
	if notice.Kind(m.Kind) == notice.AddressOld {
		side = credential.SideOld
	}
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		c, err := credential.ReadConfirmation(ctx, tx, n.Confirmation, s.clock.Now())
		if err != nil {
			return err
		}
		_, err = db.PersonByEmail(ctx, tx, c.Email)
		if err == nil && side == credential.SideNew {
			out = s.mails.AlreadyRegistered(m.Email, s.mails.Frontend+"/auth/login", s.mails.Frontend+"/auth/forgot")
			return nil
		}
		if err != nil && !pg.IsNoRows(err) {
			return err
		}
		code, err := s.confirmationLink(ctx, tx, op, c, side)
		out = s.mails.ConfirmNewAddress(m.Email, s.mails.Link("/auth/confirm-email", "token", code))
		if side == credential.SideOld {
			out = s.mails.ConfirmOldAddress(m.Email, c.Email, s.mails.Link("/auth/confirm-email", "token", code))
		}
		return err
	})
	return out, notice.Obsolete(err)
}
