package tenancy

import "time"

const (
	// SessionIdle is how long a session lives without use. The last use is stored to the minute.
	SessionIdle = 12 * time.Hour
	// SessionAbsolute is how long a session lives at most.
	SessionAbsolute = 30 * 24 * time.Hour
	// DeviceMemory is how long a browser is known after its last log-in.
	DeviceMemory = 365 * 24 * time.Hour
	// RecentSignIn is how old the sign-in of a person without a password may be that counts as a
	// proof.
	RecentSignIn = 10 * time.Minute
	// SignInStepLife is how long the token of a step of a sign-in works.
	SignInStepLife = 5 * time.Minute
	// SignInStateLife is how long a sign-in at an identity provider may take, and the registration
	// after it.
	SignInStateLife = 10 * time.Minute
	// ResetLife is how long the link of a forgotten password works.
	ResetLife = 20 * time.Minute
	// ConfirmationLife is how long the link of a registration or a change of address works.
	ConfirmationLife = 24 * time.Hour
	// InvitationLife is how long an invitation works.
	InvitationLife = 48 * time.Hour
)

// SessionInfo is a session as its person sees it.
type SessionInfo struct {
	ID SessionID `db:"id"`
	// Current means that the request itself has this session.
	Current   bool      `db:"-"`
	CreatedAt time.Time `db:"created_at"`
	SeenAt    time.Time `db:"seen_at"`
	ExpiresAt time.Time `db:"expires_at"`
	Address   string    `db:"address"`
	Agent     string    `db:"agent"`
}

// Step is what a sign-in still needs.
type Step string

// The steps. The table sign_in_step has a CHECK with the last three.
const (
	// StepDone means that the sign-in is complete.
	StepDone Step = ""
	// StepConfirm means that a link in a mail must be followed first.
	StepConfirm Step = "confirm"
	// StepPassword means that the link of a registration was opened in another browser than that
	// which registered, and the password of the registration is needed.
	StepPassword Step = "password"
	// StepMFA needs a code of the second factor.
	StepMFA Step = "mfa"
	// StepEnroll needs a second factor, because an organization requires one.
	StepEnroll Step = "enroll"
	// StepRestore needs the confirmation that the deletion of the account shall be undone.
	StepRestore Step = "restore"
)

// SignIn is the result of a sign-in or a part of one.
type SignIn struct {
	Step Step
	// Session is the token of the new session; empty unless Step is StepDone.
	Session string
	// Device is the token of the cookie device; empty when the browser has one, or neither a
	// session nor a registration began.
	Device string
	// Token proves the steps so far; empty for StepDone and StepConfirm.
	Token string
	// Onboarding means that the person is new.
	Onboarding bool
	// Until is, for StepRestore, when the account will be purged.
	Until time.Time
	// RecoveryCodes are set when the sign-in has enrolled a second factor.
	RecoveryCodes []string
	// Org is the organization that the person has just joined or made; zero otherwise.
	Org OrgID
}

// Registration is the input of a registration.
type Registration struct {
	Email, Name, Password string
	// Organization is the name of the person's own organization. It is not used with an invitation.
	Organization string
	// Invitation is the token of an invitation, or "".
	Invitation string
	// Provider is the token of a sign-in at an identity provider, in place of Email and Password;
	// else "".
	Provider string
	From     Source
}

// Proof shows again who makes a request: the password, or the recent sign-in of a person without
// one.
type Proof struct {
	Password string
	// Code is a code of the second factor, where one is asked for.
	Code string
}

// Secret is a second factor that was begun.
type Secret struct {
	// Text is the secret in base32, for people who type it.
	Text string
	// URL is the otpauth address for a QR code.
	URL string
}

// MFAStatus is the state of a person's second factor.
type MFAStatus struct {
	Enabled bool
	// Required means that the organization of the request requires it.
	Required bool
	// EnabledAt is nil unless Enabled.
	EnabledAt         *time.Time
	RecoveryCodesLeft int
}

// ProviderSignIn is the result of a sign-in at an identity provider.
type ProviderSignIn struct {
	SignIn
	// Claim is the token with which a person without an account registers; empty otherwise.
	Claim string
	// Linked means that the identity was linked to the account of a live session.
	Linked bool
}

// Identity is an account at an identity provider that its person can sign in with.
type Identity struct {
	ID        IdentityID `db:"id"`
	Provider  string     `db:"provider"`
	CreatedAt time.Time  `db:"created_at"`
}

// Callback is what a browser brings back from an identity provider.
type Callback struct {
	Code, State string
	// Cookie is the state that the browser was given when the sign-in began.
	Cookie string
	// Issuer is the parameter iss of RFC 9207, "" if there was none.
	Issuer string
	// RedirectURI is the address of the callback, "" for the one of the beginning.
	RedirectURI string
	From        Source
}
