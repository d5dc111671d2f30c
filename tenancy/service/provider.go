package service

import (
	"cmp"
	"context"
	"crypto/subtle"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/signin"
	tenancystore "crier/tenancy/store"
)

// sealedFor binds the sealed PKCE verifiers to their use.
const sealedFor = "sign-in state"

// BeginSignIn returns the address at the provider, and the state to be kept in a cookie of the browser. Without a redirect
// URI the provider returns to the dashboard. With a session
// the identity will be linked to its person; the zero Principal signs in. A provider that the instance does not have is
// fault.NotFound.
func (a *Accounts) BeginSignIn(ctx context.Context, provider, redirectURI string, p tenancy.Principal) (
	url, state string, err error) {
	const op = "tenancy.BeginSignIn"
	if err := refuseBehind(op, p); err != nil {
		return "", "", err
	}
	name := signin.Provider(provider)
	if a.deps.Providers == nil || !a.deps.Providers.Has(name) {
		return "", "", fault.New(fault.NotFound, op, "This instance has no such provider.")
	}
	if redirectURI == "" {
		redirectURI = a.cfg.FrontendURL + "/auth/oauth/callback"
	}
	start, err := a.deps.Providers.Begin(ctx, name, redirectURI)
	if err != nil {
		return "", "", err
	}
	sealed, err := a.deps.Keyring.Seal([]byte(start.Verifier), sealedFor)
	if err != nil {
		return "", "", err
	}
	return start.URL, start.State, a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		return tx.CreateState(ctx, secret.HashToken(start.State), tenancystore.SignInState{
			Provider: provider, Verifier: sealed, Nonce: start.Nonce, RedirectURI: redirectURI, Person: p.Person,
			ExpiresAt: a.clock.Now().Add(tenancy.SignInStateLife),
		})
	})
}

// FinishSignIn completes the sign-in of a state, which is used up. A state that is not the browser's, is over, was used
// or is another provider's, and a refusal of the provider are fault.Invalid. A person without an account gets a claim to
// register with. An identity is linked to an account only when its person has a live session and both have the same
// verified address; an address of an account that has no such identity is fault.Conflict.
func (a *Accounts) FinishSignIn(ctx context.Context, provider string, cb tenancy.Callback, p tenancy.Principal) (
	out tenancy.ProviderSignIn, err error) {
	const op = "tenancy.FinishSignIn"
	if err := refuseBehind(op, p); err != nil {
		return out, err
	}
	if a.deps.Providers == nil || !a.deps.Providers.Has(signin.Provider(provider)) {
		return out, fault.New(fault.NotFound, op, "This instance has no such provider.")
	}
	state, err := a.takeState(ctx, op, provider, cb, p)
	if err != nil {
		return out, err
	}
	verifier, err := a.deps.Keyring.Open(state.Verifier, sealedFor)
	if err != nil {
		return out, err
	}
	identity, err := a.deps.Providers.Finish(ctx, signin.Provider(provider), signin.Callback{
		Code: cb.Code, Issuer: cb.Issuer, RedirectURI: state.RedirectURI, Verifier: string(verifier), Nonce: state.Nonce,
	})
	if err != nil {
		return out, err
	}
	use := func(tx *tenancystore.GateTx) error {
		out, err = a.useIdentity(ctx, tx, op, identity, state.Person, cb.From)
		return err
	}
	if state.Person.IsZero() {
		return out, accountFault(op, a.inGate(ctx, op, use))
	}
	err = a.inPerson(ctx, op, p, func(tx *tenancystore.GateTx, _ tenancy.Person) error { return use(tx) })
	return out, accountFault(op, err)
}

// takeState uses up the state of a callback and checks that it is the browser's.
func (a *Accounts) takeState(ctx context.Context, op, provider string, cb tenancy.Callback, p tenancy.Principal) (
	state tenancystore.SignInState, err error) {
	refused := fault.New(fault.Invalid, op, "This sign-in was not begun in this browser, or is over; begin it again.")
	if cb.State == "" || subtle.ConstantTimeCompare([]byte(cb.State), []byte(cb.Cookie)) != 1 {
		return state, refused
	}
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		state, err = tx.TakeState(ctx, secret.HashToken(cb.State))
		return err
	})
	if pg.IsNoRows(err) {
		return state, refused
	}
	if err != nil {
		return state, err
	}
	over := !a.clock.Now().Before(state.ExpiresAt)
	otherURI := cb.RedirectURI != "" && cb.RedirectURI != state.RedirectURI
	otherPerson := !state.Person.IsZero() && state.Person != p.Person
	if over || otherURI || otherPerson || state.Provider != provider {
		return state, refused
	}
	return state, nil
}

// useIdentity signs in the person of an identity, links it to the person, who may be zero, or returns a claim.
func (a *Accounts) useIdentity(ctx context.Context, tx *tenancystore.GateTx, op string, identity signin.Identity,
	link tenancy.PersonID, from tenancy.Source) (out tenancy.ProviderSignIn, err error) {
	key := tenancystore.IdentityKey{
		Provider: string(identity.Provider), Issuer: identity.Issuer, Subject: identity.Subject,
	}
	owner, err := tx.PersonOfIdentity(ctx, key)
	switch {
	case err != nil && !pg.IsNoRows(err):
		return out, err
	case err == nil && !link.IsZero():
		out.Linked = owner == link
		if !out.Linked {
			err = fault.New(fault.Conflict, op, "This account of the provider belongs to another person.")
		}
		return out, err
	case err == nil:
		person, err := tx.LockPerson(ctx, owner)
		if err != nil {
			return out, err
		}
		if a.isGone(person) {
			return out, fault.New(fault.Invalid, op, "This account was deleted.")
		}
		out.SignIn, err = a.nextStep(ctx, tx, op, person, from)
		return out, err
	case !link.IsZero():
		out.Linked = true
		return out, a.linkIdentity(ctx, tx, op, identity, key, link, from)
	}
	return a.claimIdentity(ctx, tx, op, identity, key)
}

// linkIdentity adds an identity to the person of a live session who has the same verified address.
func (a *Accounts) linkIdentity(ctx context.Context, tx *tenancystore.GateTx, op string, identity signin.Identity,
	key tenancystore.IdentityKey, link tenancy.PersonID, from tenancy.Source) error {
	person, err := tx.LockPerson(ctx, link)
	if err != nil {
		return err
	}
	if identity.Unverified != "" && identity.Unverified == person.Email {
		return fault.New(fault.Forbidden, op, "The provider named your address but does not say that it is verified: "+
			"verify it there, and link the provider again.")
	}
	if !identity.EmailVerified || !person.Verified || identity.Email != person.Email {
		return fault.New(fault.Forbidden, op, "The account of the provider must have the same address as your account, "+
			"verified in both.")
	}
	now := a.clock.Now()
	if err := tx.AddIdentity(ctx, key, person.ID, now); err != nil {
		return err
	}
	event := personEvent(person, from, tenancy.ActionIdentityLinked)
	event.Subject = key.Provider
	if err := tx.AuditPerson(ctx, person.ID, event, now); err != nil {
		return err
	}
	return a.notify(ctx, tx, mailIdentityLinked, person.Email, notice{Name: key.Provider, Address: from.Client})
}

// claimIdentity returns a token with which a person without an account registers.
func (a *Accounts) claimIdentity(ctx context.Context, tx *tenancystore.GateTx, op string, identity signin.Identity,
	key tenancystore.IdentityKey) (out tenancy.ProviderSignIn, err error) {
	if identity.EmailVerified {
		_, err := tx.PersonByEmail(ctx, identity.Email)
		if err == nil {
			return out, fault.New(fault.Conflict, op, "There is an account with your address: "+
				"sign in with its password, and link the provider then.")
		}
		if !pg.IsNoRows(err) {
			return out, err
		}
	}
	claim, hash, err := token(op)
	if err != nil {
		return out, err
	}
	out.Claim = claim
	return out, tx.CreateClaim(ctx, hash, tenancystore.Claim{
		IdentityKey: key, Email: cmp.Or(identity.Email, identity.Unverified), Name: identity.Name,
		Verified:  identity.EmailVerified,
		ExpiresAt: a.clock.Now().Add(tenancy.SignInStateLife),
	})
}
