package tenancy

import "time"

const (
	// SessionIdle is how long a session lasts without being used. The time of the last use is
	// recorded to the minute.
	SessionIdle = 12 * time.Hour
	// SessionAbsolute is the maximum lifetime of a session.
	SessionAbsolute = 30 * 24 * time.Hour
	// DeviceMemory is how long a browser is remembered after its last sign-in.
	DeviceMemory = 365 * 24 * time.Hour
	// RecentSignIn is the maximum age of a sign-in that can serve as proof for a person without a
	// password.
	RecentSignIn = 10 * time.Minute
	// SignInStepLife is how long a sign-in step's token works.
	SignInStepLife = 5 * time.Minute
	// SignInStateLife is how long a person has to sign in at an identity provider. The person has
	// the same amount of time again to register afterwards.
	SignInStateLife = 10 * time.Minute
	// ResetLife is how long a password reset link works.
	ResetLife = 20 * time.Minute
	// ConfirmationLife is how long links for registrations and address changes work.
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

// The steps of a sign-in. The sign_in_step table has a CHECK constraint with the last three values.
const (
	// StepDone means that the sign-in is complete.
	StepDone Step = ""
	// StepConfirm means that the person must first follow an emailed link.
	StepConfirm Step = "confirm"
	// StepPassword means that a registration link was opened in a browser other than the one used
	// to register. The person must therefore enter the password chosen at registration.
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
	// Device is the token for the device cookie. It is empty if the browser already has a token, or
	// if neither a session nor a registration was begun.
	Device string
	// Token proves that the earlier steps have been completed. It is empty for StepDone and
	// StepConfirm.
	Token string
	// Onboarding means that the person is new.
	Onboarding bool
	// Until is the deadline for undoing the account's deletion. It is set if a deletion was
	// requested and the sign-in is not complete.
	Until time.Time
	// RecoveryCodes is set if a second factor was enrolled during the sign-in.
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
	// Provider is the Claim from a ProviderSignIn, or "". A claim replaces Email and Password.
	Provider string
	From     Source
}

// Proof confirms who is making a request, either with a password or, if the person has none, with a
// recent sign-in.
type Proof struct {
	Password string
	// Code is a code from the second factor, if one is required.
	Code string
}

// Secret is the secret of a second factor that is being enrolled.
type Secret struct {
	// Text is the secret in base32, for people who enter it manually.
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
	// Linked means that the identity was linked to the account of the current session.
	Linked bool
}

// Identity is an account at an identity provider that a person can sign in with.
type Identity struct {
	ID        IdentityID `db:"id"`
	Provider  string     `db:"provider"`
	CreatedAt time.Time  `db:"created_at"`
}

// Callback holds the parameters of an identity provider's redirect and the state that was stored in
// the browser.
type Callback struct {
	Code, State string
	// Cookie is the state that was stored in a browser cookie when the sign-in began.
	Cookie string
	// Issuer is the iss parameter of RFC 9207, or "" if there was none.
	Issuer string
	// RedirectURI is the URL of the callback, or "" if it is the URL that the sign-in began with.
	RedirectURI string
	From        Source
}
