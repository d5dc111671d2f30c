package oauth

import (
	"context"

	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/oidc"
	"crier/tenancy"
)

// OAuthAppRecord is the organization's own application.
type OAuthAppRecord struct {
	ID          string  `json:"id"`
	ClientID    string  `json:"clientId"`
	Name        string  `json:"name"`
	Description string  `json:"description"`
	PictureID   *string `json:"pictureId" nullable:"true"`
	RedirectURL string  `json:"redirectUrl"`
	LongLived   bool    `json:"longLived" doc:"Whether access tokens never expire."`
	CreatedAt   string  `json:"createdAt" format:"date-time"`
}

func newOAuthAppRecord(app oidc.App) OAuthAppRecord {
	out := OAuthAppRecord{
		ID: app.ID.String(), ClientID: app.ClientID, Name: app.Name, Description: app.Description,
		LongLived: app.LongLived,
		CreatedAt: record.FormatTime(app.CreatedAt),
	}
	if len(app.RedirectURIs) > 0 {
		out.RedirectURL = app.RedirectURIs[0]
	}
	if app.Picture != "" {
		out.PictureID = &app.Picture
	}
	return out
}

// OAuthAppRequest describes the organization's application.
type OAuthAppRequest struct {
	Name        string `json:"name" minLength:"1" maxLength:"100" example:"Newsroom"`
	Description string `json:"description,omitempty" maxLength:"500"`
	PictureID   string `json:"pictureId,omitempty" maxLength:"64" doc:"Id of an uploaded picture."`
	RedirectURL string `json:"redirectUrl" minLength:"1" maxLength:"2048" example:"https://newsroom.example/callback"`
	LongLived   bool   `json:"longLived,omitempty" doc:"Lets access tokens work until they are revoked, for programs that cannot refresh them."`
}

func (r OAuthAppRequest) app(p tenancy.Principal) oidc.App {
	return oidc.App{
		Client: oidc.Client{
			Kind: oidc.ClientStatic, Name: r.Name, RedirectURIs: []string{r.RedirectURL}, Auth: oidc.AuthPost,
			Org:    p.Org,
			Scopes: oidc.AllScopes(), LongLived: r.LongLived,
		},
		Description: r.Description, Picture: r.PictureID,
	}
}

// CreateOAuthAppRequest is the body of POST /user/oauth-app.
type CreateOAuthAppRequest struct {
	OAuthAppRequest
	record.ProofRequest
}

// NewAppResponse is the response to POST /user/oauth-app.
type NewAppResponse struct {
	OAuthAppRecord
	Secret string `json:"clientSecret" doc:"The client secret. It is returned only in this response."`
}

// AppSecretResponse is the response to POST /user/oauth-app/rotate-secret.
type AppSecretResponse struct {
	ClientID string `json:"clientId"`
	Secret   string `json:"clientSecret" doc:"The new client secret. It is returned only in this response."`
}

// AppDeletedResponse is the response to DELETE /user/oauth-app.
type AppDeletedResponse struct {
	Deleted bool `json:"deleted" doc:"Always true."`
}

type (
	appOutput       struct{ Body OAuthAppRecord }
	newAppOutput    struct{ Body NewAppResponse }
	appSecretOutput struct{ Body AppSecretResponse }
	deletedOutput   struct{ Body AppDeletedResponse }

	createAppInput struct{ Body CreateOAuthAppRequest }
	updateAppInput struct{ Body OAuthAppRequest }
	rotateAppInput struct{ Body *record.ProofRequest }
)

const needsProof = "If you signed in more than 10 minutes ago, send your password and, if you have a second " +
	"factor, a code."

// App returns the endpoint for the organization's application.
func (a *apps) App() route.Endpoint {
	return route.JSON(route.Describe("Agents", "Get the organization's OAuth application", 404), a.app)
}

func (a *apps) app(ctx context.Context, _ *struct{}) (*appOutput, error) {
	if err := available("oauth.app", a.deps.Apps); err != nil {
		return nil, err
	}
	app, err := a.deps.Apps.App(ctx, request.Principal(ctx))
	if err != nil {
		return nil, err
	}
	return &appOutput{Body: newOAuthAppRecord(app)}, nil
}

// CreateApp returns the endpoint that creates the organization's application.
func (a *apps) CreateApp() route.Endpoint {
	d := route.Created("Agents", "Create the organization's OAuth application", 400, 409, 413)
	return route.JSON(route.Described(d, "An organization has at most one application. "+needsProof), a.createApp)
}

func (a *apps) createApp(ctx context.Context, in *createAppInput) (out *newAppOutput, err error) {
	err = a.proven(ctx, in.Body.ProofRequest, func(ctx context.Context, p tenancy.Principal) error {
		app, secret, err := a.deps.Apps.CreateApp(ctx, p, in.Body.app(p))
		out = &newAppOutput{Body: NewAppResponse{OAuthAppRecord: newOAuthAppRecord(app), Secret: secret}}
		return err
	})
	return out, err
}

// UpdateApp returns the endpoint that changes the organization's application.
func (a *apps) UpdateApp() route.Endpoint {
	return route.JSON(route.Describe("Agents", "Change the organization's OAuth application", 400, 404, 413), a.updateApp)
}

func (a *apps) updateApp(ctx context.Context, in *updateAppInput) (*appOutput, error) {
	if err := available("oauth.updateApp", a.deps.Apps); err != nil {
		return nil, err
	}
	p := request.Principal(ctx)
	app, err := a.deps.Apps.UpdateApp(ctx, p, in.Body.app(p))
	if err != nil {
		return nil, err
	}
	return &appOutput{Body: newOAuthAppRecord(app)}, nil
}

// DeleteApp returns the endpoint that deletes the organization's application.
func (a *apps) DeleteApp() route.Endpoint {
	return route.JSON(route.Described(route.Describe("Agents", "Delete the organization's OAuth application", 404),
		"All of its tokens stop working at once."), a.deleteApp)
}

func (a *apps) deleteApp(ctx context.Context, _ *struct{}) (*deletedOutput, error) {
	if err := available("oauth.deleteApp", a.deps.Apps); err != nil {
		return nil, err
	}
	if err := a.deps.Apps.DeleteApp(ctx, request.Principal(ctx)); err != nil {
		return nil, err
	}
	return &deletedOutput{Body: AppDeletedResponse{Deleted: true}}, nil
}

// RotateAppSecret returns the endpoint that replaces the secret of the organization's application.
func (a *apps) RotateAppSecret() route.Endpoint {
	d := route.Created("Agents", "Replace the secret of the organization's OAuth application", 400, 404, 413)
	return route.JSON(route.Described(d, "The old secret stops working at once. "+needsProof), a.rotateAppSecret)
}

func (a *apps) rotateAppSecret(ctx context.Context, in *rotateAppInput) (out *appSecretOutput, err error) {
	var proof record.ProofRequest
	if in.Body != nil {
		proof = *in.Body
	}
	err = a.proven(ctx, proof, func(ctx context.Context, p tenancy.Principal) error {
		secret, err := a.deps.Apps.RotateAppSecret(ctx, p)
		if err != nil {
			return err
		}
		app, err := a.deps.Apps.App(ctx, p)
		out = &appSecretOutput{Body: AppSecretResponse{ClientID: app.ClientID, Secret: secret}}
		return err
	})
	return out, err
}

// proven calls do once the person has proven their identity. Attempts count toward the limits for
// logins.
func (a *apps) proven(
	ctx context.Context, sent record.ProofRequest, do func(context.Context, tenancy.Principal) error,
) error {
	if err := available("oauth.proven", a.deps.Apps, a.deps.Prover); err != nil {
		return err
	}
	return a.deps.Gate.ProveIfSent(ctx, sent, func(ctx context.Context, p tenancy.Principal) error {
		if err := a.deps.Prover.ProveLately(ctx, "oauth.proven", p, sent.Proof()); err != nil {
			return err
		}
		return do(ctx, p)
	})
}
