// Package instance provides the endpoints for instance administrators and for the company that runs
// the instance.
package instance

import (
	"context"
	"log/slog"

	"github.com/danielgtaylor/huma/v2"

	"crier/apps/edge/admission"
	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/apps/edge/session"
	"crier/billing"
	"crier/platform/fault"
	"crier/tenancy"
)

// Deps holds the dependencies of an API.
type Deps struct {
	Accounts Accounts
	Plans    billing.Plans
	Gate     *admission.Gate
	Cookies  session.Cookies
	Log      *slog.Logger
}

// Accounts provides the account operations that this package calls.
type Accounts interface {
	Instance
	Enterprise
}

// API provides this package's endpoints, one per exported method. It is safe for concurrent use.
type API struct{ deps Deps }

// New returns an API that uses d. It does not check that all fields of d are set.
func New(d Deps) *API { return &API{deps: d} }

// Instance lets instance administrators impersonate members.
type Instance interface {
	// Impersonable returns at most ten memberships that match text. A membership matches if the
	// person's name, the person's email address or the organization's name contains text.
	Impersonable(ctx context.Context, p tenancy.Principal, text string) ([]tenancy.Impersonable, error)
	// Impersonate records that the caller has started to impersonate the member with the given
	// membership. If membership is empty, it records that the impersonation has ended.
	Impersonate(ctx context.Context, p tenancy.Principal, membership string) error
}

// Enterprise handles requests from the company that runs the instance.
type Enterprise interface {
	// CreateEnterpriseUser creates a person, an organization and an API key in response to a signed
	// request. It returns the organization's id and the full API key.
	//
	// CreateEnterpriseUser returns
	//
	//   - NotFound if the instance does not accept these requests
	//   - Invalid if the request's signature, age or content is invalid
	//   - Conflict if the request has been used before, or if the email address already has an
	//     account
	CreateEnterpriseUser(ctx context.Context, signed string, from tenancy.Source) (tenancy.OrgID, string, error)
}

type impersonableInput struct {
	Name string `query:"name" required:"true" maxLength:"128" doc:"Part of a person's name or email address, or of an organization's name."`
}

// ImpersonableRecord is a membership that an instance administrator can impersonate.
type ImpersonableRecord struct {
	ID           string                   `json:"id" doc:"Id to send to POST /user/impersonate or in the header impersonate."`
	Role         string                   `json:"role" enum:"USER,ADMIN,SUPERADMIN"`
	Organization ImpersonableOrganization `json:"organization"`
	User         ImpersonablePerson       `json:"user"`
}

// ImpersonableOrganization is the organization in an ImpersonableRecord.
type ImpersonableOrganization struct {
	ID           string                     `json:"id"`
	Name         string                     `json:"name"`
	Subscription *record.SubscriptionRecord `json:"subscription"`
}

// ImpersonablePerson is the person in an ImpersonableRecord.
type ImpersonablePerson struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Email string `json:"email"`
}

type impersonableOutput struct{ Body []ImpersonableRecord }

// Impersonable returns the endpoint that searches for memberships to impersonate.
func (a *API) Impersonable() route.Endpoint {
	return route.JSON(route.Described(route.Describe("Instance", "Search for a membership to impersonate", 400),
		"Returns at most ten memberships."),
		a.impersonable)
}

func (a *API) impersonable(ctx context.Context, in *impersonableInput) (*impersonableOutput, error) {
	list, err := a.deps.Accounts.Impersonable(ctx, request.Principal(ctx), in.Name)
	if err != nil {
		return nil, err
	}
	out := &impersonableOutput{Body: make([]ImpersonableRecord, 0, len(list))}
	for _, m := range list {
		_, current, err := a.deps.Plans.Of(ctx, m.Organization)
		if err != nil {
			return nil, err
		}
		out.Body = append(out.Body, ImpersonableRecord{
			ID: m.ID, Role: string(m.Role),
			Organization: ImpersonableOrganization{
				ID: m.Organization.ID.String(), Name: m.Organization.Name,
				Subscription: record.NewSubscription(current),
			},
			User: ImpersonablePerson{ID: m.Person.ID.String(), Name: m.Person.Name, Email: m.Person.Email},
		})
	}
	return out, nil
}

// Impersonate returns the endpoint that lets an instance administrator start or stop impersonating
// a member.
func (a *API) Impersonate() route.Endpoint {
	return route.JSON(route.Described(route.Created("Instance", "Impersonate a member of an organization", 400, 404, 413),
		"Send the id of a membership, or an empty id to stop impersonating. The response has no body and sets the "+
			"impersonate cookie. The organization's audit log names the administrator."), a.impersonate)
}

func (a *API) impersonate(ctx context.Context, in *record.IDInput) (*session.CookiesOutput, error) {
	if err := a.deps.Accounts.Impersonate(ctx, request.Principal(ctx), in.Body.ID); err != nil {
		return nil, err
	}
	if in.Body.ID == "" {
		return &session.CookiesOutput{Cookies: a.deps.Cookies.Expired(session.CookiePerson)}, nil
	}
	return &session.CookiesOutput{Cookies: a.deps.Cookies.Cookie(session.CookiePerson, in.Body.ID, session.PersonLife)}, nil
}

// EnterpriseRequest is the body of a request from the company that runs the instance.
type EnterpriseRequest struct {
	Params string `json:"params" minLength:"1" maxLength:"8192"`
}

// TransformSchema implements huma.SchemaTransformer. It adds the descriptions that are too long for
// a struct tag.
func (EnterpriseRequest) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Properties["params"].Description = "A JWT signed with HS256, with ENTERPRISE_SECRET as the key. Its claims are " +
		"id, name, email, saasName, iat, exp (at most 5 minutes after iat) and jti. Each jti can be used only once."
	return s
}

type enterpriseInput struct{ Body EnterpriseRequest }

// EnterpriseUserResponse contains the new organization's id and API key, or indicates why the
// request was rejected.
type EnterpriseUserResponse struct {
	ID      string `json:"id,omitempty" doc:"Id of the organization."`
	APIKey  string `json:"apiKey,omitempty" doc:"The full key. It is returned only in this response."`
	Create  *bool  `json:"create,omitempty" doc:"false if the request was already used or the email address already has an account."`
	Success *bool  `json:"success,omitempty" doc:"false if the signature, age or content of the request is invalid."`
}

type enterpriseOutput struct{ Body EnterpriseUserResponse }

// CreateEnterpriseUser returns the endpoint that creates a person, an organization and an API key
// in response to a signed request.
func (a *API) CreateEnterpriseUser() route.Endpoint {
	return route.JSON(route.Described(
		route.Created("Instance", "Create a person with an organization and an API key", 400, 404, 413, 429),
		"404 means that the instance has no ENTERPRISE_SECRET."), a.createEnterpriseUser)
}

func (a *API) createEnterpriseUser(ctx context.Context, in *enterpriseInput) (*enterpriseOutput, error) {
	if err := a.deps.Gate.AdmitClient(ctx, a.deps.Gate.Buckets.Enterprise); err != nil {
		return nil, err
	}
	from := request.From(ctx).From
	org, key, err := a.deps.Accounts.CreateEnterpriseUser(ctx, in.Body.Params, from)
	refused := false
	var out EnterpriseUserResponse
	switch fault.KindOf(err) {
	case "":
		out = EnterpriseUserResponse{ID: org.String(), APIKey: key}
	case fault.Invalid:
		out.Success = &refused
	case fault.Conflict:
		out.Create = &refused
	default:
		return nil, err
	}
	if err != nil {
		a.deps.Log.WarnContext(ctx, "enterprise request refused", "client", from.Client, "error", err)
	}
	return &enterpriseOutput{Body: out}, nil
}
