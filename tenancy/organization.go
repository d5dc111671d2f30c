package tenancy

import (
	"strings"
	"time"

	"crier/platform/id"
)

// Organization is a tenant. Row-level security isolates each organization's rows from those of
// other organizations.
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
	// DeletedAt is when the organization's deletion was requested, or nil.
	DeletedAt *time.Time `db:"deleted_at"`
	// CreatedAt is in UTC, like all times in the service.
	CreatedAt time.Time `db:"created_at"`
	// Creator is set only when the organization is created. It is zero if the operator creates the
	// organization.
	Creator PersonID `db:"-"`
}

// OrganizationChange holds the settings that a request changes. A nil field leaves its setting
// unchanged.
type OrganizationChange struct {
	Name, Description *string
	Timezone          *ZoneRequest
}

// OrganizationOf combines an organization with one person's membership in it.
type OrganizationOf struct {
	Organization
	Role     Role
	Disabled bool
}

// Invitation lets a person join an organization.
type Invitation struct {
	ID InvitationID `db:"id"`
	// Email is the address of the only person who can accept the invitation. It is "" if anybody
	// who has the link can accept it.
	Email string `db:"email"`
	Role  Role   `db:"role"`
	// InvitedBy is the inviter's email address, or "" if that account is gone.
	InvitedBy string    `db:"invited_by"`
	CreatedAt time.Time `db:"created_at"`
	ExpiresAt time.Time `db:"expires_at"`
}

// CreatedBy lists the items that a member created as an administrator. The member may still know
// the secrets of these items.
type CreatedBy struct {
	// Keys and Webhooks keep working unless they were revoked when the member lost administrator
	// rights.
	Keys     []APIKey
	Webhooks []CreatedWebhook
	// Invitations no longer work.
	Invitations []Invitation
	// Apps lists the platform families whose current credentials were entered by the member. These
	// credentials are kept.
	Apps []string
	// Reviews lists pending approval requests that the member made or that were emailed to the
	// member. Their emailed links stopped working when the member left.
	Reviews []EndedReview
}

// IsEmpty reports whether all lists are empty.
func (m CreatedBy) IsEmpty() bool {
	return len(m.Keys)+len(m.Webhooks)+len(m.Invitations)+len(m.Apps)+len(m.Reviews) == 0
}

// EndedReview identifies an approval request and its post. The request's emailed link has stopped
// working.
type EndedReview struct {
	ID   string `db:"id"`
	Post string `db:"post_id"`
}

// Maker is a person who created items in an organization and is now leaving it, has left it, or is
// losing administrator rights.
type Maker struct {
	Person PersonID
	// Revoke means that the person's API keys and webhooks must be deleted.
	Revoke bool
	// Leaves means that the person is leaving or has left the organization. Otherwise, the person
	// remains a member with RoleUser.
	Leaves bool
}

// CreatedWebhook is a webhook that a member created, or whose URL or secret the member chose.
type CreatedWebhook struct {
	ID   string `db:"id"`
	Name string `db:"name"`
	// URL is where the webhook delivers.
	URL string `db:"url"`
}

// RoleChange is the input for changing a member's role.
type RoleChange struct {
	Role Role
	// Proof is required if Role is RoleSuperAdmin, because the member then becomes the owner of the
	// organization.
	Proof Proof
	// Revoke deletes the API keys and webhooks that the member created. It is valid only for
	// RoleUser.
	Revoke bool
}

// Offer describes an invitation for a person who can accept it.
type Offer struct {
	// Organization is the organization's name.
	Organization string
	Role         Role
}

// NewInvitation is the input for creating an invitation.
type NewInvitation struct {
	// Email is required if Send is set. If Email is set, only a person who has verified that
	// address can join.
	Email string
	// Role is RoleAdmin or RoleUser.
	Role Role
	Send bool
}

// FormatMembership returns the id of a membership. The id consists of the organization's id and the
// person's id, joined by an underscore.
func FormatMembership(org OrgID, person PersonID) string { return org.String() + "_" + person.String() }

// ParseMembership parses an id that FormatMembership returned. ok is false for any other text.
func ParseMembership(text string) (org OrgID, person PersonID, ok bool) {
	first, second, found := strings.Cut(text, "_")
	org, known := id.Parse[OrgTag](first)
	person, valid := id.Parse[PersonTag](second)
	return org, person, found && known && valid
}

// Clean validates and normalizes the settings. It returns Invalid if a setting is invalid or no
// setting is given.
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

// Clean validates and normalizes the input. It returns Invalid if a field is invalid.
func (n *NewInvitation) Clean(op string) error {
	var in Inputs
	if n.Email != "" {
		n.Email = in.Email("email", n.Email)
	}
	in.Check(!n.Send || n.Email != "", "email", "is required with sendEmail")
	in.Check(n.Role == RoleAdmin || n.Role == RoleUser, "role", "must be USER or ADMIN")
	return in.Err(op)
}
