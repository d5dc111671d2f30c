// Package connect provides the endpoints for connecting channels.
package connect

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"crier/apps/edge/admission"
	"crier/apps/edge/page"
	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/apps/edge/session"
	"crier/platform/fault"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/tenancy"
)

// Deps holds an API's dependencies.
type Deps struct {
	// Origins holds the origins of BASE_URL, FRONTEND_URL and MAIN_URL. Pages may send the browser
	// back only to these origins.
	Origins    []string
	Channels   Channels
	Connects   Connects
	Connectors Connectors
	Apps       Apps
	Gate       *admission.Gate
	Guard      *session.Guard
}

// API provides the endpoints, one per exported method. It is safe for concurrent use.
type API struct {
	deps Deps
	page *page.Page // renders callback.html
}

// New returns an API. It does not check that d is complete.
func New(d Deps) *API { return &API{deps: d, page: newCallbackPage(d.Origins)} }

// Channels lists connectors and connects channels.
type Channels interface {
	// Catalogue returns the descriptors of all connectors of this instance.
	Catalogue() []connector.Descriptor
	// Begin starts connecting a channel. For a platform that uses OAuth, it returns the URL at
	// which a person grants access. For a platform that is connected with credentials, it returns
	// the state for Finish.
	//
	// Begin returns Invalid if the platform is unknown or has no application, or if the channel to
	// reconnect does not exist. It returns Quota if the organization has reached its limit on
	// channels, unless a channel is being reconnected.
	Begin(ctx context.Context, p tenancy.Principal, cmd publishing.BeginConnect) (string, error)
	// Finish completes the connection that Begin started. The state identifies the principal.
	// Finish returns Invalid if the state, the form or a credential is not accepted. It returns
	// Quota or Conflict if a limit on channels has been reached. It returns RateLimited if too many
	// channels are being connected or the platform limits requests.
	//
	// The caller can use the state again if Finish returns RateLimited or rejects a form. The
	// number of forms per state is limited. In all other cases with OAuth, the state is used up
	// before the platform is called.
	Finish(ctx context.Context, cmd publishing.FinishConnect) (publishing.ChannelConnected, error)
}

// BeginConnect returns the endpoint for the first step of connecting a channel. The endpoint
// rejects return URLs outside the dashboard and this service, so that it never redirects to other
// sites.
func (a *API) BeginConnect() route.Endpoint {
	return route.JSON(route.Describe("Connecting channels", "Start connecting a channel", 400, 402, 404), a.begin)
}

type beginInput struct {
	Integration string `path:"integration" doc:"Platform."`
	Refresh     string `query:"refresh" doc:"Id of an existing channel to reconnect."`
	ExternalURL string `query:"externalUrl" doc:"URL of the server, for platforms with many servers."`
	RedirectURL string `query:"redirectUrl" doc:"URL to which the browser is redirected after the channel is connected."`
	Onboarding  string `query:"onboarding" doc:"Whether the channel is connected during onboarding."`
}

// Address holds the URL of the next step. If the platform is connected with credentials, URL holds
// the state for the second step instead.
type Address struct {
	URL string `json:"url"`
}

type addressOutput struct{ Body Address }

func (a *API) begin(ctx context.Context, in *beginInput) (*addressOutput, error) {
	if !a.isReturnURL(in.RedirectURL) {
		return nil, &fault.Error{Kind: fault.Invalid, Op: "connect.begin", Message: "The query is not valid.",
			Fields: []fault.Field{{
				Name: "redirectUrl", Message: "must be a URL of the dashboard or this service, or a path",
			}}}
	}
	cmd := publishing.BeginConnect{
		Connector: in.Integration, Refresh: in.Refresh, ReturnURL: in.RedirectURL, Onboarding: in.Onboarding == "true",
	}
	url, err := a.deps.Channels.Begin(ctx, request.Principal(ctx), cmd)
	if err != nil {
		return nil, err
	}
	return &addressOutput{Body: Address{URL: url}}, nil
}

// isReturnURL reports whether the browser may be redirected to s after the channel is connected. It
// accepts an empty string, a path on this service, and a URL with one of our origins. It rejects
// any other URL, such as a javascript: URL.
func (a *API) isReturnURL(s string) bool {
	u, err := url.Parse(s)
	switch {
	case s == "":
		return true
	case err != nil || strings.ContainsAny(s, "\\\r\n\t"):
		return false
	case u.Scheme == "" && u.Host == "":
		return strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "//")
	default:
		return u.User == nil && slices.Contains(a.deps.Origins, u.Scheme+"://"+strings.ToLower(u.Host))
	}
}

// FinishConnect returns the endpoint for the second step of connecting a channel. The endpoint
// needs no session, because the state from the first step identifies the principal.
func (a *API) FinishConnect() route.Endpoint {
	d := route.Describe("Connecting channels", "Finish connecting a channel", 400, 402, 409, 413, 502)
	d.DefaultStatus = http.StatusCreated
	return route.JSON(d, a.finish)
}

// ConnectIntegrationDto is the request body for the second step of connecting a channel. Code is
// either the platform's code or the encoded form that the person filled in.
type ConnectIntegrationDto struct {
	State    string          `json:"state" minLength:"1" maxLength:"1000"`
	Code     string          `json:"code" maxLength:"100000"`
	Timezone record.Timezone `json:"timezone,omitempty"`
	Refresh  string          `json:"refresh,omitempty" doc:"Id of an existing channel to reconnect."`
}

// TransformSchema implements huma.SchemaTransformer. It adds the descriptions that are too long for
// a struct tag.
func (ConnectIntegrationDto) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Properties["code"].Description = "The code from the platform. For a platform that is connected with " +
		"credentials, a base64-encoded JSON object with the form fields."
	return s
}

type finishInput struct {
	Integration string `path:"integration" doc:"Platform."`
	Body        ConnectIntegrationDto
}

// ConnectedChannel is the channel that was connected, without its credentials.
type ConnectedChannel struct {
	record.Channel
	InternalID     string `json:"internalId" doc:"Id of the account on the platform."`
	Type           string `json:"type"`
	Timezone       string `json:"timezone" doc:"An IANA name, or a fixed offset such as +05:30."`
	InBetweenSteps bool   `json:"inBetweenSteps"`
	Onboarding     bool   `json:"onboarding"`
	Pages          []Page `json:"pages" doc:"The accounts to choose from if inBetweenSteps is true."`
	ReturnURL      string `json:"returnURL,omitempty"`
}

type finishOutput struct{ Body ConnectedChannel }

func (a *API) finish(ctx context.Context, in *finishInput) (*finishOutput, error) {
	if err := a.deps.Gate.AdmitLink(ctx, in.Body.State); err != nil {
		return nil, err
	}
	cmd := publishing.FinishConnect{Connector: in.Integration, State: in.Body.State, Refresh: in.Body.Refresh}
	if a.byOAuth(in.Integration) {
		cmd.Code = in.Body.Code
	} else {
		fields, err := formFields(in.Body.Code)
		if err != nil {
			return nil, err
		}
		cmd.Fields = fields
	}
	zone, err := tenancy.ParseZone(string(in.Body.Timezone))
	if err != nil {
		return nil, err
	}
	cmd.Zone = zone
	res, err := a.deps.Channels.Finish(ctx, cmd)
	if err != nil {
		return nil, err
	}
	return &finishOutput{Body: ConnectedChannel{
		Channel: record.ChannelRecord(res.Channel), InternalID: res.Channel.AccountID, Type: "social",
		Timezone: res.Channel.Timezone, Onboarding: res.Onboarding, Pages: pagesOf(res.Candidates),
		ReturnURL:      res.ReturnURL,
		InBetweenSteps: len(res.Candidates) > 0,
	}}, nil
}

// formFields decodes the code sent for a connector with a form. It returns Invalid unless the code
// is the base64 encoding of a JSON object with the form's fields.
func formFields(code string) (map[string]string, error) {
	refusal := fault.New(fault.Invalid, "connect.formFields",
		"The code must be the base64 encoding of a JSON object with the form fields.")
	raw, err := base64.StdEncoding.DecodeString(code)
	if err != nil {
		raw, err = base64.RawURLEncoding.DecodeString(code)
	}
	if err != nil {
		return nil, refusal
	}
	var fields map[string]string
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil { // null is valid JSON
		return nil, refusal
	}
	return fields, nil
}
