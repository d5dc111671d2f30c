package connect

import (
	"context"
	"net/http"

	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/fault"
	"crier/publishing"
	"crier/tenancy"
)

// Apps manages the applications that an organization has registered with platforms. Methods return
// NotFound for an unknown platform family.
type Apps interface {
	Apps(ctx context.Context, p tenancy.Principal) ([]publishing.PlatformApp, error)
	App(ctx context.Context, p tenancy.Principal, family string) (publishing.PlatformApp, error)
	// SetApp and DeleteApp also return how many channels were connected through the application
	// that was replaced or deleted.
	SetApp(
		ctx context.Context, p tenancy.Principal, cmd publishing.SetPlatformApp,
	) (publishing.PlatformApp, int, error)
	DeleteApp(ctx context.Context, p tenancy.Principal, family string) (publishing.PlatformApp, int, error)
}

// ProviderCredentials holds an application's credentials for a platform family. The values are
// masked.
type ProviderCredentials struct {
	Provider   string            `json:"provider" doc:"The platform family, such as the family of Facebook and Instagram."`
	Name       string            `json:"name"`
	Platforms  []string          `json:"platforms" doc:"The platforms that use these credentials."`
	Configured bool              `json:"configured"`
	Source     *string           `json:"source" nullable:"true" enum:"env,organization" doc:"Whether the credentials belong to the instance (env) or the organization; null if there are none."`
	Fields     []CredentialField `json:"fields"`
	// Affected is set only in responses to requests that change the credentials.
	Affected *int `json:"affectedChannels,omitempty" doc:"Number of channels that were connected with the replaced or deleted credentials. These channels must be reconnected when their access expires."`
}

// CredentialField is one value of ProviderCredentials.
type CredentialField struct {
	Key    string `json:"key" enum:"clientId,clientSecret"`
	Label  string `json:"label"`
	Secret bool   `json:"secret"`
	Set    bool   `json:"set"`
	Value  string `json:"value,omitempty" doc:"The masked value."`
}

// maskedTail is the number of trailing characters of a client id that are shown. A client id of at
// most twice that length is masked completely.
const maskedTail = 4

func credentialsOf(app publishing.PlatformApp) ProviderCredentials {
	set := app.Source != publishing.AppNone
	out := ProviderCredentials{
		Provider: app.Family, Name: app.Name, Platforms: app.Platforms, Configured: set,
		Fields: []CredentialField{
			{Key: "clientId", Label: "Client id", Set: set},
			{Key: "clientSecret", Label: "Client secret", Secret: true, Set: set},
		},
	}
	if set {
		source := string(app.Source)
		out.Source = &source
		out.Fields[0].Value, out.Fields[1].Value = "••••", "••••"
		if n := len(app.ClientID); n > 2*maskedTail && app.Source == publishing.AppFromOrganization {
			out.Fields[0].Value += app.ClientID[n-maskedTail:]
		}
	}
	return out
}

type credentialsListOutput struct{ Body []ProviderCredentials }

type credentialsOutput struct{ Body ProviderCredentials }

// ListProviderCredentials returns the endpoint that lists the application credentials.
func (a *API) ListProviderCredentials() route.Endpoint {
	return route.JSON(route.Describe("Settings", "List the application credentials for platforms"), a.listCredentials)
}

func (a *API) listCredentials(ctx context.Context, _ *struct{}) (*credentialsListOutput, error) {
	apps, err := a.deps.Apps.Apps(ctx, request.Principal(ctx))
	if err != nil {
		return nil, err
	}
	out := &credentialsListOutput{Body: make([]ProviderCredentials, 0, len(apps))}
	for _, app := range apps {
		out.Body = append(out.Body, credentialsOf(app))
	}
	return out, nil
}

type familyInput struct {
	Provider string `path:"provider" doc:"The platform family, or one of its platforms."`
}

// ProviderCredentials returns the endpoint that gets the application credentials for one platform
// family.
func (a *API) ProviderCredentials() route.Endpoint {
	return route.JSON(route.Describe("Settings", "Get the application credentials for a platform", 404), a.credentials)
}

func (a *API) credentials(ctx context.Context, in *familyInput) (*credentialsOutput, error) {
	app, err := a.deps.Apps.App(ctx, request.Principal(ctx), in.Provider)
	if err != nil {
		return nil, err
	}
	return &credentialsOutput{Body: credentialsOf(app)}, nil
}

// SetProviderCredentials returns the endpoint that sets the organization's own application
// credentials.
func (a *API) SetProviderCredentials() route.Endpoint {
	d := route.Describe("Settings", "Set the organization's application credentials for a platform", 400, 404, 413)
	d.DefaultStatus = http.StatusCreated
	return route.JSON(d, a.setCredentials)
}

// SetCredentialsRequest is the body of POST /settings/provider-credentials/{provider}.
type SetCredentialsRequest struct {
	Credentials map[string]string `json:"credentials" doc:"The application's clientId and clientSecret."`
}

type setCredentialsInput struct {
	Provider string `path:"provider" doc:"The platform family, or one of its platforms."`
	Body     SetCredentialsRequest
}

func (a *API) setCredentials(ctx context.Context, in *setCredentialsInput) (*credentialsOutput, error) {
	var faults fault.List
	for key := range in.Body.Credentials {
		if key != "clientId" && key != "clientSecret" {
			faults.Add("credentials", "has an unknown member; only clientId and clientSecret are accepted")
			break
		}
	}
	if err := faults.Err("connect.setCredentials", "The credentials are not valid."); err != nil {
		return nil, err
	}
	app, channels, err := a.deps.Apps.SetApp(ctx, request.Principal(ctx), publishing.SetPlatformApp{
		Family: in.Provider, ClientID: in.Body.Credentials["clientId"], Secret: in.Body.Credentials["clientSecret"],
	})
	if err != nil {
		return nil, err
	}
	return changedCredentials(app, channels), nil
}

func changedCredentials(app publishing.PlatformApp, channels int) *credentialsOutput {
	out := &credentialsOutput{Body: credentialsOf(app)}
	out.Body.Affected = &channels
	return out
}

// DeleteProviderCredentials returns the endpoint that deletes the organization's own application
// credentials.
func (a *API) DeleteProviderCredentials() route.Endpoint {
	return route.JSON(route.Describe("Settings", "Delete the organization's application credentials for a platform", 404),
		a.deleteCredentials)
}

func (a *API) deleteCredentials(ctx context.Context, in *familyInput) (*credentialsOutput, error) {
	app, channels, err := a.deps.Apps.DeleteApp(ctx, request.Principal(ctx), in.Provider)
	if err != nil {
		return nil, err
	}
	return changedCredentials(app, channels), nil
}
