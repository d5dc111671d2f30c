package notice

// Kind identifies what an email is about. It is stored with the email.
type Kind string

// The kinds of email.
const (
	Registration         Kind = "registration"
	Resend               Kind = "resend"
	Reset                Kind = "reset"
	Invitation           Kind = "invitation"
	AddressOld           Kind = "address-old"
	AddressNew           Kind = "address-new"
	AddressChanged       Kind = "address-changed"
	NewDevice            Kind = "new-device"
	PasswordChanged      Kind = "password-changed"
	MFAOn                Kind = "mfa-on"
	MFAOff               Kind = "mfa-off"
	RecoveryCodes        Kind = "recovery-codes"
	IdentityLinked       Kind = "identity-linked"
	IdentityUnlinked     Kind = "identity-unlinked"
	KeyCreated           Kind = "key-created"
	KeyRotated           Kind = "key-rotated"
	KeyRevoked           Kind = "key-revoked"
	Role                 Kind = "role"
	Owner                Kind = "owner"
	Removed              Kind = "removed"
	AccountDeletion      Kind = "account-deletion"
	OrganizationDeletion Kind = "organization-deletion"
	DeletionUndone       Kind = "deletion-undone"
	Impersonated         Kind = "impersonated"
	ChannelDisowned      Kind = "channel-disowned"
	// Members stands for emails to a page of an organization's members. Its task queues an email to
	// each member on the page. Its row contains the organization's id instead of an email address.
	Members Kind = "members"
	// Report is about channel incidents, published posts or approvals.
	Report Kind = "report"
)
