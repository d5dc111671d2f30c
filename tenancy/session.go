package tenancy

import "time"

const (
	// SessionIdle is how long an unused session lives. The time of the last use is recorded to the
	// minute.
	SessionIdle = 12 * time.Hour
	// SessionAbsolute is the maximum lifetime of a session.
	SessionAbsolute = 30 * 24 * time.Hour
	// DeviceMemory is how long a browser is remembered after its last sign-in.
	DeviceMemory = 365 * 24 * time.Hour
	// RecentSignIn is how recent a sign-in must be to serve as proof for a person without a
	// password.
	RecentSignIn = 10 * time.Minute
	// SignInStepLife is how long a sign-in step's token works.
	SignInStepLife = 5 * time.Minute
	// SignInStateLife is how long a person can take to sign in at an identity provider, and how
	// long to register after that.
	SignInStateLife = 10 * time.Minute
	// ResetLife is how long a password reset link works.
	ResetLife = 20 * time.Minute
	// ConfirmationLife is how long a link that confirms a registration or an address change works.
	ConfirmationLife = 24 * time.Hour
	// InvitationLife is how long an invitation works.
	InvitationLife = 48 * time.Hour
)

// SessionInfo is a session as the signed-in person sees it.
type SessionInfo struct {
	ID SessionID `db:"id"`
	// Current means that the request was made with this session.
	Current   bool      `db:"-"`
	CreatedAt time.Time `db:"created_at"`
	SeenAt    time.Time `db:"seen_at"`
	ExpiresAt time.Time `db:"expires_at"`
	Address   string    `db:"address"`
	Agent     string    `db:"agent"`
}

// Step is what a sign-in still needs.
type Step string

// The steps. The sign_in_step table has a CHECK constraint with the last three.
const (
	// StepDone means that the sign-in is complete.
	StepDone Step = ""
	// StepConfirm means that the person must first follow an emailed link.
	StepConfirm Step = "confirm"
	// StepPassword means that a registration link was opened in a different browser from the one
	// that registered, so the password chosen at registration is needed.
	StepPassword Step = "password"
	// StepMFA asks for a code from the second factor.
	StepMFA Step = "mfa"
	// StepEnroll asks the person to enroll a second factor, because an organization requires one.
	StepEnroll Step = "enroll"
	// StepRestore asks the person to confirm that the account's deletion should be undone.
	StepRestore Step = "restore"
)

// SignIn is the result of a sign-in or of one of its steps.
type SignIn struct {
	Step Step
	// Session is the token of the new session. It is empty unless Step is StepDone.
	Session string
	// Device is the token for the device cookie. It is empty if the browser already has one, or if
	// neither a session nor a registration began.
	Device string
	// Token proves the steps completed so far. It is empty for StepDone and StepConfirm.
	Token string
	// Onboarding means that the person is new.
	Onboarding bool
	// Until is when the account's deletion can no longer be undone. It is set if a deletion was
	// requested and the sign-in is not complete.
	Until time.Time
	// RecoveryCodes is set if the sign-in has enrolled a second factor.
	RecoveryCodes []string
	// Org is the organization that the person has just joined or created, or zero.
	Org OrgID
}

// Registration is the input for a registration.
type Registration struct {
	Email, Name, Password string
	// Organization is the name of the organization to create. It is ignored if there is an
	// invitation.
	Organization string
	// Invitation is an invitation's token, or "".
	Invitation string
	// Provider is a ProviderSignIn's Claim, which replaces Email and Password, or "".
	Provider string
	From     Source
}

// Proof confirms who is making a request: by the password, or by a recent sign-in if the person has
// no password.
type Proof struct {
	Password string
	// Code is a code from the second factor, if one is required.
	Code string
}

// Secret is a second factor whose enrollment has begun.
type Secret struct {
	// Text is the secret in base32, for people who type it.
	Text string
	// URL is the otpauth URL for a QR code.
	URL string
}

// MFAStatus is the state of a person's second factor.
type MFAStatus struct {
	Enabled bool
	// Required means that one of the person's organizations requires a second factor.
	Required bool
	// EnabledAt is nil unless Enabled.
	EnabledAt         *time.Time
	RecoveryCodesLeft int
}

// ProviderSignIn is the result of a sign-in at an identity provider.
type ProviderSignIn struct {
	SignIn
	// Claim is a token to register with. It is set if the person has no account.
	Claim string
	// Linked means that the identity was linked to the live session's account.
	Linked bool
}

// Identity is an account at an identity provider that a person can sign in with.
type Identity struct {
	ID        IdentityID `db:"id"`
	Provider  string     `db:"provider"`
	CreatedAt time.Time  `db:"created_at"`
}

// Callback holds what an identity provider sends back through the browser.
type Callback struct {
	Code, State string
	// Cookie is the state that was stored in the browser when the sign-in began.
	Cookie string
	// Issuer is the iss parameter of RFC 9207, or "" if there was none.
	Issuer string
	// RedirectURI is the callback's URL, or "" for the URL that the sign-in began with.
	RedirectURI string
	From        Source
}
