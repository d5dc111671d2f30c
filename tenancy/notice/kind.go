package notice

// Kind is what a mail is about. It is stored with the mail.
type Kind string

// The kinds of mail.
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
	// Members stands for a page of the members of an organization: its task queues a mail to each
	// of them. The address of its row is the id of the organization.
	Members Kind = "members"
	// Report is about incidents of channels, published posts or approvals.
	Report Kind = "report"
)
