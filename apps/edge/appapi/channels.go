package appapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"crier/apps/edge/publicv1"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/fault"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/tenancy"
)

// ListPlatforms returns the endpoint that lists the platforms of this instance. The list is public: default values that
// are addresses are left out.
func (a *API) ListPlatforms() route.Endpoint {
	return route.JSON(describe("Channels", "List the platforms of this instance"), a.catalogue)
}

// Catalogue lists the platforms of this instance. All of them are in Social; Article is always empty.
type Catalogue struct {
	Social  []Platform `json:"social"`
	Article []Platform `json:"article"`
}

// Platform is one entry of the catalogue. IsExternal, IsWeb3 and IsChromeExtension are always false.
type Platform struct {
	Name              string          `json:"name"`
	Identifier        string          `json:"identifier"`
	ToolTip           string          `json:"toolTip,omitempty"`
	Editor            string          `json:"editor" enum:"none,normal,markdown,html"`
	IsExternal        bool            `json:"isExternal"`
	IsWeb3            bool            `json:"isWeb3"`
	IsChromeExtension bool            `json:"isChromeExtension"`
	CustomFields      []PlatformField `json:"customFields,omitempty" doc:"Form of a platform with credentials."`
}

// PlatformField is one input of the form of a platform that is connected by credentials.
type PlatformField struct {
	Key          string `json:"key"`
	Label        string `json:"label"`
	DefaultValue string `json:"defaultValue,omitempty"`
	Validation   string `json:"validation" doc:"A regular expression."`
	Type         string `json:"type" enum:"text,password"`
	Hint         string `json:"hint,omitempty"`
}

type catalogueOutput struct{ Body Catalogue }

func (a *API) catalogue(context.Context, *struct{}) (*catalogueOutput, error) {
	return &catalogueOutput{Body: catalogueOf(a.deps.Channels.Catalogue())}, nil
}

func catalogueOf(all []connector.Descriptor) Catalogue {
	out := Catalogue{Social: make([]Platform, 0, len(all)), Article: []Platform{}}
	for _, d := range all {
		p := Platform{Name: d.Name, Identifier: d.ID, ToolTip: d.ToolTip, Editor: d.Editor}
		for _, f := range d.Fields {
			if strings.Contains(f.DefaultValue, "://") {
				f.DefaultValue = "" // the list is public, and the address may be of an internal network
			}
			p.CustomFields = append(p.CustomFields, PlatformField{
				Key: f.Key, Label: f.Label, DefaultValue: f.DefaultValue, Validation: f.Validation, Type: f.Type, Hint: f.Hint,
			})
		}
		out.Social = append(out.Social, p)
	}
	return out
}

// BeginConnect returns the endpoint of the first step of connecting a channel. It accepts only return addresses of the
// dashboard and of this service, so that it cannot redirect to other sites.
func (a *API) BeginConnect() route.Endpoint {
	return route.JSON(describe("Channels", "Begin connecting a channel", 400, 402, 404), a.begin)
}

type beginInput struct {
	Integration string `path:"integration" doc:"Platform."`
	Refresh     string `query:"refresh" doc:"Id of an existing channel to reconnect."`
	ExternalURL string `query:"externalUrl" doc:"Address of the server, on platforms with many servers."`
	RedirectURL string `query:"redirectUrl" doc:"Where to redirect the browser when the channel is connected."`
	Onboarding  string `query:"onboarding" doc:"true during the onboarding."`
}

// Address is the URL of the next step. For a platform that is connected by credentials it is the state of the second
// step.
type Address struct {
	URL string `json:"url"`
}

type addressOutput struct{ Body Address }

func (a *API) begin(ctx context.Context, in *beginInput) (*addressOutput, error) {
	if !a.isReturnURL(in.RedirectURL) {
		return nil, &fault.Error{Kind: fault.Invalid, Op: "appapi.begin", Message: "The query is not valid.",
			Fields: []fault.Field{{
				Name: "redirectUrl", Message: "must be an address of the dashboard or of this service, or a path of it",
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

// isReturnURL returns whether the dashboard may be redirected to s after the channel is connected: nothing, a path of
// this service, or a URL with one of our origins. Others, such as javascript:, are refused.
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
		return u.User == nil && slices.Contains(a.cfg.Origins, u.Scheme+"://"+strings.ToLower(u.Host))
	}
}

// FinishConnect returns the endpoint of the second step of connecting a channel. It needs no session: the state of the
// first step names the principal.
func (a *API) FinishConnect() route.Endpoint {
	d := describe("Channels", "Finish connecting a channel", 400, 402, 409, 413, 502)
	d.DefaultStatus = http.StatusCreated
	return route.JSON(d, a.finish)
}

// ConnectIntegrationDto is the body that finishes connecting a channel: the form of the person, or the code of the
// platform.
type ConnectIntegrationDto struct {
	State    string   `json:"state" minLength:"1" maxLength:"1000"`
	Code     string   `json:"code" maxLength:"100000"`
	Timezone Timezone `json:"timezone,omitempty"`
	Refresh  string   `json:"refresh,omitempty" doc:"Id of an existing channel to reconnect."`
}

// TransformSchema is called by huma. It adds the descriptions that are too long for a struct tag.
func (ConnectIntegrationDto) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Properties["code"].Description = "The code of the platform. For a platform with credentials it is the base64 " +
		"of a JSON object with the fields of the form."
	return s
}

type finishInput struct {
	Integration string `path:"integration" doc:"Platform."`
	Body        ConnectIntegrationDto
}

// ConnectedChannel is the connected channel, without its credentials.
type ConnectedChannel struct {
	publicv1.Channel
	InternalID     string `json:"internalId" doc:"Id of the account on the platform."`
	Type           string `json:"type"`
	Timezone       string `json:"timezone" doc:"An IANA name, or a fixed offset such as +05:30."`
	InBetweenSteps bool   `json:"inBetweenSteps"`
	Onboarding     bool   `json:"onboarding"`
	Pages          []Page `json:"pages" doc:"The accounts to choose from when inBetweenSteps is true."`
	ReturnURL      string `json:"returnURL,omitempty"`
}

type finishOutput struct{ Body ConnectedChannel }

func (a *API) finish(ctx context.Context, in *finishInput) (*finishOutput, error) {
	if err := a.admitLink(ctx, in.Body.State); err != nil {
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
		Channel: publicv1.ChannelRecord(res.Channel), InternalID: res.Channel.AccountID, Type: "social",
		Timezone: res.Channel.Timezone, Onboarding: res.Onboarding, Pages: pagesOf(res.Candidates), ReturnURL: res.ReturnURL,
		InBetweenSteps: len(res.Candidates) > 0,
	}}, nil
}

// formFields decodes the code of a connector with a form: the base64 of a JSON object of the form's fields. It returns
// Invalid for any other code.
func formFields(code string) (map[string]string, error) {
	refusal := fault.New(fault.Invalid, "appapi.formFields",
		"The code must be the base64 form of a JSON object with the form's fields.")
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
