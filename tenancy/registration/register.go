package registration

import (
	"context"
	"errors"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/credential"
	"crier/tenancy/db"
	"crier/tenancy/notice"
	"crier/tenancy/passwords"
	registrationstore "crier/tenancy/registration/store"
	"crier/tenancy/signin"
)

// CanRegister reports whether a person without an invitation can register.
func (s *Registrations) CanRegister(ctx context.Context) (can bool, err error) {
	const op = "tenancy.CanRegister"
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		can, err = s.takesRegistrations(ctx, tx, false)
		return err
	})
	return can, err
}

// takesRegistrations reports whether a person without an invitation can register. If lock is set,
// concurrent calls with lock set wait until this transaction ends.
func (s *Registrations) takesRegistrations(ctx context.Context, tx *db.GateTx, lock bool) (bool, error) {
	if s.cfg.Registration != RegisterFirst {
		return s.cfg.Registration == RegisterOpen, nil
	}
	exists, err := registrationstore.AnyOrganization(ctx, tx, lock)
	return !exists, err
}

// Register begins a registration. On an instance that sends email, it stores the registration and
// emails an activation link to the address. Neither the response nor the amount of work reveals
// whether the address already has an account. On an instance that sends no email, or if an identity
// provider has verified the address, Register creates the account at once.
//
// Register returns fault.Invalid in these cases:
//
//   - The account would be created at once, but the address is in use.
//   - The instance does not accept registrations.
//   - The invitation is invalid or is for another address.
//   - The input is invalid.
//   - The sign-in with the identity provider has expired.
//   - The identity provider returned no verified email address.
//
// If the browser has no device cookie, the result contains a token for one; see Activate.
func (s *Registrations) Register(ctx context.Context, r tenancy.Registration) (tenancy.SignIn, error) {
	out, err := s.register(ctx, "tenancy.Register", r)
	if fault.Is(err, fault.Conflict) || fault.Is(err, fault.Forbidden) {
		refused := *db.AsFault(err)
		refused.Kind = fault.Invalid // the API documents 400 for all of them
		return out, &refused
	}
	return out, err
}

func (s *Registrations) register(ctx context.Context, op string, r tenancy.Registration) (tenancy.SignIn, error) {
	c, verified, err := s.newRegistration(ctx, op, r)
	if err != nil {
		return tenancy.SignIn{}, err
	}
	if !s.notices.Enabled() || verified {
		return s.createAccount(ctx, op, c, verified, r.From)
	}
	out := tenancy.SignIn{Step: tenancy.StepConfirm}
	c.Device = secret.HashToken(r.From.Device)
	if r.From.Device == "" {
		if out.Device, c.Device, err = credential.New(op); err != nil {
			return out, err
		}
	}
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		if err := credential.CreateConfirmation(ctx, tx, c); err != nil {
			return err
		}
		return s.notices.Add(ctx, tx, notice.Registration, c.Email, notice.Notice{Confirmation: c.ID})
	})
	return out, err
}

// newRegistration checks the input of a registration and returns the account to create. verified
// reports whether an identity provider has verified the email address.
func (s *Registrations) newRegistration(ctx context.Context, op string, r tenancy.Registration) (
	c credential.Confirmation, verified bool, err error) {
	now := s.clock.Now()
	c = credential.Confirmation{
		ID: id.New[tenancy.ConfirmationTag](), Kind: credential.ConfirmRegistration, CreatedAt: now,
		ExpiresAt: now.Add(tenancy.ConfirmationLife),
	}
	if r.Invitation != "" {
		c.Invitation = credential.HashPasted(r.Invitation)
	}
	var in tenancy.Inputs
	if r.Invitation == "" {
		c.Organization = in.Name("company", r.Organization, 3, 128)
	}
	c.Name = in.Name("name", r.Name, 0, 128)
	if r.Provider == "" {
		c.Email = in.Email("email", r.Email)
	}
	if err := in.Err(op); err != nil {
		return c, false, err
	}
	if r.Provider == "" {
		if err := passwords.Check(op, "password", r.Password); err != nil {
			return c, false, err
		}
	}
	verified, err = s.admit(ctx, op, r, &c)
	if err != nil || r.Provider != "" {
		return c, verified, err
	}
	c.PasswordHash, err = s.proofs.Hash(ctx, r.From.Site, r.Password)
	return c, false, err
}

// admit returns an error if the instance does not accept the registration. If the person registers
// with an identity provider, admit adds the identity to c. verified reports whether the provider
// has verified the email address.
func (s *Registrations) admit(ctx context.Context, op string, r tenancy.Registration, c *credential.Confirmation) (
	verified bool, err error) {
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		if r.Provider == "" {
			return s.checkAdmission(ctx, tx, op, *c, false)
		}
		claim, err := credential.TakeClaim(ctx, tx, secret.HashToken(r.Provider), s.clock.Now())
		if pg.IsNoRows(err) {
			return fault.New(fault.Invalid, op, "The sign-in with the provider has expired; start again.")
		}
		if err != nil {
			return err
		}
		email, ok := tenancy.CleanEmail(claim.Email)
		if !ok {
			return fault.New(fault.Invalid, op,
				"The provider returned no valid email address; register with an address and a password.")
		}
		if !claim.Verified {
			return unverifiedAddress(op, claim)
		}
		c.Email, c.Provider, c.Issuer, c.Subject = email, claim.Provider, claim.Issuer, claim.Subject
		verified = true
		if c.Name == "" {
			c.Name = claim.Name
		}
		return s.checkAdmission(ctx, tx, op, *c, false)
	})
	return verified, err
}

// checkAdmission returns Forbidden unless the person can register. If there is an invitation, only
// the invitation counts: it must be valid, and it may be limited to one email address. The error
// does not contain that address, because people forward links.
func (s *Registrations) checkAdmission(
	ctx context.Context, tx *db.GateTx, op string, c credential.Confirmation, lock bool,
) error {
	if c.Invitation != nil {
		address, err := s.invitations.InvitedAddress(ctx, tx, c.Invitation)
		if pg.IsNoRows(err) {
			return spentInvitation(op)
		}
		if err == nil && address != "" && address != c.Email {
			return fault.New(fault.Forbidden, op,
				"This invitation is for another address: register with the address that it was sent to.")
		}
		return err
	}
	can, err := s.takesRegistrations(ctx, tx, lock)
	if err == nil && !can {
		return fault.New(fault.Forbidden, op,
			"This instance accepts registrations only with an invitation: ask for one, and send its token as org.")
	}
	return err
}

// createAccount creates a person, adds them to an organization or creates one for them, and signs
// them in.
func (s *Registrations) createAccount(ctx context.Context, op string, c credential.Confirmation, verified bool,
	from tenancy.Source) (out tenancy.SignIn, err error) {
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		out, err = s.makeAccount(ctx, tx, op, c, verified, from)
		return err
	})
	return out, db.AccountFault(op, err)
}

// makeAccount does the work of createAccount in the given transaction. If there is an invitation,
// makeAccount accepts it for the person.
func (s *Registrations) makeAccount(ctx context.Context, tx *db.GateTx, op string, c credential.Confirmation,
	verified bool, from tenancy.Source) (out tenancy.SignIn, err error) {
	if err := s.checkAdmission(ctx, tx, op, c, true); err != nil {
		return out, err
	}
	person := tenancy.Person{
		ID: id.New[tenancy.PersonTag](), Email: c.Email, Name: c.Name, PasswordHash: c.PasswordHash,
		Verified: verified, CreatedAt: s.clock.Now(),
	}
	if err := db.CreatePerson(ctx, tx, person); err != nil {
		return out, err
	}
	if c.Provider != "" {
		key := db.IdentityKey{Provider: c.Provider, Issuer: c.Issuer, Subject: c.Subject}
		if err := db.AddIdentity(ctx, tx, key, person.ID, person.CreatedAt); err != nil {
			return out, err
		}
	}
	var org tenancy.OrgID
	if c.Invitation != nil {
		org, err = s.invitations.UseInvitation(ctx, tx, op, person, c.Invitation, from)
	} else {
		by := tenancy.Principal{Person: person.ID, Via: tenancy.ViaSession, Name: person.Email, From: from}
		creator := person.ID
		if s.cfg.Registration == RegisterFirst { // this person sets up the instance
			creator = tenancy.PersonID{}
		}
		if err := s.organizations.CheckCreations(ctx, tx, op, person.ID); err != nil {
			return out, refusedCreation(op, err)
		}
		org, err = s.organizations.MakeOrganization(ctx, tx, by, creator, c.Organization)
	}
	if pg.IsNoRows(err) { // somebody else has used the invitation since checkAdmission
		return out, spentInvitation(op)
	}
	if err != nil {
		return out, err
	}
	out, err = s.entry.NextStep(ctx, tx, op, person, from)
	out.Onboarding, out.Org = true, org
	return out, err
}

// unverifiedAddress returns the error for an email address that the provider returned without
// saying that it is verified. If such addresses were accepted, anybody who can set an address at
// the provider could register with somebody else's address.
func unverifiedAddress(op string, claim credential.Claim) error {
	message := "The provider returned the address " + claim.Email + " but does not say that it is verified. Verify it " +
		"there and start the sign-in again, or register with the address and a password."
	if claim.Provider == string(signin.ProviderGeneric) {
		message += " If the provider cannot say so, the operator of this service can trust its addresses: " +
			"OIDC_TRUST_EMAIL=true."
	}
	return fault.New(fault.Invalid, op, message)
}

func spentInvitation(op string) error {
	return fault.New(fault.Forbidden, op, "The invitation is no longer valid; ask for another one.")
}

// refusedCreation converts a Conflict from CheckCreations to Forbidden, because a Conflict at
// registration means that the email address or the identity is already in use.
func refusedCreation(op string, err error) error {
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != fault.Conflict {
		return err
	}
	return fault.Wrap(fault.Forbidden, op, f.Message, err)
}
