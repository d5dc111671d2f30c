package tenancy

import (
	"strings"
	"time"

	"crier/platform/text"
)

// Action is the kind of action that an audit log entry records. Example: key.rotated
type Action string

// The actions in an organization's audit log.
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
	ActionAgentApproved        Action = "agent.approved"
	ActionAgentRevoked         Action = "agent.revoked"
	ActionOAuthAppCreated      Action = "oauth-app.created"
	ActionOAuthAppChanged      Action = "oauth-app.changed"
	ActionOAuthAppDeleted      Action = "oauth-app.deleted"
	ActionOAuthAppSecret       Action = "oauth-app.secret-rotated"
	ActionImpersonated         Action = "impersonation.started"
	ActionImpersonationEnded   Action = "impersonation.ended"
)

const (
	// ActionChannelDisowned is recorded when a channel is disconnected by the person who granted
	// access to the channel's account.
	ActionChannelDisowned Action = "channel.disowned"
	// ActionImpersonatedRequest is recorded when an instance administrator makes a mutating request
	// while impersonating a person. The subject consists of the request's method, its operation id
	// in the API document, and its path.
	ActionImpersonatedRequest Action = "impersonation.request"
)

// Actions that concern a person's account. They are recorded in the audit log of every organization
// that the person belongs to, except where the membership is disabled.
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
	// ActionProfileChanged and ActionNotificationsChanged are recorded only if an instance
	// administrator makes the change while impersonating the person. The entry is added to the
	// audit log of the organization whose membership is being impersonated.
	ActionProfileChanged       Action = "person.profile-changed"
	ActionNotificationsChanged Action = "person.notifications-changed"
	ActionAccountRestored      Action = "person.restored"
)

// Actions taken by the operator or by the service itself. They are recorded as instance events.
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

// AuditEvent is an entry in an organization's audit log.
type AuditEvent struct {
	ID AuditID   `db:"id"`
	At time.Time `db:"at"`
	// Person is zero if the operator or the service itself took the action.
	Person PersonID `db:"person_id"`
	// Actor is the principal's name at the time of the action. It is an email address, "API key"
	// followed by the first characters of the key, or an agent's name followed by "for" and an
	// email address. Example: API key crier_Ab3x
	Actor string `db:"actor"`
	Via   Via    `db:"via"`
	Key   KeyID  `db:"key_id"`
	// Impersonator is the email address of the instance administrator who was impersonating the
	// person, or "" if nobody was.
	Impersonator string `db:"behind"`
	Action       Action `db:"action"`
	// Subject is a human-readable description of the action's target.
	Subject string `db:"subject"`
	Address string `db:"address"`
}

// AuditQuery selects audit log entries. A zero From, To, Actor or Action matches every entry.
type AuditQuery struct {
	// From is inclusive and To is exclusive.
	From, To time.Time
	// Actor is either a person's id or a case-insensitive substring of AuditEvent.Actor.
	Actor  string
	Action string
	// Page counts from 0.
	Page int
	// Limit is from 1 to MaxAuditPage.
	Limit int
}

// MaxAuditPage is the maximum number of entries that a query returns.
const MaxAuditPage = 1000

// InstanceEvent records an action taken by the operator or by the service itself, such as a purge.
type InstanceEvent struct {
	At      time.Time `db:"at"`
	Actor   string    `db:"actor"`
	Action  Action    `db:"action"`
	Subject string    `db:"subject"`
}

// Event returns an audit entry for an action that the principal took.
func (p Principal) Event(action Action, subject string) AuditEvent {
	return AuditEvent{
		Person: p.Person, Actor: p.actor(), Via: p.Via, Key: p.Key, Impersonator: p.ImpersonatorName, Action: action,
		Subject: CutSubject(subject), Address: p.From.Client,
	}
}

// The maximum lengths of an entry's actor and subject, in characters. The table's CHECK constraints
// set the same limits.
const (
	maxActor   = 320
	maxSubject = 320
)

// CutSubject replaces invalid UTF-8 in subject and truncates it to the length that an entry can
// hold.
func CutSubject(subject string) string {
	return text.Cut(strings.ToValidUTF8(subject, "\uFFFD"), maxSubject)
}
