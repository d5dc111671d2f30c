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
	// DeletedAt is when the deletion was requested; nil for an organization that stays.
	DeletedAt *time.Time `db:"deleted_at"`
	// CreatedAt is in UTC, as all times of the service.
	CreatedAt time.Time `db:"created_at"`
	// Creator is set only on creation. It is zero for an organization created by the operator.
	Creator PersonID `db:"-"`
}

// OrganizationChange are the settings that a request sets; nil leaves one as it is.
type OrganizationChange struct {
	Name, Description *string
	Timezone          *ZoneRequest
}

// OrganizationOf is an organization with what its member may do in it.
type OrganizationOf struct {
	Organization
	Role     Role
	Disabled bool
}

// Invitation lets a person join an organization.
type Invitation struct {
	ID InvitationID `db:"id"`
	// Email is the only address that can use it, "" for anybody with the link.
	Email string `db:"email"`
	Role  Role   `db:"role"`
	// InvitedBy is the address of the inviter, "" when that account is gone.
	InvitedBy string    `db:"invited_by"`
	CreatedAt time.Time `db:"created_at"`
	ExpiresAt time.Time `db:"expires_at"`
}

// MadeBy is what a member made as an administrator and may know the secrets of.
type MadeBy struct {
	// Keys and Webhooks keep working unless they were revoked with the member.
	Keys     []APIKey
	Webhooks []MadeWebhook
	// Invitations have ended.
	Invitations []Invitation
	// Apps are the families of platforms whose current credentials the member entered. They are
	// kept.
	Apps []string
	// Reviews are pending requests for approval whose mailed link has ended, because the member
	// left: those that the member made, and those mailed to the member.
	Reviews []EndedReview
}

// IsEmpty reports whether nothing that the member made is left or has just ended.
func (m MadeBy) IsEmpty() bool {
	return len(m.Keys)+len(m.Webhooks)+len(m.Invitations)+len(m.Apps)+len(m.Reviews) == 0
}

// EndedReview is a request for approval whose mailed link has ended, and its post.
type EndedReview struct {
	ID   string `db:"id"`
	Post string `db:"post_id"`
}

// Maker is a person who loses the rights of an administrator, or leaves or has left the
// organization.
type Maker struct {
	Person PersonID
	// Revoke means that the webhooks are deleted.
	Revoke bool
	// Leaves means that the person leaves or has left, and does not remain as a USER.
	Leaves bool
}

// MadeWebhook is a webhook that a member made, or whose URL or secret the member chose.
type MadeWebhook struct {
	ID   string `db:"id"`
	Name string `db:"name"`
	// URL is the address it delivers to.
	URL string `db:"url"`
}

// RoleChange is the input of a change of a member's role.
type RoleChange struct {
	Role Role
	// Proof is needed to hand the organization over.
	Proof Proof
	// Revoke deletes the API keys and webhooks that the member made. It is valid only for RoleUser.
	Revoke bool
}

// Offer is what an invitation offers to a person who can use it.
type Offer struct {
	// Organization is the name of the organization.
	Organization string
	Role         Role
}

// NewInvitation is the input of an invitation.
type NewInvitation struct {
	// Email is required with Send. With it only the person who has that address, verified, can
	// join.
	Email string
	// Role is RoleAdmin or RoleUser.
	Role Role
	Send bool
}

// FormatMembership returns the id of a membership: the organization and the person.
func FormatMembership(org OrgID, person PersonID) string { return org.String() + "_" + person.String() }

// ParseMembership parses what FormatMembership returned. It returns false for every other text.
func ParseMembership(text string) (org OrgID, person PersonID, ok bool) {
	first, second, found := strings.Cut(text, "_")
	org, known := id.Parse[OrgTag](first)
	person, valid := id.Parse[PersonTag](second)
	return org, person, found && known && valid
}

// Clean checks and cleans the settings. It returns Invalid when one breaks a rule, or when there is
// none.
func (c *OrganizationChange) Clean(op string) error {
	var in Inputs
	in.Check(c.Name != nil || c.Description != nil || c.Timezone != nil, "body",
		"must hold name, description or timezone")
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

// Clean checks and cleans the input. It returns Invalid when it breaks a rule.
func (n *NewInvitation) Clean(op string) error {
	var in Inputs
	if n.Email != "" {
		n.Email = in.Email("email", n.Email)
	}
	in.Check(!n.Send || n.Email != "", "email", "is required with sendEmail")
	in.Check(n.Role == RoleAdmin || n.Role == RoleUser, "role", "must be USER or ADMIN")
	return in.Err(op)
}
