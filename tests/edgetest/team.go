package edgetest

import (
	"context"

	"crier/tenancy"
)

func (a accounts) Team(context.Context, tenancy.Principal) ([]tenancy.Member, error) {
	return []tenancy.Member{{
		Person: PersonID, Email: Ada, Name: "Ada", Role: tenancy.RoleAdmin, CreatedAt: Day,
		Notifications: tenancy.DefaultNotifications(),
	}}, a.record("Team")
}

func (a accounts) Invite(
	_ context.Context, _ tenancy.Principal, n tenancy.NewInvitation,
) (tenancy.Invitation, string, error) {
	return tenancy.Invitation{ID: inviteID, ExpiresAt: Day}, NewToken,
		a.record("Invite", n.Email, string(n.Role), n.Send)
}

func (a accounts) Invitations(context.Context, tenancy.Principal) ([]tenancy.Invitation, error) {
	return []tenancy.Invitation{{
		ID: inviteID, Role: tenancy.RoleUser, InvitedBy: Ada, CreatedAt: Day, ExpiresAt: Day,
	}}, a.record("Invitations")
}

func (a accounts) RevokeInvitation(_ context.Context, _ tenancy.Principal, invitation string) error {
	return a.record("RevokeInvitation", invitation)
}

func (a accounts) RemoveMember(
	_ context.Context, _ tenancy.Principal, person string, revokeKeys bool,
) (tenancy.CreatedBy, error) {
	return tenancy.CreatedBy{Keys: []tenancy.APIKey{aKey()}}, a.record("RemoveMember", person, revokeKeys)
}

func (a accounts) SetRole(
	_ context.Context, _ tenancy.Principal, person string, change tenancy.RoleChange,
) (tenancy.CreatedBy, error) {
	if change.Role == tenancy.RoleSuperAdmin {
		if err := prove(change.Proof.Password); err != nil {
			return tenancy.CreatedBy{}, err
		}
	}
	return tenancy.CreatedBy{}, a.record("SetRole", person, string(change.Role))
}
