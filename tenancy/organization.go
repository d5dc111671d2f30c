package tenancy

import (
	"strings"
	"time"

	"crier/platform/id"
)

// Organization is a tenant. Row-level security separates the rows of organizations.
type Organization struct {
	ID          OrgID  `db:"id"`
	Name        string `db:"name"`
	Description string `db:"description"`
	// Timezone is a name that LoadZone accepts: an IANA name or a fixed offset.
	Timezone string `db:"timezone"`
	// RequiresMFA means that members without a second factor have no access.
	RequiresMFA bool `db:"mfa_required"`
	// SuspendedAt is nil unless the operator has suspended the organization.
	SuspendedAt *time.Time `db:"suspended_at"`
	// DeletedAt is when the deletion of the organization was requested, or nil.
	DeletedAt *time.Time `db:"deleted_at"`
	// CreatedAt is in UTC, like all times of the service.
	CreatedAt time.Time `db:"created_at"`
	// Creator is set only on creation. It is zero for an organization created by the operator.
	Creator PersonID `db:"-"`
}

// OrganizationChange holds the settings that a request changes. A nil field leaves a setting
// unchanged.
type OrganizationChange struct {
	Name, Description *string
	Timezone          *ZoneRequest
}

// OrganizationOf is an organization with the role that one member has in it.
type OrganizationOf struct {
	Organization
	Role     Role
	Disabled bool
}

// Invitation lets a person join an organization.
type Invitation struct {
	ID InvitationID `db:"id"`
	// Email is the only address that can use the invitation, or "" if anybody with the link can.
	Email string `db:"email"`
	Role  Role   `db:"role"`
	// InvitedBy is the address of the inviter, or "" if that account is gone.
	InvitedBy string    `db:"invited_by"`
	CreatedAt time.Time `db:"created_at"`
	ExpiresAt time.Time `db:"expires_at"`
}

// MadeBy lists what a member created as an administrator, and may know the secrets of.
type MadeBy struct {
	// Keys and Webhooks keep working unless they were revoked with the member.
	Keys     []APIKey
	Webhooks []MadeWebhook
	// Invitations no longer work.
	Invitations []Invitation
	// Apps are the families of platforms whose current credentials the member entered. They are
	// kept.
	Apps []string
	// Reviews are pending approval requests whose mailed link stopped working because the member
	// left: requests made by the member, and requests mailed to the member.
	Reviews []EndedReview
}

// IsEmpty reports whether the member made nothing that still exists or has just ended.
func (m MadeBy) IsEmpty() bool {
	return len(m.Keys)+len(m.Webhooks)+len(m.Invitations)+len(m.Apps)+len(m.Reviews) == 0
}

// EndedReview is an approval request whose mailed link has stopped working, and its post.
type EndedReview struct {
	ID   string `db:"id"`
	Post string `db:"post_id"`
}

// Maker is a person who is losing the rights of an administrator, or who is leaving or has left the
// organization.
type Maker struct {
	Person PersonID
	// Revoke means that the person's API keys and webhooks are deleted.
	Revoke bool
	// Leaves means that the person is leaving or has left, instead of staying as a USER.
	Leaves bool
}

// MadeWebhook is a webhook that a member made, or whose URL or secret the member chose.
type MadeWebhook struct {
	ID   string `db:"id"`
	Name string `db:"name"`
	// URL is the address that the webhook delivers to.
	URL string `db:"url"`
}

// RoleChange is the input for changing a member's role.
type RoleChange struct {
	Role Role
	// Proof is required to hand the organization over.
	Proof Proof
	// Revoke deletes the API keys and webhooks that the member made. It is valid only for RoleUser.
	Revoke bool
}

// Offer is what an invitation offers to a person who can accept it.
type Offer struct {
	// Organization is the name of the organization.
	Organization string
	Role         Role
}

// NewInvitation is the input for creating an invitation.
type NewInvitation struct {
	// Email is required if Send is set. If Email is set, only the person with that address,
	// verified, can join.
	Email string
	// Role is RoleAdmin or RoleUser.
	Role Role
	Send bool
}

// FormatMembership returns the id of a membership: the ids of the organization and the person,
// joined by an underscore.
func FormatMembership(org OrgID, person PersonID) string { return org.String() + "_" + person.String() }

// ParseMembership parses a result of FormatMembership. It returns false for any other text.
func ParseMembership(text string) (org OrgID, person PersonID, ok bool) {
	first, second, found := strings.Cut(text, "_")
	org, known := id.Parse[OrgTag](first)
	person, valid := id.Parse[PersonTag](second)
	return org, person, found && known && valid
}

// Clean checks and normalizes the settings. It returns Invalid if a setting breaks a rule or if
// there are no settings.
func (c *OrganizationChange) Clean(op string) error {
	var in Inputs
	in.Check(c.Name != nil || c.Description != nil || c.Timezone != nil, "body",
		"must contain name, description or timezone")
	if c.Name != nil {
		clean := in.Name("name", *c.Name, 3, 128)
		c.Name = &clean
	}
	if c.Description != nil {
		clean := in.Text("description", *c.Description, 500)
		c.Description = &clean
	}
	if c.Timezone != nil {
		in.Check(c.Timezone.IsOffset || c.Timezone.Name != "", "timezone",
			"must be a time zone such as Europe/Berlin")
	}
	return in.Err(op)
}

// Clean checks and normalizes the input. It returns Invalid if the input breaks a rule.
func (n *NewInvitation) Clean(op string) error {
	var in Inputs
	if n.Email != "" {
		n.Email = in.Email("email", n.Email)
	}
	in.Check(!n.Send || n.Email != "", "email", "is required with sendEmail")
	in.Check(n.Role == RoleAdmin || n.Role == RoleUser, "role", "must be USER or ADMIN")
	return in.Err(op)
}
