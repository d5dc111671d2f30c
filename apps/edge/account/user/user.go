// Package user provides the endpoints for a person's own data.
package user

import (
	"context"
	"strings"

	"crier/apps/edge/admission"
	"crier/apps/edge/page"
	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/billing"
	"crier/platform/clock"
	"crier/platform/fault"
	"crier/publishing"
	"crier/tenancy"
)

// Deps holds the dependencies of an API.
type Deps struct {
	// BaseURL is the service's URL, without a trailing slash.
	BaseURL  string
	Accounts Accounts
	Plans    billing.Plans
	Media    Media
	Gate     *admission.Gate
	Clock    clock.Clock
}

// Accounts provides the account operations that this package calls.
type Accounts interface {
	People
	Unsubscribers
	// Identities returns the identities that the person can sign in with.
	Identities(ctx context.Context, p tenancy.Principal) ([]tenancy.Identity, error)
	// Keys returns the keys that are still valid, newest first, along with the email address of
	// each key's creator.
	Keys(ctx context.Context, p tenancy.Principal) ([]tenancy.KeyOf, error)
}

// API provides this package's endpoints, one per exported method. It is safe for concurrent use.
type API struct {
	deps Deps
	page *page.Page // unsubscribe.html
}

// New returns an API that uses d. It does not check that all fields of d are set.
func New(d Deps) *API { return &API{deps: d, page: newUnsubscribePage()} }

// People reads and changes a person's own data.
type People interface {
	// Self returns the principal's person and organization. If the person has no access to any
	// organization, the returned organization is the zero value.
	Self(ctx context.Context, p tenancy.Principal) (tenancy.Person, tenancy.OrganizationOf, error)
	SetProfile(ctx context.Context, p tenancy.Principal, profile tenancy.Profile) (tenancy.Person, error)
	Notifications(ctx context.Context, p tenancy.Principal) (tenancy.Notifications, error)
	SetNotifications(ctx context.Context, p tenancy.Principal, n tenancy.Notifications) error
	// Setup fills in the person's name and, if the person is the owner, the organization's time
	// zone. It leaves values that are already set unchanged.
	Setup(ctx context.Context, p tenancy.Principal, s tenancy.Setup) error
}

// Media looks up uploaded files.
type Media interface {
	// Own returns one of the organization's files, or NotFound if the organization has no such
	// file.
	Own(ctx context.Context, p tenancy.Principal, medium string) (publishing.Medium, error)
}

// Self describes the signed-in person and the request's organization.
type Self struct {
	ID           string `json:"id"`
	Email        string `json:"email"`
	Name         string `json:"name"`
	LastName     string `json:"lastName" doc:"Always empty, because name is the full name."`
	Bio          string `json:"bio"`
	PictureID    string `json:"pictureId" doc:"Id of the person's picture; empty if there is none."`
	ProviderName string `json:"providerName" doc:"LOCAL, or the identity provider of a person without a password."`
	Timezone     string `json:"timezone" doc:"Time zone of the organization." example:"Europe/Vienna"`
	Activated    bool   `json:"activated" doc:"Always true."`
	Verified     bool   `json:"verified" doc:"Whether the email address is confirmed."`
	CreatedAt    string `json:"createdAt" format:"date-time"`
	LastOnline   string `json:"lastOnline" format:"date-time" doc:"The time of this request."`
	record.EmailSwitches
	OrgID         string  `json:"orgId" doc:"Id of the organization; empty for a person without an organization."`
	TotalChannels int     `json:"totalChannels" doc:"Number of channels that the plan allows."`
	Tier          string  `json:"tier" doc:"Name of the plan. On an instance without plans, the plan is always ULTIMATE."`
	Role          string  `json:"role" doc:"Role of the person: USER, ADMIN or SUPERADMIN; empty for a person without an organization."`
	Access        string  `json:"access" enum:"full,none,suspended,enroll" doc:"Your access to the organization."`
	IsLifetime    bool    `json:"isLifetime"`
	Admin         bool    `json:"admin" doc:"Whether the person is an instance administrator."`
	Impersonate   bool    `json:"impersonate" doc:"Whether an instance administrator is impersonating this person."`
	IsTrailing    bool    `json:"isTrailing"`
	AllowTrial    bool    `json:"allowTrial"`
	StreakSince   *string `json:"streakSince" nullable:"true" doc:"Always null."`
	PublicAPI     string  `json:"publicApi" doc:"First characters of the oldest API key; empty unless you are an administrator."`
}

type selfOutput struct{ Body Self }

// Self returns the endpoint for the signed-in person.
func (a *API) Self() route.Endpoint {
	return route.JSON(route.Describe("User", "Get the current person and organization"), a.self)
}

func (a *API) self(ctx context.Context, _ *struct{}) (*selfOutput, error) {
	p := request.Principal(ctx)
	person, org, err := a.deps.Accounts.Self(ctx, p)
	if err != nil {
		return nil, err
	}
	mails, err := a.deps.Accounts.Notifications(ctx, p)
	if err != nil {
		return nil, err
	}
	provider, err := a.providerName(ctx, p, person)
	if err != nil {
		return nil, err
	}
	key, err := a.maskedKey(ctx, p)
	if err != nil {
		return nil, err
	}
	plan, _, err := a.deps.Plans.Of(ctx, org.Organization)
	if err != nil {
		return nil, err
	}
	out := Self{
		ID: person.ID.String(), Email: person.Email, Name: person.Name, Bio: person.Bio, PictureID: person.Picture.ID,
		ProviderName: provider, Timezone: org.Timezone, Activated: true, Verified: person.Verified,
		CreatedAt:  record.FormatTime(person.CreatedAt),
		LastOnline: record.FormatTime(a.deps.Clock.Now()), EmailSwitches: record.NewEmailSwitches(mails),
		TotalChannels: record.TotalChannels(plan), Tier: string(plan.Tier), Role: string(p.Role),
		Access: accessName(p.Access),
		Admin:  p.Instance, Impersonate: !p.Impersonator.IsZero(), PublicAPI: key,
	}
	if !p.Org.IsZero() {
		out.OrgID = p.Org.String()
	}
	return &selfOutput{Body: out}, nil
}

func accessName(access tenancy.Access) string {
	if access == tenancy.AccessFull {
		return "full"
	}
	return string(access)
}

const providerLocal = "LOCAL"

// providerName returns LOCAL if the person has a password or no identity provider. Otherwise, it
// returns the person's first identity provider.
func (a *API) providerName(ctx context.Context, p tenancy.Principal, person tenancy.Person) (string, error) {
	if person.PasswordHash != "" {
		return providerLocal, nil
	}
	list, err := a.deps.Accounts.Identities(ctx, p)
	if err != nil || len(list) == 0 {
		return providerLocal, err
	}
	return list[0].Provider, nil
}

// maskedKey returns the beginning of the organization's oldest API key. It returns "" if there is
// no key or if the principal may not manage keys.
func (a *API) maskedKey(ctx context.Context, p tenancy.Principal) (string, error) {
	if !p.Role.Manages() || p.Access != tenancy.AccessFull {
		return "", nil
	}
	keys, err := a.deps.Accounts.Keys(ctx, p)
	if err != nil || len(keys) == 0 {
		return "", err
	}
	return record.Mask(keys[len(keys)-1].Prefix), nil
}

// ProfileRecord is a person's profile, which others can see.
type ProfileRecord struct {
	ID      string         `json:"id"`
	Name    string         `json:"name"`
	Bio     string         `json:"bio"`
	Picture *PictureRecord `json:"picture"`
}

// PictureRecord is an uploaded picture.
type PictureRecord struct {
	_    struct{} `nullable:"true"`
	ID   string   `json:"id"`
	Path string   `json:"path" doc:"Public URL."`
}

type profileOutput struct{ Body ProfileRecord }

func newProfile(p tenancy.Person) *profileOutput {
	out := &profileOutput{Body: ProfileRecord{ID: p.ID.String(), Name: p.Name, Bio: p.Bio}}
	if p.Picture != (tenancy.Picture{}) {
		out.Body.Picture = &PictureRecord{ID: p.Picture.ID, Path: p.Picture.Path}
	}
	return out
}

// Profile returns the endpoint for the person's profile.
func (a *API) Profile() route.Endpoint {
	return route.JSON(route.Describe("User", "Get your profile"), a.profile)
}

func (a *API) profile(ctx context.Context, _ *struct{}) (*profileOutput, error) {
	person, _, err := a.deps.Accounts.Self(ctx, request.Principal(ctx))
	if err != nil {
		return nil, err
	}
	return newProfile(person), nil
}

// UserDetailDto is the body of POST /user/personal. It replaces the whole profile.
type UserDetailDto struct {
	Name    string           `json:"fullname" minLength:"3" maxLength:"256" doc:"3 to 128 characters."`
	Bio     string           `json:"bio,omitempty" maxLength:"2000"`
	Picture *PictureOfPerson `json:"picture,omitempty" doc:"If the field is absent or null, the picture is removed."`
}

// PictureOfPerson identifies an uploaded picture. Other members of the JSON object are ignored.
type PictureOfPerson struct {
	ID string `json:"id" maxLength:"64" doc:"Id of an image that the organization has uploaded."`
}

type setProfileInput struct{ Body UserDetailDto }

// SetProfile returns the endpoint that replaces the person's profile.
func (a *API) SetProfile() route.Endpoint {
	return route.JSON(route.Created("User", "Change your profile", 400, 413), a.setProfile)
}

func (a *API) setProfile(ctx context.Context, in *setProfileInput) (*profileOutput, error) {
	p := request.Principal(ctx)
	profile := tenancy.Profile{Name: in.Body.Name, Bio: in.Body.Bio}
	if in.Body.Picture != nil && in.Body.Picture.ID != "" {
		picture, err := a.picture(ctx, p, in.Body.Picture.ID)
		if err != nil {
			return nil, err
		}
		profile.Picture = picture
	}
	person, err := a.deps.Accounts.SetProfile(ctx, p, profile)
	if err != nil {
		return nil, err
	}
	return newProfile(person), nil
}

// picture returns the picture with the given id, which must be the person's current picture or one
// of the organization's images. For an image, Path is the image's public URL, never a value from
// the client.
func (a *API) picture(ctx context.Context, p tenancy.Principal, medium string) (tenancy.Picture, error) {
	person, _, err := a.deps.Accounts.Self(ctx, p)
	if err != nil {
		return tenancy.Picture{}, err
	}
	if person.Picture.ID == medium {
		return person.Picture, nil
	}
	refusal := &fault.Error{Kind: fault.Invalid, Op: "user.picture", Message: "The input is not valid.",
		Fields: []fault.Field{{
			Name: "picture.id", Message: "must be the id of an image uploaded by the organization",
		}}}
	if p.Access != tenancy.AccessFull {
		return tenancy.Picture{}, refusal
	}
	m, err := a.deps.Media.Own(ctx, p, medium)
	if fault.Is(err, fault.NotFound) {
		return tenancy.Picture{}, refusal
	}
	if err != nil {
		return tenancy.Picture{}, err
	}
	if !strings.HasPrefix(m.ContentType, "image/") {
		return tenancy.Picture{}, refusal
	}
	return tenancy.Picture{ID: m.ID.String(), Path: a.deps.BaseURL + m.Path()}, nil
}

// SetupRequest is the body of POST /user/setup.
type SetupRequest struct {
	Company  string                  `json:"company,omitempty" maxLength:"256" doc:"Has no effect, because every organization has a name."`
	Name     string                  `json:"fullname,omitempty" maxLength:"256" example:"Ada Lovelace"`
	Timezone record.OrganizationZone `json:"timezone,omitempty"`
}

type setupInput struct{ Body SetupRequest }

// SetupResponse is the response to POST /user/setup.
type SetupResponse struct {
	Setup bool `json:"setup" doc:"Always true, even if there was nothing left to fill in."`
}

type setupOutput struct{ Body SetupResponse }

// Setup returns the endpoint that fills in details that a new account lacks.
func (a *API) Setup() route.Endpoint {
	return route.JSON(route.Described(route.Created("User", "Complete a new account", 400, 413),
		"Sets values that are still empty: the person's name and, if the owner calls it, the organization's time "+
			"zone."), a.setup)
}

func (a *API) setup(ctx context.Context, in *setupInput) (*setupOutput, error) {
	zone, err := tenancy.ParseZone(string(in.Body.Timezone))
	if err != nil {
		return nil, err
	}
	err = a.deps.Accounts.Setup(ctx, request.Principal(ctx),
		tenancy.Setup{Name: in.Body.Name, Company: in.Body.Company, Timezone: zone})
	if err != nil {
		return nil, err
	}
	return &setupOutput{Body: SetupResponse{Setup: true}}, nil
}
