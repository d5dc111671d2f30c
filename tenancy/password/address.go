package password

import (
	"context"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/credential"
	"crier/tenancy/db"
	"crier/tenancy/notice"
	passwordstore "crier/tenancy/password/store"
)

// ChangeAddress emails links to the old and the new email address of the principal's person. The
// address changes once both links have been followed. ChangeAddress does not reveal whether the new
// address is already in use. If it is in use, the email to it contains no link, so the change never
// completes.
//
// On an instance that sends no email, the address changes at once and is not verified.
// ChangeAddress then returns true, or fault.Conflict if the new address is already in use.
func (s *Passwords) ChangeAddress(ctx context.Context, p tenancy.Principal, email string, proof tenancy.Proof) (
	bool, error) {
	const op = "tenancy.ChangeAddress"
	var in tenancy.Inputs
	clean := in.Email("email", email)
	if err := in.Err(op); err != nil {
		return false, err
	}
	if p.Impersonator.IsZero() && clean == p.Name {
		in.Check(false, "email", "is already your address")
		return false, in.Err(op)
	}
	person, err := s.proofs.Prove(ctx, op, p, proof)
	if err != nil {
		return false, err
	}
	if !s.notices.Enabled() {
		err := s.db.InPerson(ctx, op, p, func(tx *db.GateTx, person tenancy.Person) error {
			return s.setAddress(ctx, tx, person, clean, false, p.From)
		})
		return err == nil, db.AccountFault(op, err)
	}
	now := s.clock.Now()
	c := credential.Confirmation{
		ID: id.New[tenancy.ConfirmationTag](), Kind: credential.ConfirmAddress, Email: clean, Person: person.ID,
		CreatedAt: now,
		ExpiresAt: now.Add(tenancy.ConfirmationLife),
	}
	return false, s.db.InPerson(ctx, op, p, func(tx *db.GateTx, person tenancy.Person) error {
		if err := credential.DeleteConfirmations(ctx, tx, person.ID, credential.ConfirmAddress); err != nil {
			return err
		}
		if err := credential.CreateConfirmation(ctx, tx, c); err != nil {
			return err
		}
		if err := s.notices.Add(ctx, tx, notice.AddressOld, person.Email, notice.Notice{Confirmation: c.ID}); err != nil {
			return err
		}
		return s.notices.Add(ctx, tx, notice.AddressNew, clean, notice.Notice{Confirmation: c.ID})
	})
}

// ConfirmAddress records that one of the two links for an address change was followed. If both
// links have now been followed, it changes the address and returns true. It returns NotFound if the
// link is no longer valid, and Conflict if another account has taken the new address in the
// meantime.
func (s *Passwords) ConfirmAddress(ctx context.Context, token string, from tenancy.Source) (done bool, err error) {
	const op = "tenancy.ConfirmAddress"
	hash, now := credential.HashPasted(token), s.clock.Now()
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		c, err := credential.LockConfirmation(ctx, tx, hash, credential.ConfirmAddress, now)
		if err != nil {
			return err
		}
		sides, err := credential.FollowLink(ctx, tx, hash, c.Confirmation, now)
		if err != nil || sides < 2 {
			return err
		}
		person, err := db.LockPerson(ctx, tx, c.Person)
		if err != nil {
			return err
		}
		done = true
		return s.setAddress(ctx, tx, person, c.Email, true, from)
	})
	if pg.IsNoRows(err) {
		return false, fault.New(fault.NotFound, op, "This link is no longer valid.")
	}
	return done && err == nil, db.AccountFault(op, err)
}

// setAddress changes a person's email address. Links that were sent to the old address stop
// working. If the person has a password, setAddress unlinks the person's provider identities,
// because those identities belong to the old address.
func (s *Passwords) setAddress(ctx context.Context, tx *db.GateTx, person tenancy.Person, email string,
	verified bool, from tenancy.Source) error {
	for _, kind := range []credential.ConfirmationKind{credential.ConfirmAddress, credential.ConfirmReset} {
		if err := credential.DeleteConfirmations(ctx, tx, person.ID, kind); err != nil {
			return err
		}
	}
	if person.PasswordHash != "" {
		if err := db.DeleteIdentities(ctx, tx, person.ID); err != nil {
			return err
		}
	}
	if err := passwordstore.SetEmail(ctx, tx, person.ID, email, verified); err != nil {
		return err
	}
	event := db.PersonEvent(person, from, tenancy.ActionAddressChanged)
	event.Subject = email
	if err := db.AuditPerson(ctx, tx, person.ID, event, s.clock.Now()); err != nil {
		return err
	}
	return s.notices.Notify(ctx, tx, notice.AddressChanged, person.Email, notice.Notice{Name: email})
}
