package login

import (
	"cmp"
	"context"
	"crypto/subtle"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/credential"
	"crier/tenancy/db"
	loginstore "crier/tenancy/login/store"
	"crier/tenancy/notice"
	"crier/tenancy/signin"
)

// Providers gives access to the instance's identity providers; see signin.Providers.
type Providers interface {
	Has(p signin.Provider) bool
	Begin(ctx context.Context, p signin.Provider, redirectURI string) (signin.Start, error)
	Finish(ctx context.Context, p signin.Provider, c signin.Callback) (signin.Identity, error)
}

// sealedFor is the purpose that sealed PKCE verifiers are bound to.
const sealedFor = "sign-in state"

// BeginSignIn begins a sign-in at an identity provider. It returns the provider's URL to open in
// the browser, and the state to store in a browser cookie. If redirectURI is empty, the provider
// redirects to the dashboard. BeginSignIn returns fault.NotFound if the provider is not configured.
//
// If p has a session, FinishSignIn will link the identity to the session's person. If p is the zero
// Principal, FinishSignIn will sign the person in.
func (s *Logins) BeginSignIn(ctx context.Context, provider, redirectURI string, p tenancy.Principal) (
	url, state string, err error) {
	const op = "tenancy.BeginSignIn"
	if err := db.RejectImpersonator(op, p); err != nil {
		return "", "", err
	}
	name := signin.Provider(provider)
	if s.providers == nil || !s.providers.Has(name) {
		return "", "", fault.New(fault.NotFound, op, "This instance has no such provider.")
	}
	if redirectURI == "" {
		redirectURI = s.frontendURL + "/auth/oauth/callback"
	}
	start, err := s.providers.Begin(ctx, name, redirectURI)
	if err != nil {
		return "", "", err
	}
	sealed, err := s.keyring.Seal([]byte(start.Verifier), sealedFor)
	if err != nil {
		return "", "", err
	}
	return start.URL, start.State, s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		return loginstore.CreateState(ctx, tx, secret.HashToken(start.State), loginstore.SignInState{
			Provider: provider, Verifier: sealed, Nonce: start.Nonce, RedirectURI: redirectURI, Person: p.Person,
			ExpiresAt: s.clock.Now().Add(tenancy.SignInStateLife),
		})
	})
}

// FinishSignIn completes the sign-in that a state belongs to, and consumes the state. It returns
// fault.Invalid if the provider rejects the sign-in or the state is not valid. A state can be used
// once, before it expires, with the browser and the provider of its sign-in. If the person has no
// account, the result contains a claim to register with.
//
// If the sign-in was started with a session, p must have a live session of the same person, and
// FinishSignIn links the identity to that person's account. It returns fault.Forbidden unless the
// identity and the account have the same verified address. It returns fault.Conflict if the
// identity belongs to another person.
//
// If the sign-in was started without a session, FinishSignIn returns fault.Conflict if the verified
// address belongs to an account that does not have the identity.
func (s *Logins) FinishSignIn(ctx context.Context, provider string, cb tenancy.Callback, p tenancy.Principal) (
	out tenancy.ProviderSignIn, err error) {
	const op = "tenancy.FinishSignIn"
	if err := db.RejectImpersonator(op, p); err != nil {
		return out, err
	}
	if s.providers == nil || !s.providers.Has(signin.Provider(provider)) {
		return out, fault.New(fault.NotFound, op, "This instance has no such provider.")
	}
	state, err := s.takeState(ctx, op, provider, cb, p)
	if err != nil {
		return out, err
	}
	verifier, err := s.keyring.Open(state.Verifier, sealedFor)
	if err != nil {
		return out, err
	}
	identity, err := s.providers.Finish(ctx, signin.Provider(provider), signin.Callback{
		Code: cb.Code, Issuer: cb.Issuer, RedirectURI: state.RedirectURI, Verifier: string(verifier),
		Nonce: state.Nonce,
	})
	if err != nil {
		return out, err
	}
	use := func(tx *db.GateTx) error {
		out, err = s.useIdentity(ctx, tx, op, identity, state.Person, cb.From)
		return err
	}
	if state.Person.IsZero() {
		return out, db.AccountFault(op, s.db.InGate(ctx, op, use))
	}
	err = s.db.InPerson(ctx, op, p, func(tx *db.GateTx, _ tenancy.Person) error { return use(tx) })
	return out, db.AccountFault(op, err)
}

// takeState consumes a callback's state and checks that the state belongs to this browser.
func (s *Logins) takeState(ctx context.Context, op, provider string, cb tenancy.Callback, p tenancy.Principal) (
	state loginstore.SignInState, err error) {
	refused := fault.New(fault.Invalid, op, "This sign-in was not started in this browser, or has expired; start again.")
	if cb.State == "" || subtle.ConstantTimeCompare([]byte(cb.State), []byte(cb.Cookie)) != 1 {
		return state, refused
	}
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		state, err = loginstore.TakeState(ctx, tx, secret.HashToken(cb.State))
		return err
	})
	if pg.IsNoRows(err) {
		return state, refused
	}
	if err != nil {
		return state, err
	}
	over := !s.clock.Now().Before(state.ExpiresAt)
	otherURI := cb.RedirectURI != "" && cb.RedirectURI != state.RedirectURI
	otherPerson := !state.Person.IsZero() && state.Person != p.Person
	if over || otherURI || otherPerson || state.Provider != provider {
		return state, refused
	}
	return state, nil
}

// useIdentity links an identity to the person in link. If link is zero, it signs in the person to
// whom the identity is linked. If there is no such person, it returns a claim.
func (s *Logins) useIdentity(ctx context.Context, tx *db.GateTx, op string, identity signin.Identity,
	link tenancy.PersonID, from tenancy.Source) (out tenancy.ProviderSignIn, err error) {
	key := db.IdentityKey{
		Provider: string(identity.Provider), Issuer: identity.Issuer, Subject: identity.Subject,
	}
	owner, err := loginstore.PersonOfIdentity(ctx, tx, key)
	switch {
	case err != nil && !pg.IsNoRows(err):
		return out, err
	case err == nil && !link.IsZero():
		out.Linked = owner == link
		if !out.Linked {
			err = fault.New(fault.Conflict, op, "This provider account belongs to another person.")
		}
		return out, err
	case err == nil:
		person, err := db.LockPerson(ctx, tx, owner)
		if err != nil {
			return out, err
		}
		if s.entry.IsGone(person) {
			return out, fault.New(fault.Invalid, op, "This account was deleted.")
		}
		out.SignIn, err = s.entry.NextStep(ctx, tx, op, person, from)
		return out, err
	case !link.IsZero():
		out.Linked = true
		return out, s.linkIdentity(ctx, tx, op, identity, key, link, from)
	}
	return s.claimIdentity(ctx, tx, op, identity, key)
}

// linkIdentity links an identity to the person of a live session. The person must have the same
// verified address as the identity.
func (s *Logins) linkIdentity(ctx context.Context, tx *db.GateTx, op string, identity signin.Identity,
	key db.IdentityKey, link tenancy.PersonID, from tenancy.Source) error {
	person, err := db.LockPerson(ctx, tx, link)
	if err != nil {
		return err
	}
	if identity.Unverified != "" && identity.Unverified == person.Email {
		return fault.New(fault.Forbidden, op, "The provider returned your address but does not say "+
			"that it is verified: verify it there and link the provider again.")
	}
	if !identity.EmailVerified || !person.Verified || identity.Email != person.Email {
		return fault.New(fault.Forbidden, op, "The provider account must have the same address as your account, "+
			"and the address must be verified in both.")
	}
	now := s.clock.Now()
	if err := db.AddIdentity(ctx, tx, key, person.ID, now); err != nil {
		return err
	}
	event := db.PersonEvent(person, from, tenancy.ActionIdentityLinked)
	event.Subject = key.Provider
	if err := db.AuditPerson(ctx, tx, person.ID, event, now); err != nil {
		return err
	}
	return s.notices.Notify(ctx, tx, notice.IdentityLinked, person.Email, notice.Notice{
		Name: key.Provider, Address: from.Client,
	})
}

// claimIdentity returns a claim, which is a token that a person without an account can register
// with. It returns Conflict if the identity's verified address belongs to an account.
func (s *Logins) claimIdentity(ctx context.Context, tx *db.GateTx, op string, identity signin.Identity,
	key db.IdentityKey) (out tenancy.ProviderSignIn, err error) {
	if identity.EmailVerified {
		_, err := db.PersonByEmail(ctx, tx, identity.Email)
		if err == nil {
			return out, fault.New(fault.Conflict, op, "There is already an account with your address: "+
				"sign in with its password, then link the provider.")
		}
		if !pg.IsNoRows(err) {
			return out, err
		}
	}
	claim, hash, err := credential.New(op)
	if err != nil {
		return out, err
	}
	out.Claim = claim
	return out, credential.CreateClaim(ctx, tx, hash, credential.Claim{
		IdentityKey: key, Email: cmp.Or(identity.Email, identity.Unverified), Name: identity.Name,
		Verified:  identity.EmailVerified,
		ExpiresAt: s.clock.Now().Add(tenancy.SignInStateLife),
	})
}
