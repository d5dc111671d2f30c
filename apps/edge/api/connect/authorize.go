package connect

import (
	"context"
	"net/http"

	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/publishing"
)

// SocialURL returns the endpoint that starts connecting a channel by OAuth.
func (a *API) SocialURL() route.Endpoint {
	return route.JSON(route.Described(
		route.Describe("Connecting channels", "Get a URL for connecting an account", 400, 402),
		"The owner of the account must open url in a browser. The URL works only once and expires after an hour. GET "+
			"/integrations then lists the channel. 402: the plan allows no more channels. The instance's channel "+
			"limit is checked when the account is connected."), a.socialURL)
}

type socialInput struct {
	Integration string `path:"integration" doc:"Platform."`
	Refresh     string `query:"refresh" doc:"Id of an existing channel to reconnect, or the id of its account on the platform."`
}

// SocialAddress holds the URL that a person opens to grant access. The URL can be used once, within
// an hour.
type SocialAddress struct {
	URL string `json:"url" doc:"URL that a person opens to connect the account."`
}

type socialOutput struct{ Body SocialAddress }

func (a *API) socialURL(ctx context.Context, in *socialInput) (*socialOutput, error) {
	url, err := a.deps.Connectors.Begin(ctx, request.Principal(ctx), publishing.BeginConnect{
		Connector: in.Integration, Refresh: in.Refresh, OAuthOnly: true,
	})
	if err != nil {
		return nil, err
	}
	return &socialOutput{Body: SocialAddress{URL: url}}, nil
}

// Authorize returns the endpoint that starts connecting a channel by OAuth, unless the organization
// already has a working channel on the platform.
func (a *API) Authorize() route.Endpoint {
	d := route.Describe("Connecting channels", "Start connecting an account", 400, 402, 404, 413)
	d.Description = "The owner of the account must open url in a browser. The URL works only once and expires after " +
		"an hour. GET /integrations then lists the channel. If you already have a working channel on the platform and force is " +
		"not true, the response contains authorized: true and no url. 402: the plan allows no more channels. " +
		"The instance's channel limit is checked when the account is connected."
	d.DefaultStatus = http.StatusCreated
	return route.JSON(d, a.authorize)
}

// AuthorizeRequest is the optional body of POST /connectors/{id}/authorize.
type AuthorizeRequest struct {
	Refresh string `json:"refresh,omitempty" maxLength:"1024" doc:"Id of an existing channel to reconnect."`
	Force   bool   `json:"force,omitempty" doc:"Connect another account even if the organization already has a working channel on the platform."`
}

type authorizeInput struct {
	ID   string `path:"id" doc:"Platform."`
	Body *AuthorizeRequest
}

// AuthorizeResponse holds the URL to open in a browser. If an existing channel on the platform
// works, URL is empty and Authorized is true.
type AuthorizeResponse struct {
	URL        string `json:"url,omitempty" doc:"URL that a person opens to connect an account; absent if authorized is true."`
	Authorized bool   `json:"authorized,omitempty" doc:"true if the organization already has a working channel on the platform."`
}

type authorizeOutput struct{ Body AuthorizeResponse }

func (a *API) authorize(ctx context.Context, in *authorizeInput) (*authorizeOutput, error) {
	asked := AuthorizeRequest{}
	if in.Body != nil {
		asked = *in.Body
	}
	cmd := publishing.BeginConnect{Connector: in.ID, Refresh: asked.Refresh}
	got, err := a.deps.Connectors.Authorize(ctx, request.Principal(ctx), cmd, asked.Force)
	if err != nil {
		return nil, err
	}
	return &authorizeOutput{Body: AuthorizeResponse{URL: got.URL, Authorized: got.URL == ""}}, nil
}
