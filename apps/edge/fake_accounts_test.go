package edge_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"crier/billing"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/tenancy"
)

// The tokens of sessions of the fake. goodSession is that of a USER.
const (
	adminSession     = "session-of-admin"
	ownerSession     = "session-of-owner"
	homelessSession  = "session-without-organization"
	suspendedSession = "session-of-suspended"
	enrollSession    = "session-to-enroll"
	instanceSession  = "session-of-instance"
	behindSession    = "session-behind-owner"
)

// newToken is what the fake makes where a real service makes a secret.
const newToken = "made-token"

var (
	personID   = id.New[tenancy.PersonTag]()
	behindID   = id.New[tenancy.PersonTag]()
	sessionID  = id.New[tenancy.SessionTag]()
	keyID      = id.New[tenancy.KeyTag]()
	inviteID   = id.New[tenancy.InvitationTag]()
	auditID    = id.New[tenancy.AuditTag]()
	membership = tenancy.FormatMembership(organization, personID)
)

// principals has the principal of each session.
func principals() map[string]tenancy.Principal {
	base := tenancy.Principal{
		Org: organization, Person: personID, Role: tenancy.RoleUser, Via: tenancy.ViaSession, Session: sessionID, Name: ada,
	}
	with := func(change func(*tenancy.Principal)) tenancy.Principal {
		p := base
		change(&p)
		return p
	}
	return map[string]tenancy.Principal{
		goodSession:      base,
		adminSession:     with(func(p *tenancy.Principal) { p.Role = tenancy.RoleAdmin }),
		ownerSession:     with(func(p *tenancy.Principal) { p.Role = tenancy.RoleSuperAdmin }),
		homelessSession:  with(func(p *tenancy.Principal) { p.Access, p.Org, p.Role = tenancy.AccessNone, tenancy.OrgID{}, "" }),
		suspendedSession: with(func(p *tenancy.Principal) { p.Access, p.Role = tenancy.AccessSuspended, tenancy.RoleSuperAdmin }),
		enrollSession:    with(func(p *tenancy.Principal) { p.Access, p.Role = tenancy.AccessEnroll, tenancy.RoleSuperAdmin }),
		instanceSession:  with(func(p *tenancy.Principal) { p.Instance = true }),
		behindSession: with(func(p *tenancy.Principal) {
			p.Role, p.Behind, p.BehindName = tenancy.RoleSuperAdmin, behindID, "root@example.org"
		}),
	}
}

// accounts fakes the use cases of accounts. It records every call but Session, Authenticate and Logout.
type accounts struct{ *world }

// record notes a call as its name and arguments, and returns the error of the world, or that of a database for text that
// it cannot store.
func (a accounts) record(name string, args ...any) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, arg := range args {
		if text, ok := arg.(string); ok {
			if err := sql(text); err != nil {
				return err
			}
		}
	}
	a.calls = append(a.calls, strings.TrimSpace(fmt.Sprintln(append([]any{name}, args...)...)))
	return a.err
}

// signed notes a call that has a source and returns the world's result of a sign-in.
func (a accounts) signed(name string, from tenancy.Source, args ...any) (tenancy.SignIn, error) {
	err := a.record(name, args...)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.from = from
	if err != nil {
		return tenancy.SignIn{}, err
	}
	return a.signIn, nil
}

// called returns the recorded calls and forgets them.
func (w *world) called() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := slices.Clone(w.calls)
	w.calls = nil
	return out
}

// wantCalls fails the test unless exactly these calls were recorded since the last time.
func (w *world) wantCalls(t *testing.T, calls ...string) {
	t.Helper()
	if got := w.called(); !slices.Equal(got, calls) {
		t.Errorf("calls\n%q, want\n%q", got, calls)
	}
}

// fail makes every call fail, with nil none.
func (w *world) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

// signsIn sets the result of sign-ins.
func (w *world) signsIn(s tenancy.SignIn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.signIn = s
}

func (a accounts) Authenticate(_ context.Context, authorization string) (tenancy.Principal, error) {
	a.authenticated.Add(1)
	if authorization != goodKey || a.revoked.Load() {
		return tenancy.Principal{}, fault.New(fault.Unauthenticated, "fake", "Invalid API key")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return tenancy.Principal{Org: cmp.Or(a.org, organization), Role: tenancy.RoleSuperAdmin, Via: tenancy.ViaKey}, nil
}

func (a accounts) Session(_ context.Context, token, org, impersonate string, from tenancy.Source) (tenancy.Principal, error) {
	a.authenticated.Add(1)
	p, ok := principals()[token]
	if !ok || a.revoked.Load() {
		return tenancy.Principal{}, fault.New(fault.Unauthenticated, "fake", "The session is over.")
	}
	if a.removed.Load() {
		p.Org = id.New[tenancy.OrgTag]()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.orgs = append(a.orgs, org)
	a.from = from
	if !a.org.IsZero() {
		p.Org = a.org
	}
	if impersonate == "gone" {
		return tenancy.Principal{}, fault.New(fault.NotFound, "fake", "There is no such membership.")
	}
	if impersonate == membership && token == instanceSession {
		return principals()[behindSession], nil
	}
	return p, nil
}

func (a accounts) Logout(_ context.Context, token string, _ tenancy.Source) error {
	return a.note("logout " + token)
}

func (a accounts) ListSessions(context.Context, tenancy.Principal) ([]tenancy.SessionInfo, error) {
	return []tenancy.SessionInfo{{ID: sessionID, Current: true, CreatedAt: day, SeenAt: day, ExpiresAt: day, Address: "203.0.113.9", Agent: "Browser"}},
		a.record("ListSessions")
}

func (a accounts) EndSessions(_ context.Context, _ tenancy.Principal, session string) (int, error) {
	return 2, a.record("EndSessions", session)
}

func (a accounts) CanRegister(context.Context) (bool, error) {
	return !a.private.Load(), a.record("CanRegister")
}

func (a accounts) Senders(_ context.Context, p tenancy.Principal) ([]string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := []string{"creator " + a.creator.String()}
	if !p.Person.IsZero() {
		out = append(out, "person "+p.Person.String())
	}
	return out, nil
}

func (a accounts) Offer(_ context.Context, p tenancy.Principal, token string) (tenancy.Offer, bool, error) {
	err := a.record("Offer", p.Name, token)
	switch token {
	case "spent":
		return tenancy.Offer{}, false, err
	case "later":
		return tenancy.Offer{}, false, fault.New(fault.Unavailable, "fake", "The service is not available.")
	}
	return tenancy.Offer{Organization: "Acme", Role: tenancy.RoleAdmin}, true, err
}

func (a accounts) Register(_ context.Context, r tenancy.Registration) (tenancy.SignIn, error) {
	return a.signed("Register", r.From, r.Email, r.Name, r.Password, r.Organization, r.Invitation, r.Provider)
}

func (a accounts) Activate(_ context.Context, code, password string, from tenancy.Source) (tenancy.SignIn, bool, error) {
	if code == "another-browser" && password == "" {
		return tenancy.SignIn{Step: tenancy.StepPassword}, false, a.record("Activate", code)
	}
	s, err := a.signed("Activate", from, code)
	return s, code != "used", err
}

func (a accounts) ResendActivation(_ context.Context, email string) error {
	return a.record("ResendActivation", email)
}

func (a accounts) Forgot(_ context.Context, email string) error { return a.record("Forgot", email) }

func (a accounts) ResetPassword(_ context.Context, token, password string, _ tenancy.Source) (bool, error) {
	return token != "used-token", a.record("ResetPassword", token, password)
}

func (a accounts) ConfirmAddress(_ context.Context, token string, _ tenancy.Source) (bool, error) {
	return true, a.record("ConfirmAddress", token)
}

func (a accounts) Login(_ context.Context, email, password string, from tenancy.Source) (tenancy.SignIn, error) {
	if err := sql(email); err != nil {
		return tenancy.SignIn{}, err
	}
	switch password {
	case "site":
		return tenancy.SignIn{}, fault.New(fault.Invalid, "fake", "The site is "+from.Site+".")
	case "slow":
		a.entering <- email
		<-a.release
	case "unavailable":
		return tenancy.SignIn{}, fault.New(fault.Unavailable, "fake", "The service is not available.")
	}
	if email != ada || password != "right" {
		return tenancy.SignIn{}, fault.New(fault.Invalid, "fake", "The e-mail address or the password is wrong.")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.from = from
	return a.signIn, nil
}

func (a accounts) KnownDevice(_ context.Context, email string, from tenancy.Source) (bool, error) {
	if from.Device == "broken-device" {
		return false, fault.New(fault.Unavailable, "fake", "The service is not available.")
	}
	return email == ada && from.Device == "known-device", nil
}

func (a accounts) VerifyMFA(_ context.Context, token, code, recovery string, from tenancy.Source) (tenancy.SignIn, error) {
	return a.signed("VerifyMFA", from, token, code, recovery)
}

func (a accounts) BeginEnrollment(_ context.Context, token string) (tenancy.Secret, error) {
	return tenancy.Secret{Text: "SECRET", URL: "otpauth://totp/x"}, a.record("BeginEnrollment", token)
}

func (a accounts) ConfirmEnrollment(_ context.Context, token, code string, from tenancy.Source) (tenancy.SignIn, error) {
	return a.signed("ConfirmEnrollment", from, token, code)
}

func (a accounts) Restore(_ context.Context, token string, from tenancy.Source) (tenancy.SignIn, error) {
	return a.signed("Restore", from, token)
}

func (a accounts) BeginSignIn(_ context.Context, provider, redirectURI string, p tenancy.Principal) (string, string, error) {
	if provider == "APPLE" {
		return "", "", fault.New(fault.NotFound, "fake", "There is no such provider.")
	}
	return "https://provider.test/authorize?x=1", newToken, a.record("BeginSignIn", provider, redirectURI, p.Name)
}

func (a accounts) FinishSignIn(_ context.Context, provider string, back tenancy.Callback, p tenancy.Principal) (tenancy.ProviderSignIn, error) {
	s, err := a.signed("FinishSignIn", back.From, provider, back.Code, back.State, back.Cookie, back.Issuer, back.RedirectURI, p.Name)
	switch {
	case back.Code == "stranger":
		return tenancy.ProviderSignIn{Claim: newToken}, err
	case p.Name != "":
		return tenancy.ProviderSignIn{Linked: true}, err
	}
	return tenancy.ProviderSignIn{SignIn: s}, err
}

func (a accounts) Identities(context.Context, tenancy.Principal) ([]tenancy.Identity, error) {
	return []tenancy.Identity{{Provider: "GITHUB", CreatedAt: day}}, a.record("Identities")
}

func adaPerson() tenancy.Person {
	return tenancy.Person{
		ID: personID, Email: ada, Name: "Ada", Bio: "Counts.", Verified: true, CreatedAt: day,
		Picture: tenancy.Picture{ID: "kept", Path: "http://elsewhere.test/kept.png"},
	}
}

func theOrganization() tenancy.Organization {
	return tenancy.Organization{ID: organization, Name: "Acme", Description: "Makes things.", Timezone: "Europe/Vienna", CreatedAt: day}
}

func (a accounts) Self(_ context.Context, p tenancy.Principal) (tenancy.Person, tenancy.OrganizationOf, error) {
	return adaPerson(), tenancy.OrganizationOf{Organization: theOrganization(), Role: p.Role}, a.record("Self")
}

func (a accounts) SetProfile(_ context.Context, _ tenancy.Principal, profile tenancy.Profile) (tenancy.Person, error) {
	p := adaPerson()
	p.Name, p.Bio, p.Picture = profile.Name, profile.Bio, profile.Picture
	return p, a.record("SetProfile", profile.Name, profile.Bio, profile.Picture.ID, profile.Picture.Path)
}

func (a accounts) Notifications(context.Context, tenancy.Principal) (tenancy.Notifications, error) {
	return tenancy.DefaultNotifications(), a.record("Notifications")
}

func (a accounts) SetNotifications(_ context.Context, _ tenancy.Principal, n tenancy.Notifications) error {
	return a.record("SetNotifications", n.Success, n.Failure, n.Digest, string(n.Approval), string(n.Comment), string(n.Channel), string(n.Billing))
}

func (a accounts) UnsubscribeTopics(token string) ([]tenancy.MailTopic, error) {
	if token != "mail-token" {
		return nil, fault.New(fault.NotFound, "fake", "The link is not valid.")
	}
	return []tenancy.MailTopic{tenancy.TopicFailure, tenancy.TopicChannel}, nil
}

func (a accounts) Unsubscribe(_ context.Context, token string) error {
	if token != "mail-token" {
		return fault.New(fault.NotFound, "fake", "The link is not valid.")
	}
	return a.record("Unsubscribe", token)
}

func (a accounts) Setup(_ context.Context, _ tenancy.Principal, s tenancy.Setup) error {
	return a.record("Setup", s.Name, s.Company, s.Timezone.Name, s.Timezone.Minutes)
}

// prove fails like a use case whose proof is wrong.
func prove(password string) error {
	if password != "right" {
		return fault.New(fault.Invalid, "fake", "The password is wrong.")
	}
	return nil
}

func (a accounts) ChangePassword(_ context.Context, _ tenancy.Principal, proof tenancy.Proof, password string) error {
	if err := prove(proof.Password); err != nil {
		return err
	}
	return a.record("ChangePassword", proof.Password, password)
}

func (a accounts) ChangeAddress(_ context.Context, _ tenancy.Principal, email string, proof tenancy.Proof) (bool, error) {
	if err := prove(proof.Password); err != nil {
		return false, err
	}
	return false, a.record("ChangeAddress", email, proof.Code)
}

func (a accounts) MFAStatus(context.Context, tenancy.Principal) (tenancy.MFAStatus, error) {
	at := day
	return tenancy.MFAStatus{Enabled: true, Required: true, EnabledAt: &at, RecoveryCodesLeft: 9}, a.record("MFAStatus")
}

func (a accounts) BeginMFA(_ context.Context, _ tenancy.Principal, proof tenancy.Proof) (tenancy.Secret, error) {
	if err := prove(proof.Password); err != nil {
		return tenancy.Secret{}, err
	}
	return tenancy.Secret{Text: "SECRET", URL: "otpauth://totp/x"}, a.record("BeginMFA")
}

func (a accounts) ConfirmMFA(_ context.Context, _ tenancy.Principal, code string) ([]string, error) {
	return []string{"r1", "r2"}, a.record("ConfirmMFA", code)
}

func (a accounts) UnlinkIdentity(_ context.Context, _ tenancy.Principal, identity string) error {
	if identity == "last" {
		return fault.New(fault.Conflict, "test", "You could not sign in any more.")
	}
	return a.record("UnlinkIdentity", identity)
}

func (a accounts) DisableMFA(_ context.Context, _ tenancy.Principal, proof tenancy.Proof) error {
	if err := prove(proof.Password); err != nil {
		return err
	}
	return a.record("DisableMFA", proof.Code)
}

func (a accounts) ReplaceRecoveryCodes(_ context.Context, _ tenancy.Principal, code string) ([]string, error) {
	return []string{"r3"}, a.record("ReplaceRecoveryCodes", code)
}

func (a accounts) MFAPolicy(context.Context, tenancy.Principal) (bool, error) {
	return true, a.record("MFAPolicy")
}

func (a accounts) SetMFAPolicy(_ context.Context, _ tenancy.Principal, required bool) error {
	return a.record("SetMFAPolicy", required)
}

func (a accounts) Organizations(context.Context, tenancy.Principal) ([]tenancy.OrganizationOf, error) {
	return []tenancy.OrganizationOf{{Organization: theOrganization(), Role: tenancy.RoleAdmin}}, a.record("Organizations")
}

func (a accounts) CreateOrganization(_ context.Context, _ tenancy.Principal, name string) (tenancy.Organization, error) {
	o := theOrganization()
	o.Name = name
	return o, a.record("CreateOrganization", name)
}

func (a accounts) ChooseOrganization(_ context.Context, _ tenancy.Principal, org string) error {
	if org != organization.String() {
		return fault.New(fault.Forbidden, "fake", "You are not a member.")
	}
	return a.record("ChooseOrganization", org)
}

func (a accounts) JoinOrganization(_ context.Context, p tenancy.Principal, token string) (tenancy.OrgID, error) {
	err := a.record("JoinOrganization", p.Name, token)
	switch token {
	case "spent":
		return tenancy.OrgID{}, err
	case "foreign":
		return tenancy.OrgID{}, fault.New(fault.Forbidden, "fake", "The invitation is for another address.")
	case "later":
		return tenancy.OrgID{}, fault.New(fault.Unavailable, "fake", "The service is not available.")
	}
	return organization, err
}

func (a accounts) Organization(context.Context, tenancy.Principal) (tenancy.Organization, error) {
	return theOrganization(), a.record("Organization")
}

func (a accounts) UpdateOrganization(_ context.Context, _ tenancy.Principal, c tenancy.OrganizationChange) (tenancy.Organization, error) {
	o := theOrganization()
	if c.Name != nil {
		o.Name = *c.Name
	}
	if c.Timezone != nil {
		o.Timezone = c.Timezone.Name
	}
	return o, a.record("UpdateOrganization", o.Name, o.Timezone, c.Description != nil)
}

func (a accounts) Audit(_ context.Context, _ tenancy.Principal, q tenancy.AuditQuery) ([]tenancy.AuditEvent, bool, error) {
	return []tenancy.AuditEvent{
		{ID: auditID, At: day, Person: personID, Actor: ada, Via: tenancy.ViaSession, Action: tenancy.ActionKeyCreated, Subject: `=HYPERLINK("x")`, Address: "203.0.113.9"},
		{ID: auditID, At: day, Actor: "+bot", Via: tenancy.ViaKey, Key: keyID, Behind: "@root", Action: tenancy.ActionPaused, Subject: "-1"},
	}, true, a.record("Audit", q.From.Format(time.DateOnly), q.To.Format(time.DateOnly), q.Actor, q.Action, q.Page, q.Limit)
}

func (a accounts) DeleteAccount(_ context.Context, _ tenancy.Principal, proof tenancy.Proof) error {
	if err := prove(proof.Password); err != nil {
		return err
	}
	return a.record("DeleteAccount")
}

func (a accounts) DeleteOrganization(_ context.Context, _ tenancy.Principal, proof tenancy.Proof) error {
	if err := prove(proof.Password); err != nil {
		return err
	}
	return a.record("DeleteOrganization")
}

func (a accounts) RestoreOrganization(_ context.Context, _ tenancy.Principal, org string) error {
	return a.record("RestoreOrganization", org)
}

func (a accounts) Team(context.Context, tenancy.Principal) ([]tenancy.Member, error) {
	return []tenancy.Member{{Person: personID, Email: ada, Name: "Ada", Role: tenancy.RoleAdmin, CreatedAt: day, Notifications: tenancy.DefaultNotifications()}},
		a.record("Team")
}

func (a accounts) Invite(_ context.Context, _ tenancy.Principal, n tenancy.NewInvitation) (tenancy.Invitation, string, error) {
	return tenancy.Invitation{ID: inviteID, ExpiresAt: day}, newToken, a.record("Invite", n.Email, string(n.Role), n.Send)
}

func (a accounts) Invitations(context.Context, tenancy.Principal) ([]tenancy.Invitation, error) {
	return []tenancy.Invitation{{ID: inviteID, Role: tenancy.RoleUser, InvitedBy: ada, CreatedAt: day, ExpiresAt: day}}, a.record("Invitations")
}

func (a accounts) RevokeInvitation(_ context.Context, _ tenancy.Principal, invitation string) error {
	return a.record("RevokeInvitation", invitation)
}

func (a accounts) RemoveMember(_ context.Context, _ tenancy.Principal, person string, revokeKeys bool) (tenancy.MadeBy, error) {
	return tenancy.MadeBy{Keys: []tenancy.APIKey{aKey()}}, a.record("RemoveMember", person, revokeKeys)
}

func (a accounts) SetRole(_ context.Context, _ tenancy.Principal, person string, change tenancy.RoleChange) (tenancy.MadeBy, error) {
	if change.Role == tenancy.RoleSuperAdmin {
		if err := prove(change.Proof.Password); err != nil {
			return tenancy.MadeBy{}, err
		}
	}
	return tenancy.MadeBy{}, a.record("SetRole", person, string(change.Role))
}

func aKey() tenancy.APIKey {
	return tenancy.APIKey{ID: keyID, Org: organization, Name: "Key", Prefix: "crier_ab12", CreatedBy: personID, CreatedAt: day}
}

func (a accounts) Keys(context.Context, tenancy.Principal) ([]tenancy.KeyOf, error) {
	used := day
	k := aKey()
	k.UsedAt = &used
	return []tenancy.KeyOf{{APIKey: k, CreatedByEmail: ada}}, a.record("Keys")
}

func (a accounts) CreateKey(_ context.Context, _ tenancy.Principal, n tenancy.NewKey) (string, tenancy.APIKey, error) {
	k := aKey()
	k.Name, k.ExpiresAt = n.Name, n.ExpiresAt
	return goodKey, k, a.record("CreateKey", n.Name)
}

func (a accounts) RenameKey(_ context.Context, _ tenancy.Principal, key, name string) (tenancy.APIKey, error) {
	k := aKey()
	k.Name = name
	return k, a.record("RenameKey", key, name)
}

func (a accounts) DeleteKey(_ context.Context, _ tenancy.Principal, key string) error {
	return a.record("DeleteKey", key)
}

func (a accounts) RotateKey(_ context.Context, _ tenancy.Principal, key string, overlap int, _ tenancy.Proof) (tenancy.Rotation, error) {
	return tenancy.Rotation{Full: goodKey, New: aKey()}, a.record("RotateKey", key, overlap)
}

func (a accounts) Impersonable(_ context.Context, _ tenancy.Principal, text string) ([]tenancy.Impersonable, error) {
	return []tenancy.Impersonable{{ID: membership, Role: tenancy.RoleAdmin, Organization: theOrganization(), Person: adaPerson()}},
		a.record("Impersonable", text)
}

func (a accounts) Impersonate(_ context.Context, p tenancy.Principal, to string) error {
	return a.record("Impersonate", to, p.Instance)
}

func (a accounts) CreateEnterpriseUser(_ context.Context, signed string, _ tenancy.Source) (tenancy.OrgID, string, error) {
	return organization, goodKey, a.record("CreateEnterpriseUser", signed)
}

// plans are those of an instance without plans.
type plans struct{}

func (plans) Of(context.Context, tenancy.Organization) (billing.Plan, *billing.Subscription, error) {
	return billing.Catalogue{}.Of(tenancy.OrgID{}), nil, nil
}

func (plans) Tiers() []billing.Plan { return nil }

func (a accounts) RecordActed(context.Context, tenancy.Principal, string) error { return a.note() }
