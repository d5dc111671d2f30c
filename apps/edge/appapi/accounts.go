package appapi

import (
	"context"

	"crier/tenancy"
)

// Accounts are the use cases of people, organizations and keys. Unless their comment names others, methods return
// Invalid for an input that breaks a rule, with its fields; Forbidden when the role of the principal is too low; NotFound
// for what the organization does not have; and RateLimited or Unavailable with a time after which to try again.
type Accounts interface {
	Sessions
	SignUp
	Logins
	Providers
	People
	Security
	Factors
	Organizations
	Deletions
	Team
	Keys
	Instance
}

// Sessions authenticate requests.
type Sessions interface {
	// Session returns the principal of a session token in an organization, and as another person when impersonate is the
	// id of a membership and the person of the session is an administrator of the instance. With an empty organization,
	// or one that the person is no member of, that is the first enabled membership. An unknown token is Unauthenticated.
	Session(ctx context.Context, token, organization, impersonate string, from tenancy.Source) (tenancy.Principal, error)
	// Logout ends a session, and records the end of what it acts as. An unknown token is no error.
	Logout(ctx context.Context, token string, from tenancy.Source) error
	// ListSessions returns the live sessions of the principal's person, the newest first.
	ListSessions(ctx context.Context, p tenancy.Principal) ([]tenancy.SessionInfo, error)
	// EndSessions ends the session with the id, or with "" all sessions of the person but that of the request. It
	// returns how many ended, and NotFound for an id that is not one of the person's.
	EndSessions(ctx context.Context, p tenancy.Principal, session string) (int, error)
}

// SignUp are the use cases of people who have no session yet. What they answer about an address that is known and about
// one that is not is the same.
type SignUp interface {
	// CanRegister returns whether a person without an invitation can register.
	CanRegister(ctx context.Context) (bool, error)
	// Register begins a registration. With mail the result is StepConfirm, for every address; without mail it is a
	// session. Invalid also means that the instance takes no registrations, or none without an invitation, that the
	// invitation is not valid or is for another address, or that the address is in use on an instance without mail.
	Register(ctx context.Context, r tenancy.Registration) (tenancy.SignIn, error)
	// Activate completes the registration of a link. It returns false for a link that is not valid, has been used, or
	// whose address has got an account meanwhile.
	Activate(ctx context.Context, code, password string, from tenancy.Source) (s tenancy.SignIn, ok bool, err error)
	// ResendActivation sends the link of the address's newest registration again, if there is one.
	ResendActivation(ctx context.Context, email string) error
	// Forgot sends a link for a new password, if there is a person with the address.
	Forgot(ctx context.Context, email string) error
	// ResetPassword sets the password of the link's person and ends all sessions of the person. It returns false for a
	// link that is not valid or has been used.
	ResetPassword(ctx context.Context, token, password string, from tenancy.Source) (bool, error)
	// ConfirmAddress follows one of the two links of a change of address. done means that the address has changed.
	// NotFound means that the link is not valid any more, Conflict that another account has got the address meanwhile.
	ConfirmAddress(ctx context.Context, token string, from tenancy.Source) (done bool, err error)
}

// Logins are the steps of a sign-in.
type Logins interface {
	// Login checks an address and a password. A wrong pair is Invalid and takes as long as a right one. Log-ins from one
	// site hardly delay those from another. RateLimited means that too many log-ins are running.
	Login(ctx context.Context, email, password string, from tenancy.Source) (tenancy.SignIn, error)
	// KnownDevice returns whether the person with the address has signed in in the browser of from before.
	KnownDevice(ctx context.Context, email string, from tenancy.Source) (bool, error)
	// VerifyMFA completes a sign-in of StepMFA with a code or a recovery code. A wrong one is Unauthenticated; after five
	// wrong ones it is RateLimited.
	VerifyMFA(ctx context.Context, token, code, recovery string, from tenancy.Source) (tenancy.SignIn, error)
	// BeginEnrollment returns a new second factor for a sign-in of StepEnroll. A token that is over is Unauthenticated.
	BeginEnrollment(ctx context.Context, token string) (tenancy.Secret, error)
	// ConfirmEnrollment completes a sign-in of StepEnroll with the first code of the second factor.
	ConfirmEnrollment(ctx context.Context, token, code string, from tenancy.Source) (tenancy.SignIn, error)
	// Restore completes a sign-in of StepRestore: it undoes the deletion of the account, and of the organizations whose
	// only member the person is.
	Restore(ctx context.Context, token string, from tenancy.Source) (tenancy.SignIn, error)
}

// Providers are sign-ins at identity providers.
type Providers interface {
	// BeginSignIn returns the address at the provider, and the state to be kept in a cookie. With a session, which is
	// the zero Principal otherwise, the identity will be linked to its person. NotFound means that the instance does not
	// have the provider.
	BeginSignIn(ctx context.Context, provider, redirectURI string, p tenancy.Principal) (url, state string, err error)
	// FinishSignIn completes the sign-in of a state. cookie is the state of the browser. A state that is not the
	// browser's, is over or was used, and a refusal of the provider are Invalid. issuer is the parameter iss of the
	// callback (RFC 9207), "" if there was none. The principal is that of the live session, if there is one.
	FinishSignIn(ctx context.Context, provider string, callback tenancy.Callback, p tenancy.Principal) (
		tenancy.ProviderSignIn, error)
	// Identities returns the identities with which the person can sign in.
	Identities(ctx context.Context, p tenancy.Principal) ([]tenancy.Identity, error)
	// UnlinkIdentity is Conflict for the last way to sign in.
	UnlinkIdentity(ctx context.Context, p tenancy.Principal, identity string) error
}

// People are the use cases of a person's own data.
type People interface {
	// Self returns the person and the organization of the principal. The organization is zero without access to any.
	Self(ctx context.Context, p tenancy.Principal) (tenancy.Person, tenancy.OrganizationOf, error)
	SetProfile(ctx context.Context, p tenancy.Principal, profile tenancy.Profile) (tenancy.Person, error)
	Notifications(ctx context.Context, p tenancy.Principal) (tenancy.Notifications, error)
	SetNotifications(ctx context.Context, p tenancy.Principal, n tenancy.Notifications) error
	// UnsubscribeTopics returns what mails Unsubscribe ends, and changes nothing. A token that is not valid is NotFound.
	UnsubscribeTopics(token string) ([]tenancy.MailTopic, error)
	// Unsubscribe switches the mails off that a link of List-Unsubscribe names. A token that is not valid is NotFound.
	Unsubscribe(ctx context.Context, token string) error
	// Setup fills the name of the person, and of an owner the name and the time zone of the organization, where they
	// are still empty.
	Setup(ctx context.Context, p tenancy.Principal, s tenancy.Setup) error
}

// Security are the use cases of a person's password and address. A proof that is wrong is Invalid.
type Security interface {
	// ChangePassword sets the password and ends all other sessions. The password of the proof is
	// the old password. A person without a password sets a first one; the proof is then a sign-in
	// in the last ten minutes.
	ChangePassword(ctx context.Context, p tenancy.Principal, proof tenancy.Proof, password string) error
	// ChangeAddress sends links to the old and the new address. The address changes when both were followed; without
	// mail at once. It returns whether it has changed.
	ChangeAddress(ctx context.Context, p tenancy.Principal, email string, proof tenancy.Proof) (bool, error)
}

// Factors are the use cases of second factors of a person with a session. A wrong proof is Invalid, and so is a wrong
// code.
type Factors interface {
	MFAStatus(ctx context.Context, p tenancy.Principal) (tenancy.MFAStatus, error)
	// BeginMFA returns a new second factor. Conflict means that there is one.
	BeginMFA(ctx context.Context, p tenancy.Principal, proof tenancy.Proof) (tenancy.Secret, error)
	// ConfirmMFA enables the second factor and returns the recovery codes.
	ConfirmMFA(ctx context.Context, p tenancy.Principal, code string) ([]string, error)
	// DisableMFA needs a code or a recovery code beside the password. Forbidden means that an organization of the
	// person requires it, and is for codes only.
	DisableMFA(ctx context.Context, p tenancy.Principal, proof tenancy.Proof) error
	// ReplaceRecoveryCodes replaces all recovery codes.
	ReplaceRecoveryCodes(ctx context.Context, p tenancy.Principal, code string) ([]string, error)
	MFAPolicy(ctx context.Context, p tenancy.Principal) (bool, error)
	// SetMFAPolicy is Conflict when the caller has no second factor.
	SetMFAPolicy(ctx context.Context, p tenancy.Principal, required bool) error
}

// Organizations are the use cases of organizations and the way into them.
type Organizations interface {
	// Organizations returns the organizations of which the person is an enabled member, the oldest membership first,
	// also those of the owner that are to be deleted.
	Organizations(ctx context.Context, p tenancy.Principal) ([]tenancy.OrganizationOf, error)
	// CreateOrganization returns Conflict, RateLimited or Quota if the person has created too many
	// organizations: in total, in 24 hours, or with the default plan.
	CreateOrganization(ctx context.Context, p tenancy.Principal, name string) (tenancy.Organization, error)
	// Senders returns hashes of the mailboxes against which the principal's mails count: the mailbox of
	// the person who answers for the organization, and the mailbox of the principal's person.
	Senders(ctx context.Context, p tenancy.Principal) ([]string, error)
	// ChooseOrganization checks that the person is a member. It is Forbidden otherwise.
	ChooseOrganization(ctx context.Context, p tenancy.Principal, org string) error
	// Offer returns what an invitation offers to the person. It returns false if the person cannot
	// use the invitation or is already a member of the organization.
	Offer(ctx context.Context, p tenancy.Principal, token string) (offer tenancy.Offer, ok bool, err error)
	// JoinOrganization uses an invitation. It returns the zero id when the invitation is not valid, has been used or is
	// over, and Forbidden when it is for another address or for one that the person has not confirmed.
	JoinOrganization(ctx context.Context, p tenancy.Principal, token string) (tenancy.OrgID, error)
	Organization(ctx context.Context, p tenancy.Principal) (tenancy.Organization, error)
	UpdateOrganization(ctx context.Context, p tenancy.Principal, change tenancy.OrganizationChange) (
		tenancy.Organization, error)
	// Audit returns entries of the audit log, the newest first, and whether there are more.
	Audit(ctx context.Context, p tenancy.Principal, q tenancy.AuditQuery) (list []tenancy.AuditEvent, more bool, err error)
}

// Deletions are the use cases of deleting and restoring.
type Deletions interface {
	// DeleteAccount requests the deletion of the person's account. It is Invalid while the person is the owner of an
	// organization that has other members.
	DeleteAccount(ctx context.Context, p tenancy.Principal, proof tenancy.Proof) error
	// DeleteOrganization requests the deletion of the organization. Only the owner may.
	DeleteOrganization(ctx context.Context, p tenancy.Principal, proof tenancy.Proof) error
	// RestoreOrganization undoes it. Only the owner may, and NotFound means that there is none to be restored.
	RestoreOrganization(ctx context.Context, p tenancy.Principal, org string) error
}

// Team are the use cases of the members of an organization.
type Team interface {
	// Team returns the members, the oldest membership first.
	Team(ctx context.Context, p tenancy.Principal) ([]tenancy.Member, error)
	// Invite returns the token of an invitation for the inviter.
	Invite(ctx context.Context, p tenancy.Principal, n tenancy.NewInvitation) (tenancy.Invitation, string, error)
	Invitations(ctx context.Context, p tenancy.Principal) ([]tenancy.Invitation, error)
	RevokeInvitation(ctx context.Context, p tenancy.Principal, invitation string) error
	// RemoveMember removes a member, or lets the caller leave, and returns what the member made.
	// The keys and webhooks keep working unless revoke is set. Forbidden means that the member
	// outranks the caller or is the owner, or that the caller may not revoke.
	RemoveMember(ctx context.Context, p tenancy.Principal, person string, revoke bool) (tenancy.MadeBy, error)
	// SetRole changes the role of a member. If an administrator becomes a USER, it returns what
	// that member made. With RoleSuperAdmin the owner, who must give a proof, and the member swap
	// roles.
	SetRole(ctx context.Context, p tenancy.Principal, person string, change tenancy.RoleChange) (tenancy.MadeBy, error)
}

// Keys are the use cases of API keys. The keys themselves are returned only when they are made.
type Keys interface {
	// Keys returns the live keys, the newest first, with the addresses of their creators.
	Keys(ctx context.Context, p tenancy.Principal) ([]tenancy.KeyOf, error)
	// CreateKey needs a sign-in in the last ten minutes, or a proof. It returns Invalid if the
	// proof is missing or wrong.
	CreateKey(ctx context.Context, p tenancy.Principal, n tenancy.NewKey) (string, tenancy.APIKey, error)
	RenameKey(ctx context.Context, p tenancy.Principal, key, name string) (tenancy.APIKey, error)
	DeleteKey(ctx context.Context, p tenancy.Principal, key string) error
	// RotateKey replaces a key, or the oldest key if the id is "", with a new key that has the same
	// name and expiry. The old key works for overlap more hours. If there is no key, it creates the
	// first one. It needs what CreateKey needs. Conflict means that the key has already been
	// replaced or, with "", that it was made by a rotation minutes ago.
	RotateKey(ctx context.Context, p tenancy.Principal, key string, overlap int, proof tenancy.Proof) (
		tenancy.Rotation, error)
}

// Instance are the use cases of administrators of the instance, and of the company that runs it.
type Instance interface {
	// Impersonable returns at most ten memberships whose person or organization has the text in its name or address.
	Impersonable(ctx context.Context, p tenancy.Principal, text string) ([]tenancy.Impersonable, error)
	// Impersonate records that the caller acts as the membership from now on; "" ends it.
	Impersonate(ctx context.Context, p tenancy.Principal, membership string) error
	// CreateEnterpriseUser creates a person, an organization and a key for a signed request. NotFound means that the
	// instance takes none, Invalid that the signature, its age or its content is not valid, Conflict that the request was
	// used or the address has an account.
	CreateEnterpriseUser(ctx context.Context, signed string, from tenancy.Source) (tenancy.OrgID, string, error)
}
