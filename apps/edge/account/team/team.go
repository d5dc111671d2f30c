// Package team provides the endpoints for an organization's members.
package team

import (
	"context"

	"crier/apps/edge/admission"
	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/tenancy"
)

// Deps holds the dependencies of an API.
type Deps struct {
	// FrontendURL is the dashboard's URL, without a trailing slash.
	FrontendURL string
	Accounts    Team
	Gate        *admission.Gate
}

// API provides this package's endpoints, one per exported method. It is safe for concurrent use.
type API struct{ deps Deps }

// New returns an API that uses d. It does not check that all fields of d are set.
func New(d Deps) *API { return &API{deps: d} }

// Team manages an organization's members and invitations.
type Team interface {
	// Team returns the members, oldest membership first.
	Team(ctx context.Context, p tenancy.Principal) ([]tenancy.Member, error)
	// Invite creates an invitation and returns it along with its token, which the inviter can send
	// to the invited person.
	Invite(ctx context.Context, p tenancy.Principal, n tenancy.NewInvitation) (tenancy.Invitation, string, error)
	Invitations(ctx context.Context, p tenancy.Principal) ([]tenancy.Invitation, error)
	RevokeInvitation(ctx context.Context, p tenancy.Principal, invitation string) error
	// RemoveMember removes a member, or lets the caller leave, and returns what the member created.
	// The member's keys and webhooks keep working unless revoke is set. RemoveMember returns
	// Forbidden if the member outranks the caller or is the owner. It also returns Forbidden if
	// revoke is set and the caller may not revoke keys.
	RemoveMember(ctx context.Context, p tenancy.Principal, person string, revoke bool) (tenancy.CreatedBy, error)
	// SetRole changes a member's role. If an administrator becomes a USER, SetRole returns what
	// that member created.
	//
	// With RoleSuperAdmin, the member becomes the owner and the caller becomes an administrator.
	// Only the owner may do this, and the change must include a proof.
	SetRole(ctx context.Context, p tenancy.Principal, person string, change tenancy.RoleChange) (tenancy.CreatedBy, error)
}

// TeamRecord lists an organization's members.
type TeamRecord struct {
	Users []TeamMember `json:"users"`
}

// TeamMember is a member of an organization.
type TeamMember struct {
	Role     string     `json:"role" enum:"USER,ADMIN,SUPERADMIN"`
	Disabled bool       `json:"disabled"`
	JoinedAt string     `json:"joinedAt" format:"date-time"`
	User     TeamPerson `json:"user"`
}

// TeamPerson is the person in a TeamMember.
type TeamPerson struct {
	ID      string `json:"id"`
	Email   string `json:"email"`
	Name    string `json:"name"`
	Picture string `json:"picture" doc:"Public URL; empty if the person has no picture."`
	record.EmailSwitches
}

type teamOutput struct{ Body TeamRecord }

// Team returns the endpoint that lists the organization's members.
func (a *API) Team() route.Endpoint {
	return route.JSON(route.Describe("Team", "List the organization's members"), a.team)
}

func (a *API) team(ctx context.Context, _ *struct{}) (*teamOutput, error) {
	list, err := a.deps.Accounts.Team(ctx, request.Principal(ctx))
	if err != nil {
		return nil, err
	}
	out := &teamOutput{Body: TeamRecord{Users: make([]TeamMember, 0, len(list))}}
	for _, m := range list {
		out.Body.Users = append(out.Body.Users, TeamMember{
			Role: string(m.Role), Disabled: m.Disabled, JoinedAt: record.FormatTime(m.CreatedAt),
			User: TeamPerson{
				ID: m.Person.String(), Email: m.Email, Name: m.Name, Picture: m.Picture,
				EmailSwitches: record.NewEmailSwitches(m.Notifications),
			},
		})
	}
	return out, nil
}

// RemoveMember returns the endpoint that removes a member, or lets the caller leave.
func (a *API) RemoveMember() route.Endpoint {
	return route.JSON(route.Described(route.Describe("Team", "Remove a member, or leave the organization", 400, 404, 409),
		"If you pass your own id, you leave the organization; the owner cannot leave. Only administrators can remove other "+
			"members, and nobody can remove the owner. A request that is not allowed returns 403. The API keys and "+
			"webhooks that the member created belong to the organization. The response lists them, and "+
			"revokeKeys=true deletes them. The member's pending invitations are canceled, and emailed review links "+
			"that the member could still use stop working. You can also remove a former member as long as something "+
			"that they created remains."),
		a.removeMember)
}

type removeInput struct {
	ID         string `path:"id"`
	RevokeKeys bool   `query:"revokeKeys" doc:"Whether to delete the API keys and webhooks that the response lists."`
}

// RemovedMember is the response to removing a member.
type RemovedMember struct {
	ID string `json:"id"`
	CreatedByMember
}

// CreatedByMember lists what a member created before being removed or losing the administrator
// role. The lists are empty if a member who is not an administrator leaves the organization.
type CreatedByMember struct {
	Keys        []RemovedKey        `json:"keys" doc:"API keys that the member created and may still know."`
	Webhooks    []RemovedWebhook    `json:"webhooks" doc:"Webhooks that the member created or whose URL or secret the member set."`
	Invitations []RemovedInvitation `json:"invitations" doc:"The member's open invitations, which are no longer valid."`
	Credentials []string            `json:"providerCredentials" doc:"Platform families whose application credentials the member entered and may still know. The credentials are kept; so replace the secret on the platform."`
	Approvals   []EndedApproval     `json:"approvals" doc:"Pending approval requests whose emailed review link no longer works, because the former member could have used the link. These are the member's own requests and requests that were emailed to the member. At most 100 requests are listed. Other members can still answer these requests or pass on their own links."`
}

// EndedApproval is an approval request whose emailed link stopped working because the member's
// membership ended.
type EndedApproval struct {
	ID     string `json:"id"`
	PostID string `json:"postId"`
}

// RemovedKey is an API key that the member created.
type RemovedKey struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Prefix  string `json:"prefix" doc:"First characters of the key, to identify it."`
	Revoked bool   `json:"revoked"`
}

// RemovedWebhook is a webhook that the member created, or whose URL or secret the member set.
type RemovedWebhook struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	URL     string `json:"url"`
	Deleted bool   `json:"deleted"`
}

// RemovedInvitation is an unused invitation that the member sent. It no longer works.
type RemovedInvitation struct {
	ID    string  `json:"id"`
	Email *string `json:"email" nullable:"true" doc:"Email address of the person who could use the invitation; null if anyone with the link could."`
	Role  string  `json:"role" enum:"USER,ADMIN"`
}

// newMadeByMember converts what a member created to a response. The lists stay empty unless the
// principal manages the organization.
func newMadeByMember(p tenancy.Principal, made tenancy.CreatedBy, revoked bool) CreatedByMember {
	out := CreatedByMember{
		Keys: []RemovedKey{}, Webhooks: []RemovedWebhook{}, Invitations: []RemovedInvitation{},
		Credentials: []string{}, Approvals: []EndedApproval{},
	}
	if !p.Role.Manages() {
		return out
	}
	for _, k := range made.Keys {
		out.Keys = append(out.Keys, RemovedKey{ID: k.ID.String(), Name: k.Name, Prefix: record.Mask(k.Prefix), Revoked: revoked})
	}
	for _, w := range made.Webhooks {
		out.Webhooks = append(out.Webhooks, RemovedWebhook{ID: w.ID, Name: w.Name, URL: w.URL, Deleted: revoked})
	}
	for _, i := range made.Invitations {
		out.Invitations = append(out.Invitations, RemovedInvitation{
			ID: i.ID.String(), Email: record.OptionalText(i.Email), Role: string(i.Role),
		})
	}
	out.Credentials = append(out.Credentials, made.Apps...)
	for _, r := range made.Reviews {
		out.Approvals = append(out.Approvals, EndedApproval{ID: r.ID, PostID: r.Post})
	}
	return out
}

type removeOutput struct{ Body RemovedMember }

func (a *API) removeMember(ctx context.Context, in *removeInput) (*removeOutput, error) {
	p := request.Principal(ctx)
	made, err := a.deps.Accounts.RemoveMember(ctx, p, in.ID, in.RevokeKeys)
	if err != nil {
		return nil, err
	}
	return &removeOutput{Body: RemovedMember{ID: in.ID, CreatedByMember: newMadeByMember(p, made, in.RevokeKeys)}}, nil
}

// RoleRequest is the body of PUT /settings/team/{id}/role.
type RoleRequest struct {
	Role       string `json:"role" enum:"USER,ADMIN,SUPERADMIN" doc:"SUPERADMIN transfers the ownership."`
	RevokeKeys bool   `json:"revokeKeys,omitempty" doc:"Whether to delete the API keys and webhooks that the response lists; only with the role USER."`
	record.ProofRequest
}

type roleInput struct {
	ID   string `path:"id"`
	Body RoleRequest
}

// RoleResponse is the response to PUT /settings/team/{id}/role.
type RoleResponse struct {
	ID   string `json:"id"`
	Role string `json:"role"`
	CreatedByMember
}

type roleOutput struct{ Body RoleResponse }

// SetRole returns the endpoint that changes a member's role.
func (a *API) SetRole() route.Endpoint {
	return route.JSON(route.Described(route.Describe("Team", "Change a member's role", 400, 404, 409, 413),
		"SUPERADMIN transfers the ownership to the member and makes you an administrator. Only the owner can do "+
			"this, with their password. If an administrator becomes a USER, their open invitations end. The response "+
			"lists these invitations and the API keys and webhooks that the member created. The keys and webhooks "+
			"keep working unless revokeKeys is true."),
		a.setRole)
}

func (a *API) setRole(ctx context.Context, in *roleInput) (*roleOutput, error) {
	role := tenancy.Role(in.Body.Role)
	var made tenancy.CreatedBy
	change := func(ctx context.Context, p tenancy.Principal) (err error) {
		made, err = a.deps.Accounts.SetRole(ctx, p, in.ID, tenancy.RoleChange{
			Role: role, Proof: in.Body.Proof(), Revoke: in.Body.RevokeKeys,
		})
		return err
	}
	var err error
	if role == tenancy.RoleSuperAdmin {
		err = a.deps.Gate.Prove(ctx, change)
	} else {
		err = change(ctx, request.Principal(ctx))
	}
	if err != nil {
		return nil, err
	}
	return &roleOutput{Body: RoleResponse{
		ID: in.ID, Role: in.Body.Role,
		CreatedByMember: newMadeByMember(request.Principal(ctx), made, in.Body.RevokeKeys),
	}}, nil
}
