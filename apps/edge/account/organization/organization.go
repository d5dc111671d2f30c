// Package organization provides the endpoints for organizations and for joining them.
package organization

import (
	"cmp"
	"context"

	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/apps/edge/session"
	"crier/billing"
	"crier/tenancy"
)

// Deps holds the dependencies of an API.
type Deps struct {
	Accounts Organizations
	Plans    billing.Plans
	Cookies  session.Cookies
}

// API provides this package's endpoints, one per exported method. It is safe for concurrent use.
type API struct{ deps Deps }

// New returns an API that uses d. It does not check that all fields of d are set.
func New(d Deps) *API { return &API{deps: d} }

// Organizations creates, joins and changes organizations.
type Organizations interface {
	// Organizations returns the organizations in which the person is an enabled member, sorted from
	// the oldest membership to the newest. An organization marked for deletion is included only if
	// the person owns it.
	Organizations(ctx context.Context, p tenancy.Principal) ([]tenancy.OrganizationOf, error)
	// CreateOrganization creates an organization that the person owns. It returns Conflict if the
	// person has too many organizations, and RateLimited if the person has created too many within
	// 24 hours. It returns Quota if the person has created too many on the default plan.
	CreateOrganization(ctx context.Context, p tenancy.Principal, name string) (tenancy.Organization, error)
	// ChooseOrganization checks whether the person can switch to the organization. It returns
	// Forbidden if the person is not a member.
	ChooseOrganization(ctx context.Context, p tenancy.Principal, org string) error
	// JoinOrganization accepts an invitation. It returns the zero id if the invitation is invalid,
	// has been used, or has expired. It returns Forbidden if the invitation is for a different
	// email address, or if the person has not confirmed that address.
	JoinOrganization(ctx context.Context, p tenancy.Principal, token string) (tenancy.OrgID, error)
	Organization(ctx context.Context, p tenancy.Principal) (tenancy.Organization, error)
	UpdateOrganization(ctx context.Context, p tenancy.Principal, change tenancy.OrganizationChange) (
		tenancy.Organization, error)
}

// shortlinkAsk is the shortlink preference of an organization that has not chosen one.
const shortlinkAsk = "ASK"

// OrganizationRecord is one of the person's organizations.
type OrganizationRecord struct {
	ID           string                     `json:"id"`
	Name         string                     `json:"name"`
	Description  string                     `json:"description"`
	Shortlink    string                     `json:"shortlink" enum:"ASK,YES,NO"`
	AllowTrial   bool                       `json:"allowTrial"`
	IsTrailing   bool                       `json:"isTrailing"`
	StreakSince  *string                    `json:"streakSince" nullable:"true" doc:"Always null."`
	CreatedAt    string                     `json:"createdAt" format:"date-time"`
	Users        []MembershipRecord         `json:"users" doc:"Your own membership."`
	Subscription *record.SubscriptionRecord `json:"subscription"`
	Suspended    bool                       `json:"suspended" doc:"Whether the operator has suspended the organization."`
	DeletedAt    *string                    `json:"deletedAt" nullable:"true" format:"date-time" doc:"When the deletion of the organization was requested."`
}

// MembershipRecord is a person's membership in an organization.
type MembershipRecord struct {
	Role     string `json:"role" enum:"USER,ADMIN,SUPERADMIN"`
	Disabled bool   `json:"disabled"`
}

func newOrganizationRecord(o tenancy.OrganizationOf, s *billing.Subscription) OrganizationRecord {
	return OrganizationRecord{
		ID: o.ID.String(), Name: o.Name, Description: o.Description, Shortlink: shortlinkAsk,
		CreatedAt:    record.FormatTime(o.CreatedAt),
		Users:        []MembershipRecord{{Role: string(o.Role), Disabled: o.Disabled}},
		Subscription: record.NewSubscription(s), Suspended: o.SuspendedAt != nil,
		DeletedAt: record.OptionalTime(o.DeletedAt),
	}
}

type organizationsOutput struct{ Body []OrganizationRecord }

// Organizations returns the endpoint that lists the person's organizations.
func (a *API) Organizations() route.Endpoint {
	return route.JSON(route.Describe("Organizations", "List your organizations"), a.organizations)
}

func (a *API) organizations(ctx context.Context, _ *struct{}) (*organizationsOutput, error) {
	list, err := a.deps.Accounts.Organizations(ctx, request.Principal(ctx))
	if err != nil {
		return nil, err
	}
	out := &organizationsOutput{Body: make([]OrganizationRecord, 0, len(list))}
	for _, o := range list {
		_, current, err := a.deps.Plans.Of(ctx, o.Organization)
		if err != nil {
			return nil, err
		}
		out.Body = append(out.Body, newOrganizationRecord(o, current))
	}
	return out, nil
}

// CreateOrganizationRequest is the body of POST /user/organizations.
type CreateOrganizationRequest struct {
	Name string `json:"name" minLength:"3" maxLength:"256" doc:"3 to 128 characters." example:"Acme"`
}

type createOrganizationInput struct{ Body CreateOrganizationRequest }

// OrganizationName is an organization's id and name.
type OrganizationName struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type createOrganizationOutput struct {
	Cookies []string `header:"Set-Cookie" doc:"Sets showorg to the new organization."`
	Body    OrganizationName
}

// CreateOrganization returns the endpoint that creates an organization and selects it.
func (a *API) CreateOrganization() route.Endpoint {
	return route.JSON(route.Described(route.Created("Organizations", "Create an organization", 400, 402, 409, 413),
		"The number of organizations that a person can create is limited. 402: you have reached the limit on "+
			"organizations with the default plan. 409: you have reached the limit on all organizations. 429 with "+
			"Retry-After: you have reached the limit on organizations created in 24 hours."), a.createOrganization)
}

func (a *API) createOrganization(ctx context.Context, in *createOrganizationInput) (*createOrganizationOutput, error) {
	o, err := a.deps.Accounts.CreateOrganization(ctx, request.Principal(ctx), in.Body.Name)
	if err != nil {
		return nil, err
	}
	return &createOrganizationOutput{
		Cookies: a.deps.Cookies.Cookie(session.CookieOrg, o.ID.String(), session.SessionLife),
		Body:    OrganizationName{ID: o.ID.String(), Name: o.Name},
	}, nil
}

// ChooseOrganization returns the endpoint that selects the organization for later requests from the
// same browser.
func (a *API) ChooseOrganization() route.Endpoint {
	return route.JSON(route.Described(route.Created("Organizations", "Switch to an organization", 400, 413),
		"The response has no body and sets the cookie showorg."), a.chooseOrganization)
}

func (a *API) chooseOrganization(ctx context.Context, in *record.IDInput) (*session.CookiesOutput, error) {
	if err := a.deps.Accounts.ChooseOrganization(ctx, request.Principal(ctx), in.Body.ID); err != nil {
		return nil, err
	}
	return &session.CookiesOutput{Cookies: a.deps.Cookies.Cookie(session.CookieOrg, in.Body.ID, session.SessionLife)}, nil
}

// JoinRequest is the body of POST /user/join-org.
type JoinRequest struct {
	Token string `json:"org,omitempty" maxLength:"512" doc:"Token of an invitation. If absent, the token in the cookie org is used."`
}

type joinInput struct {
	Invitation string `cookie:"org" doc:"Token of an invitation. The cookie is deleted when the token has been used or is no longer valid."`
	Body       JoinRequest
}

// JoinResponse is the response to POST /user/join-org.
type JoinResponse struct {
	ID *string `json:"id" nullable:"true" doc:"Id of the organization; null if the invitation is invalid, used or expired."`
}

type joinOutput struct {
	Cookies []string `header:"Set-Cookie"`
	Body    JoinResponse
}

// JoinOrganization returns the endpoint that accepts an invitation.
func (a *API) JoinOrganization() route.Endpoint {
	return route.JSON(route.Described(route.Created("Organizations", "Accept an invitation", 400, 402, 409, 413),
		"403 means that the invitation is for a different email address, or for one that you have not confirmed."),
		a.joinOrganization)
}

func (a *API) joinOrganization(ctx context.Context, in *joinInput) (*joinOutput, error) {
	token := cmp.Or(in.Body.Token, in.Invitation)
	var faults tenancy.Inputs
	faults.Check(token != "", "org", "is required if there is no cookie org")
	if err := faults.Err("organization.joinOrganization"); err != nil {
		return nil, err
	}
	org, err := a.deps.Accounts.JoinOrganization(ctx, request.Principal(ctx), token)
	if err != nil {
		return nil, err
	}
	out := &joinOutput{}
	if token == in.Invitation {
		out.Cookies = a.deps.Cookies.Expired(session.CookieInvite)
	}
	if !org.IsZero() {
		joined := org.String()
		out.Body.ID = &joined
	}
	return out, nil
}

// OrganizationSettings holds an organization's settings.
type OrganizationSettings struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Timezone    string `json:"timezone" doc:"An IANA name, or a fixed offset such as +05:30." example:"Europe/Vienna"`
	Shortlink   string `json:"shortlink" enum:"ASK,YES,NO"`
	MFARequired bool   `json:"mfaRequired" doc:"See /user/mfa/policy."`
	CreatedAt   string `json:"createdAt" format:"date-time"`
}

type organizationOutput struct{ Body OrganizationSettings }

func newOrganizationSettings(o tenancy.Organization) *organizationOutput {
	return &organizationOutput{Body: OrganizationSettings{
		ID: o.ID.String(), Name: o.Name, Description: o.Description, Timezone: o.Timezone, Shortlink: shortlinkAsk,
		MFARequired: o.RequiresMFA, CreatedAt: record.FormatTime(o.CreatedAt),
	}}
}

// Organization returns the endpoint for the organization's settings.
func (a *API) Organization() route.Endpoint {
	return route.JSON(route.Describe("Organizations", "Get the organization's settings"), a.organization)
}

func (a *API) organization(ctx context.Context, _ *struct{}) (*organizationOutput, error) {
	o, err := a.deps.Accounts.Organization(ctx, request.Principal(ctx))
	if err != nil {
		return nil, err
	}
	return newOrganizationSettings(o), nil
}

// UpdateOrganizationDto is the body of PUT /settings/organization. Settings that the body omits
// stay unchanged.
type UpdateOrganizationDto struct {
	Name        *string                  `json:"name,omitempty" minLength:"3" maxLength:"256" doc:"3 to 128 characters."`
	Description *string                  `json:"description,omitempty" maxLength:"500"`
	Timezone    *record.OrganizationZone `json:"timezone,omitempty"`
}

type updateOrganizationInput struct{ Body UpdateOrganizationDto }

// UpdateOrganization returns the endpoint that changes the organization's settings.
func (a *API) UpdateOrganization() route.Endpoint {
	return route.JSON(route.Describe("Organizations", "Change the organization's settings", 400, 413),
		a.updateOrganization)
}

func (a *API) updateOrganization(ctx context.Context, in *updateOrganizationInput) (*organizationOutput, error) {
	change := tenancy.OrganizationChange{Name: in.Body.Name, Description: in.Body.Description}
	var faults tenancy.Inputs
	if in.Body.Timezone != nil {
		zone, err := tenancy.ParseZone(string(*in.Body.Timezone))
		if err != nil {
			return nil, err
		}
		faults.Check(zone != (tenancy.ZoneRequest{}), "timezone", "must not be empty")
		change.Timezone = &zone
	}
	faults.Check(change != (tenancy.OrganizationChange{}), "body", "must have name, description or timezone")
	if err := faults.Err("organization.updateOrganization"); err != nil {
		return nil, err
	}
	o, err := a.deps.Accounts.UpdateOrganization(ctx, request.Principal(ctx), change)
	if err != nil {
		return nil, err
	}
	return newOrganizationSettings(o), nil
}
