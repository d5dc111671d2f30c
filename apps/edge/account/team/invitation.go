package team

import (
	"context"

	"crier/apps/edge/admission"
	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/tenancy"
)

// AddTeamMemberDto is the body of POST /settings/team.
type AddTeamMemberDto struct {
	Email     string `json:"email,omitempty" maxLength:"254" doc:"Email address of the person who can use the invitation; required if sendEmail is true."`
	Role      string `json:"role" enum:"USER,ADMIN"`
	SendEmail bool   `json:"sendEmail"`
}

type inviteInput struct{ Body AddTeamMemberDto }

// InvitationResponse is a new invitation with its link.
type InvitationResponse struct {
	ID        string `json:"id"`
	URL       string `json:"url" doc:"Invitation link. It works once and is returned only in this response."`
	ExpiresAt string `json:"expiresAt" format:"date-time"`
}

type inviteOutput struct{ Body InvitationResponse }

// Invite returns the endpoint that invites a person to the organization.
func (a *API) Invite() route.Endpoint {
	return route.JSON(route.Described(route.Created("Team", "Invite a person to the organization", 400, 402, 409, 413),
		"A new invitation replaces an open invitation for the same address, and the replaced invitation's links stop "+
			"working. 409: the address belongs to a member, or the organization has too many members or open "+
			"invitations."),
		a.invite)
}

func (a *API) invite(ctx context.Context, in *inviteInput) (*inviteOutput, error) {
	n := tenancy.NewInvitation{Role: tenancy.Role(in.Body.Role), Send: in.Body.SendEmail}
	var faults tenancy.Inputs
	if in.Body.Email != "" {
		n.Email = faults.Email("email", in.Body.Email)
	}
	faults.Check(in.Body.Email != "" || !n.Send, "email", "is required with sendEmail")
	if err := faults.Err("team.invite"); err != nil {
		return nil, err
	}
	if n.Send {
		senders, err := a.deps.Gate.Senders(ctx)
		if err != nil {
			return nil, err
		}
		if err := a.deps.Gate.AdmitSenders(ctx, senders); err != nil {
			return nil, err
		}
		if err := a.deps.Gate.AdmitAddress(ctx, a.deps.Gate.Buckets.InviteAddress, n.Email); err != nil {
			return nil, admission.LimitedMail(err, "This address has received too many emails. Wait before you send "+
				"another, or create an invitation without sendEmail and send its link yourself.")
		}
	}
	invitation, token, err := a.deps.Accounts.Invite(ctx, request.Principal(ctx), n)
	if err != nil {
		return nil, err
	}
	return &inviteOutput{Body: InvitationResponse{
		ID: invitation.ID.String(), URL: record.InvitationLink(a.deps.FrontendURL, token),
		ExpiresAt: record.FormatTime(invitation.ExpiresAt),
	}}, nil
}

// InvitationRecord is an invitation that has not been used yet.
type InvitationRecord struct {
	ID        string  `json:"id"`
	Email     *string `json:"email" nullable:"true" doc:"Email address of the person who can use the invitation; null if anyone with the link can."`
	Role      string  `json:"role" enum:"USER,ADMIN"`
	InvitedBy *string `json:"invitedBy" nullable:"true" doc:"Email address of the inviter; null if that account no longer exists."`
	CreatedAt string  `json:"createdAt" format:"date-time"`
	ExpiresAt string  `json:"expiresAt" format:"date-time"`
}

type invitationsOutput struct{ Body []InvitationRecord }

// Invitations returns the endpoint that lists the organization's open invitations.
func (a *API) Invitations() route.Endpoint {
	return route.JSON(route.Describe("Team", "List the organization's open invitations"), a.invitations)
}

func (a *API) invitations(ctx context.Context, _ *struct{}) (*invitationsOutput, error) {
	list, err := a.deps.Accounts.Invitations(ctx, request.Principal(ctx))
	if err != nil {
		return nil, err
	}
	out := &invitationsOutput{Body: make([]InvitationRecord, 0, len(list))}
	for _, i := range list {
		out.Body = append(out.Body, InvitationRecord{
			ID: i.ID.String(), Email: record.OptionalText(i.Email), Role: string(i.Role),
			InvitedBy: record.OptionalText(i.InvitedBy),
			CreatedAt: record.FormatTime(i.CreatedAt), ExpiresAt: record.FormatTime(i.ExpiresAt),
		})
	}
	return out, nil
}

// RevokeInvitation returns the endpoint that revokes an invitation.
func (a *API) RevokeInvitation() route.Endpoint {
	return route.JSON(route.Describe("Team", "Revoke an invitation", 404), a.revokeInvitation)
}

func (a *API) revokeInvitation(ctx context.Context, in *record.PathID) (*record.IDOutput, error) {
	if err := a.deps.Accounts.RevokeInvitation(ctx, request.Principal(ctx), in.ID); err != nil {
		return nil, err
	}
	return &record.IDOutput{Body: record.IDResponse(*in)}, nil
}
