package service

import (
	"context"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
)

// Forgot sends a link for a new password, if there is a person with the address. The address is looked up when the mail
// is rendered, so that the answer takes the same time for all addresses.
func (a *Accounts) Forgot(ctx context.Context, email string) error {
	return a.queueByAddress(ctx, "tenancy.Forgot", mailReset, email)
}

// ResetPassword sets the password of the link's person and ends all sessions of the person. The identities of providers
// are unlinked: who has taken an account over could have linked one. A second factor remains. It returns false for a link
// that is not valid or was used.
func (a *Accounts) ResetPassword(ctx context.Context, token, password string, from tenancy.Source) (bool, error) {
	const op = "tenancy.ResetPassword"
	if err := checkPassword(op, "password", password); err != nil {
		return false, err
	}
	now, link := a.clock.Now(), pastedHash(token)
	err := a.inGate(ctx, op, func(tx *tenancystore.GateTx) error { // nothing is hashed for a link that is not valid
		_, err := tx.ConfirmationByHash(ctx, link, tenancystore.ConfirmReset, now)
		return err
	})
	if pg.IsNoRows(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	hash, err := a.hashPassword(ctx, from.Site, password)
	if err != nil {
		return false, err
	}
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		c, err := tx.LockConfirmation(ctx, link, tenancystore.ConfirmReset, now)
		if err != nil {
			return err
		}
		person, err := tx.LockPerson(ctx, c.Person)
		if err != nil {
			return err
		}
		if err := tx.SetPassword(ctx, person.ID, hash); err != nil {
			return err
		}
		if person.Email == c.Email {
			if err := tx.SetVerified(ctx, person.ID); err != nil {
				return err
			}
		}
		if _, err := tx.EndSessions(ctx, person.ID, tenancy.SessionID{}, from.Device); err != nil { // and the link
			return err
		}
		if err := tx.DeleteIdentities(ctx, person.ID); err != nil {
			return err
		}
		event := personEvent(person, from, tenancy.ActionPasswordReset)
		if err := tx.AuditPerson(ctx, person.ID, event, now); err != nil {
			return err
		}
		return a.notify(ctx, tx, mailPasswordChanged, person.Email, notice{Address: from.Client})
	})
	if pg.IsNoRows(err) {
		return false, nil
	}
	return err == nil, err
}

// ChangeAddress sends links to the old and the new address of the principal's person. The address changes when both were
// followed. Without mail it changes at once, is not verified, and one that is in use is fault.Conflict. With mail an
// address in use gives the same answer: its owner gets a mail, and the change never completes.
func (a *Accounts) ChangeAddress(ctx context.Context, p tenancy.Principal, email string, proof tenancy.Proof) (
	bool, error) {
	const op = "tenancy.ChangeAddress"
	var in tenancy.Inputs
	clean := in.Email("email", email)
	if err := in.Err(op); err != nil {
		return false, err
	}
	if p.Behind.IsZero() && clean == p.Name {
		in.Check(false, "email", "is your address already")
		return false, in.Err(op)
	}
	person, err := a.prove(ctx, op, p, proof)
	if err != nil {
		return false, err
	}
	if a.deps.Mail == nil {
		err := a.inPerson(ctx, op, p, func(tx *tenancystore.GateTx, person tenancy.Person) error {
			return a.setAddress(ctx, tx, person, clean, false, p.From)
		})
		return err == nil, accountFault(op, err)
	}
	now := a.clock.Now()
	c := tenancystore.Confirmation{
		ID: id.New[tenancy.ConfirmationTag](), Kind: tenancystore.ConfirmAddress, Email: clean, Person: person.ID, CreatedAt: now,
		ExpiresAt: now.Add(tenancy.ConfirmationLife),
	}
	return false, a.inPerson(ctx, op, p, func(tx *tenancystore.GateTx, person tenancy.Person) error {
		if err := tx.DeleteConfirmations(ctx, person.ID, tenancystore.ConfirmAddress); err != nil {
			return err
		}
		if err := tx.CreateConfirmation(ctx, c); err != nil {
			return err
		}
		if err := a.addMail(ctx, tx, mailAddressOld, person.Email, notice{Confirmation: c.ID}); err != nil {
			return err
		}
		return a.addMail(ctx, tx, mailAddressNew, clean, notice{Confirmation: c.ID})
	})
}

// ConfirmAddress follows one of the two links of a change of address. It returns true when the address has changed,
// NotFound for a link that is not valid any more, and Conflict when another account has got the address meanwhile.
func (a *Accounts) ConfirmAddress(ctx context.Context, token string, from tenancy.Source) (done bool, err error) {
	const op = "tenancy.ConfirmAddress"
	hash, now := pastedHash(token), a.clock.Now()
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		c, err := tx.LockConfirmation(ctx, hash, tenancystore.ConfirmAddress, now)
		if err != nil {
			return err
		}
		sides, err := tx.FollowLink(ctx, hash, c.Confirmation, now)
		if err != nil || sides < 2 {
			return err
		}
		person, err := tx.LockPerson(ctx, c.Person)
		if err != nil {
			return err
		}
		done = true
		return a.setAddress(ctx, tx, person, c.Email, true, from)
	})
	if pg.IsNoRows(err) {
		return false, fault.New(fault.NotFound, op, "This link is not valid any more.")
	}
	return done && err == nil, accountFault(op, err)
}

// setAddress changes the address of a person. Links that were sent to the old one end. Identities of providers, which had
// the old address, are unlinked if the person has a password.
func (a *Accounts) setAddress(ctx context.Context, tx *tenancystore.GateTx, person tenancy.Person, email string,
	verified bool, from tenancy.Source) error {
	for _, kind := range []tenancystore.ConfirmationKind{tenancystore.ConfirmAddress, tenancystore.ConfirmReset} {
		if err := tx.DeleteConfirmations(ctx, person.ID, kind); err != nil {
			return err
		}
	}
	if person.PasswordHash != "" {
		if err := tx.DeleteIdentities(ctx, person.ID); err != nil {
			return err
		}
	}
	if err := tx.SetEmail(ctx, person.ID, email, verified); err != nil {
		return err
	}
	event := personEvent(person, from, tenancy.ActionAddressChanged)
	event.Subject = email
	if err := tx.AuditPerson(ctx, person.ID, event, a.clock.Now()); err != nil {
		return err
	}
	return a.notify(ctx, tx, mailAddressChanged, person.Email, notice{Name: email})
}
