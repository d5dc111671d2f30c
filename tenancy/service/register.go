package service

import (
	"bytes"
	"context"
	"errors"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/signin"
	tenancystore "crier/tenancy/store"
)

// CanRegister returns whether a person without an invitation can register.
func (a *Accounts) CanRegister(ctx context.Context) (can bool, err error) {
	const op = "tenancy.CanRegister"
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		can, err = a.takesRegistrations(ctx, tx, false)
		return err
	})
	return can, err
}

// takesRegistrations returns whether a person without an invitation can register. With lock no other transaction that
// asks so goes on before the end of this one.
func (a *Accounts) takesRegistrations(ctx context.Context, tx *tenancystore.GateTx, lock bool) (bool, error) {
	if a.cfg.Registration != RegisterFirst {
		return a.cfg.Registration == RegisterOpen, nil
	}
	exists, err := tx.AnyOrganization(ctx, lock)
	return !exists, err
}

// Register begins a registration. On an instance that sends mail it stores what the account will be and sends a link to
// the address; whether the address has an account changes neither the answer nor the work. Without mail the account is
// made at once, unless the address is in use. Register returns fault.Invalid for that, when the instance takes no
// registrations, for an invitation that is not valid or is for another address, for an input that breaks a rule, and for a
// token that is not valid any more. The result has a token for the cookie device of a browser without one: see Activate.
func (a *Accounts) Register(ctx context.Context, r tenancy.Registration) (tenancy.SignIn, error) {
	out, err := a.register(ctx, "tenancy.Register", r)
	if fault.Is(err, fault.Conflict) || fault.Is(err, fault.Forbidden) {
		refused := *asFaultError(err)
		refused.Kind = fault.Invalid // the contract has 400 for all of them
		return out, &refused
	}
	return out, err
}

func (a *Accounts) register(ctx context.Context, op string, r tenancy.Registration) (tenancy.SignIn, error) {
	c, verified, err := a.newRegistration(ctx, op, r)
	if err != nil {
		return tenancy.SignIn{}, err
	}
	if a.deps.Mail == nil || verified {
		return a.createAccount(ctx, op, c, verified, r.From)
	}
	out := tenancy.SignIn{Step: tenancy.StepConfirm}
	c.Device = secret.HashToken(r.From.Device)
	if r.From.Device == "" {
		if out.Device, c.Device, err = token(op); err != nil {
			return out, err
		}
	}
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		if err := tx.CreateConfirmation(ctx, c); err != nil {
			return err
		}
		return a.addMail(ctx, tx, mailRegistration, c.Email, notice{Confirmation: c.ID})
	})
	return out, err
}

// newRegistration returns what a registration will make. verified means that an identity provider has verified the
// address.
func (a *Accounts) newRegistration(ctx context.Context, op string, r tenancy.Registration) (
	c tenancystore.Confirmation, verified bool, err error) {
	now := a.clock.Now()
	c = tenancystore.Confirmation{
		ID: id.New[tenancy.ConfirmationTag](), Kind: tenancystore.ConfirmRegistration, CreatedAt: now,
		ExpiresAt: now.Add(tenancy.ConfirmationLife),
	}
	if r.Invitation != "" {
		c.Invitation = pastedHash(r.Invitation)
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
		if err := checkPassword(op, "password", r.Password); err != nil {
			return c, false, err
		}
	}
	verified, err = a.admit(ctx, op, r, &c)
	if err != nil || r.Provider != "" {
		return c, verified, err
	}
	c.PasswordHash, err = a.hashPassword(ctx, r.From.Site, r.Password)
	return c, false, err
}

// admit refuses a registration that the instance does not take, and adds the identity of a provider to it.
func (a *Accounts) admit(ctx context.Context, op string, r tenancy.Registration, c *tenancystore.Confirmation) (
	verified bool, err error) {
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		if r.Provider == "" {
			return a.checkAdmission(ctx, tx, op, *c, false)
		}
		claim, err := tx.TakeClaim(ctx, secret.HashToken(r.Provider), a.clock.Now())
		if pg.IsNoRows(err) {
			return fault.New(fault.Invalid, op, "The sign-in at the provider is over; begin it again.")
		}
		if err != nil {
			return err
		}
		email, ok := tenancy.CleanEmail(claim.Email)
		if !ok {
			return fault.New(fault.Invalid, op,
				"The provider names no e-mail address of yours; register with an address and a password.")
		}
		if !claim.Verified {
			return unverifiedAddress(op, claim)
		}
		c.Email, c.Provider, c.Issuer, c.Subject = email, claim.Provider, claim.Issuer, claim.Subject
		verified = true
		if c.Name == "" {
			c.Name = claim.Name
		}
		return a.checkAdmission(ctx, tx, op, *c, false)
	})
	return verified, err
}

// unverifiedAddress returns the refusal of an address that the provider named without saying that
// it is verified. Otherwise anybody who can set an address there could register somebody else's.
func unverifiedAddress(op string, claim tenancystore.Claim) error {
	message := "The provider named the address " + claim.Email + " but does not say that it is verified. Verify it " +
		"there and begin the sign-in again, or register with the address and a password."
	if claim.Provider == string(signin.ProviderGeneric) {
		message += " If the provider cannot say so, the operator of this service can trust its addresses: " +
			"OIDC_TRUST_EMAIL=true."
	}
	return fault.New(fault.Invalid, op, message)
}

// checkAdmission returns Forbidden unless the person of a registration can register: with the invitation, if it has one,
// which may be for one address only. The refusal does not name that address, because links are forwarded.
func (a *Accounts) checkAdmission(
	ctx context.Context, tx *tenancystore.GateTx, op string, c tenancystore.Confirmation, lock bool,
) error {
	if c.Invitation != nil {
		open, err := tx.InvitationByHash(ctx, c.Invitation, a.clock.Now())
		if pg.IsNoRows(err) {
			return spentInvitation(op)
		}
		if err == nil && open.Email != "" && open.Email != c.Email {
			return fault.New(fault.Forbidden, op,
				"This invitation is for another address: register with the address to which it was sent.")
		}
		return err
	}
	can, err := a.takesRegistrations(ctx, tx, lock)
	if err == nil && !can {
		return fault.New(fault.Forbidden, op,
			"This instance accepts no registrations without an invitation: ask for one, and send its token as org.")
	}
	return err
}

func spentInvitation(op string) error {
	return fault.New(fault.Forbidden, op, "The invitation is not valid any more; ask for another one.")
}

// createAccount makes a person and what they join or own, and signs them in.
func (a *Accounts) createAccount(ctx context.Context, op string, c tenancystore.Confirmation, verified bool,
	from tenancy.Source) (out tenancy.SignIn, err error) {
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		out, err = a.makeAccount(ctx, tx, op, c, verified, from)
		return err
	})
	return out, accountFault(op, err)
}

// accountFault returns Conflict when an address or an identity is in use.
func accountFault(op string, err error) error {
	if pg.IsUnique(err, "person_email_key") {
		return fault.New(fault.Conflict, op, "This e-mail address is taken.")
	}
	if pg.IsUnique(err, "identity_pkey") {
		return fault.New(fault.Conflict, op, "This account of the provider is taken.")
	}
	return err
}

// makeAccount makes, in a transaction, what createAccount returns. An invitation is used up.
func (a *Accounts) makeAccount(ctx context.Context, tx *tenancystore.GateTx, op string, c tenancystore.Confirmation,
	verified bool, from tenancy.Source) (out tenancy.SignIn, err error) {
	if err := a.checkAdmission(ctx, tx, op, c, true); err != nil {
		return out, err
	}
	person := tenancy.Person{
		ID: id.New[tenancy.PersonTag](), Email: c.Email, Name: c.Name, PasswordHash: c.PasswordHash,
		Verified: verified, CreatedAt: a.clock.Now(),
	}
	if err := tx.CreatePerson(ctx, person); err != nil {
		return out, err
	}
	if c.Provider != "" {
		key := tenancystore.IdentityKey{Provider: c.Provider, Issuer: c.Issuer, Subject: c.Subject}
		if err := tx.AddIdentity(ctx, key, person.ID, person.CreatedAt); err != nil {
			return out, err
		}
	}
	var org tenancy.OrgID
	if c.Invitation != nil {
		org, err = a.useInvitation(ctx, tx, op, person, c.Invitation, from)
	} else {
		by := tenancy.Principal{Person: person.ID, Via: tenancy.ViaSession, Name: person.Email, From: from}
		creator := person.ID
		if a.cfg.Registration == RegisterFirst { // the person who sets up the instance
			creator = tenancy.PersonID{}
		}
		if err := a.checkCreations(ctx, tx, op, person.ID); err != nil {
			return out, refusedCreation(op, err)
		}
		org, err = a.makeOrganization(ctx, tx, by, creator, c.Organization)
	}
	if pg.IsNoRows(err) { // somebody else has used it since checkAdmission
		return out, spentInvitation(op)
	}
	if err != nil {
		return out, err
	}
	out, err = a.nextStep(ctx, tx, op, person, from)
	out.Onboarding, out.Org = true, org
	return out, err
}

// refusedCreation returns a Conflict of checkCreations as Forbidden, because Activate takes a
// Conflict to mean that the link was used.
func refusedCreation(op string, err error) error {
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != fault.Conflict {
		return err
	}
	return fault.Wrap(fault.Forbidden, op, f.Message, err)
}

// makeOrganization creates an organization that the principal's person owns. It counts toward the
// creator's limits; the creator is zero if the operator creates it.
func (a *Accounts) makeOrganization(
	ctx context.Context, tx *tenancystore.GateTx, by tenancy.Principal, creator tenancy.PersonID, name string,
) (tenancy.OrgID, error) {
	o := tenancy.Organization{
		ID: id.New[tenancy.OrgTag](), Name: name, Timezone: "UTC", CreatedAt: a.clock.Now(), Creator: creator,
	}
	org, err := tx.Enter(ctx, o.ID)
	if err != nil {
		return o.ID, err
	}
	if err := org.CreateOrganization(ctx, o, by.Person); err != nil {
		return o.ID, err
	}
	if err := org.Audit(ctx, by.Event(tenancy.ActionOrganizationCreated, o.Name), o.CreatedAt); err != nil {
		return o.ID, err
	}
	_, err = org.Leave(ctx)
	return o.ID, err
}

// Activate completes the registration of a link. It returns false for a link that is not valid or was used, when the
// address has got an account meanwhile, and when the instance does not take the registration any more.
//
// Anybody can register an address and choose its password. So a link that is opened in another browser than that which
// registered needs the password of the registration too: without one the step is StepPassword and the link stays valid,
// and a wrong one is fault.Invalid. Nobody gets an account with the password of somebody else by opening a link.
func (a *Accounts) Activate(ctx context.Context, code, password string, from tenancy.Source) (
	out tenancy.SignIn, ok bool, err error) {
	const op = "tenancy.Activate"
	hash := pastedHash(code)
	step, err := a.proveRegistrant(ctx, op, hash, password, from)
	if pg.IsNoRows(err) {
		return tenancy.SignIn{}, false, nil
	}
	if err != nil || step != tenancy.StepDone {
		return tenancy.SignIn{Step: step}, false, err
	}
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		c, err := tx.LockConfirmation(ctx, hash, tenancystore.ConfirmRegistration, a.clock.Now())
		if err != nil {
			return err
		}
		if err := tx.DeleteConfirmation(ctx, c.ID); err != nil {
			return err
		}
		out, err = a.makeAccount(ctx, tx, op, c.Confirmation, true, from)
		return err
	})
	err = accountFault(op, err)
	if pg.IsNoRows(err) || fault.Is(err, fault.Conflict) || fault.Is(err, fault.Forbidden) {
		return tenancy.SignIn{}, false, nil
	}
	return out, err == nil, err
}

// proveRegistrant returns StepDone if who opens a link has made its registration, and StepPassword if that is not known.
// A wrong password is fault.Invalid, and a link that is not valid pgx.ErrNoRows.
func (a *Accounts) proveRegistrant(ctx context.Context, op string, hash []byte, password string, from tenancy.Source) (
	tenancy.Step, error) {
	var c tenancystore.Confirmation
	err := a.inGate(ctx, op, func(tx *tenancystore.GateTx) (err error) {
		c, err = tx.ConfirmationByHash(ctx, hash, tenancystore.ConfirmRegistration, a.clock.Now())
		return err
	})
	if err != nil {
		return "", err
	}
	if from.Device != "" && bytes.Equal(c.Device, secret.HashToken(from.Device)) {
		return tenancy.StepDone, nil
	}
	if c.PasswordHash == "" { // the identity of a provider is what the registrant has
		return "", fault.New(fault.Invalid, op, "Open this link in the browser in which you registered.")
	}
	if password == "" {
		return tenancy.StepPassword, nil
	}
	ok, err := a.matches(ctx, from.Site, password, c.PasswordHash)
	if err == nil && !ok {
		return "", &fault.Error{Kind: fault.Invalid, Op: op, Message: "This is not the password of the registration.",
			Fields: []fault.Field{{Name: "password", Message: "is not that of the registration; if you have not " +
				"registered, somebody else has: register yourself"}}}
	}
	return tenancy.StepDone, err
}

// ResendActivation sends the link of the address's registration again, if there is one. If there are several it sends no
// link, because the newest may be that of somebody else. The address is looked up when the mail is rendered, so that the
// answer takes the same time for all addresses.
func (a *Accounts) ResendActivation(ctx context.Context, email string) error {
	return a.queueByAddress(ctx, "tenancy.ResendActivation", mailResend, email)
}

// queueByAddress queues a mail that is about an address. Without mail it only logs.
func (a *Accounts) queueByAddress(ctx context.Context, op string, kind mailKind, email string) error {
	var in tenancy.Inputs
	clean := in.Email("email", email)
	if err := in.Err(op); err != nil {
		return err
	}
	if a.deps.Mail == nil {
		a.log.WarnContext(ctx, "a mail was asked for, and this instance sends none: see SMTP_URL; "+
			"`crier admin reset-password` sets a new password", "kind", kind)
		return nil
	}
	return a.inGate(ctx, op, func(tx *tenancystore.GateTx) error { return a.addMail(ctx, tx, kind, clean, notice{}) })
}
