package tenancy

import (
	"strings"
	"time"

	"crier/platform/text"
)

// Action is what was done, in the audit log.
type Action string

// The actions of the audit log of an organization.
const (
	ActionOrganizationCreated  Action = "organization.created"
	ActionOrganizationChanged  Action = "organization.changed"
	ActionOrganizationDeleted  Action = "organization.deletion-requested"
	ActionOrganizationRestored Action = "organization.restored"
	ActionOrganizationOwner    Action = "organization.owner-changed"
	ActionSuspended            Action = "organization.suspended"
	ActionResumed              Action = "organization.resumed"
	ActionMFAPolicy            Action = "organization.mfa-policy-changed"
	ActionInvited              Action = "invitation.created"
	ActionInvitationRevoked    Action = "invitation.revoked"
	ActionJoined               Action = "member.joined"
	ActionRemoved              Action = "member.removed"
	ActionLeft                 Action = "member.left"
	ActionRole                 Action = "member.role-changed"
	ActionKeyCreated           Action = "key.created"
	ActionKeyRenamed           Action = "key.renamed"
	ActionKeyRotated           Action = "key.rotated"
	ActionKeyRevoked           Action = "key.revoked"
	ActionChannelConnected     Action = "channel.connected"
	ActionChannelDeleted       Action = "channel.deleted"
	ActionAppSet               Action = "provider-credentials.set"
	ActionAppDeleted           Action = "provider-credentials.deleted"
	ActionPaused               Action = "publishing.paused"
	ActionUnpaused             Action = "publishing.resumed"
	ActionWebhookCreated       Action = "webhook.created"
	ActionWebhookChanged       Action = "webhook.changed"
	ActionWebhookDeleted       Action = "webhook.deleted"
	ActionWebhookSecret        Action = "webhook.secret-rotated"
	ActionWebhookDisabled      Action = "webhook.disabled"
	ActionApprovalRequested    Action = "approval.requested"
	ActionApproved             Action = "approval.approved"
	ActionRejected             Action = "approval.rejected"
	ActionApprovalWithdrawn    Action = "approval.withdrawn"
	ActionApprovalOverridden   Action = "approval.overridden"
	ActionImpersonated         Action = "impersonation.started"
	ActionImpersonationEnded   Action = "impersonation.ended"
)

const (
	// ActionChannelDisowned means that the person who granted access to an account disconnected its
	// channel.
	ActionChannelDisowned Action = "channel.disowned"
	// ActionImpersonatedRequest is a request to change something, made by an instance administrator
	// while impersonating the person. The subject has the request's method, the id of its operation
	// in the API document, and its path.
	ActionImpersonatedRequest Action = "impersonation.request"
)

// The actions of a person. They are recorded in the audit log of every organization that the person
// is a member of.
const (
	ActionSignedIn         Action = "person.signed-in"
	ActionSignedOut        Action = "person.sessions-ended"
	ActionPasswordChanged  Action = "person.password-changed"
	ActionPasswordReset    Action = "person.password-reset"
	ActionAddressChanged   Action = "person.address-changed"
	ActionMFAOn            Action = "person.mfa-enabled"
	ActionMFAOff           Action = "person.mfa-disabled"
	ActionRecoveryUsed     Action = "person.recovery-code-used"
	ActionRecoveryCodes    Action = "person.recovery-codes-replaced"
	ActionIdentityLinked   Action = "person.identity-linked"
	ActionIdentityUnlinked Action = "person.identity-unlinked"
	ActionAccountDeleted   Action = "person.deletion-requested"
	// ActionProfileChanged and ActionNotificationsChanged are recorded only when an instance
	// administrator makes the change while impersonating the person, in the organization of that
	// membership.
	ActionProfileChanged       Action = "person.profile-changed"
	ActionNotificationsChanged Action = "person.notifications-changed"
	ActionAccountRestored      Action = "person.restored"
)

// The actions of the operator, in the events of the instance.
const (
	ActionPersonCreated      Action = "instance.person-created"
	ActionPasswordSet        Action = "instance.password-reset"
	ActionMFAReset           Action = "instance.mfa-reset"
	ActionOrgSuspended       Action = "instance.organization-suspended"
	ActionOrgResumed         Action = "instance.organization-resumed"
	ActionOrgPurged          Action = "instance.organization-purged"
	ActionPersonPurged       Action = "instance.person-purged"
	ActionEnterpriseCreated  Action = "instance.enterprise-user-created"
	ActionInstanceAdmin      Action = "instance.administrator-made"
	ActionInstanceAdminEnded Action = "instance.administrator-removed"
)

// AuditEvent is an entry of the audit log of an organization.
type AuditEvent struct {
	ID AuditID   `db:"id"`
	At time.Time `db:"at"`
	// Person is zero for the operator and for the service itself.
	Person PersonID `db:"person_id"`
	// Actor is the principal's name at the time: an address, "API key" with the key's first
	// characters, or "agent for address". Example: API key crier_Ab3x
	Actor string `db:"actor"`
	Via   Via    `db:"via"`
	Key   KeyID  `db:"key_id"`
	// Behind is the instance administrator who impersonated the person, or "" if the person acted.
	Behind string `db:"behind"`
	Action Action `db:"action"`
	// Subject is what the action was done to, in words for people.
	Subject string `db:"subject"`
	Address string `db:"address"`
}

// AuditQuery selects entries of the audit log. A zero From, To, Actor or Action matches every
// entry.
type AuditQuery struct {
	// From is inclusive and To is exclusive.
	From, To time.Time
	// Actor is a person's id, or a substring of AuditEvent.Actor, ignoring case.
	Actor  string
	Action string
	// Page counts from 0.
	Page int
	// Limit is from 1 to MaxAuditPage.
	Limit int
}

// MaxAuditPage is the maximum number of entries that a query returns.
const MaxAuditPage = 1000

// InstanceEvent is an entry about what the operator did, or what was purged.
type InstanceEvent struct {
	At      time.Time `db:"at"`
	Actor   string    `db:"actor"`
	Action  Action    `db:"action"`
	Subject string    `db:"subject"`
}

// Event returns an entry for what a principal did.
func (p Principal) Event(action Action, subject string) AuditEvent {
	return AuditEvent{
		Person: p.Person, Actor: p.actor(), Via: p.Via, Key: p.Key, Behind: p.BehindName, Action: action,
		Subject: CutSubject(subject), Address: p.From.Client,
	}
}

// The maximum lengths of an entry's texts, in characters. The table has CHECK constraints with the
// same lengths.
const (
	maxActor   = 320
	maxSubject = 320
)

// CutSubject returns a subject that an entry can hold: valid UTF-8, truncated to the maximum
// length.
func CutSubject(subject string) string {
	return text.Cut(strings.ToValidUTF8(subject, "\uFFFD"), maxSubject)
}
