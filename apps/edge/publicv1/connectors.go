package publicv1

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/publishing"
	"crier/publishing/connector"
)

// ListGroups returns the endpoint that lists the channel groups.
func (a *API) ListGroups() route.Endpoint {
	return route.JSON(explain(describe("List the channel groups"),
		"A group has the channels of one customer, such as a client of an agency. Its id is group of GET "+
			"/integrations and of GET /posts."), a.listGroups)
}

type groupsOutput struct{ Body []Customer }

func (a *API) listGroups(ctx context.Context, _ *struct{}) (*groupsOutput, error) {
	list, err := a.deps.Channels.Customers(ctx, request.Principal(ctx))
	if err != nil {
		return nil, err
	}
	out := &groupsOutput{Body: make([]Customer, 0, len(list))}
	for _, c := range list {
		out.Body = append(out.Body, Customer{ID: c.ID.String(), Name: c.Name})
	}
	return out, nil
}

// SocialURL returns the endpoint that begins to connect a channel by OAuth.
func (a *API) SocialURL() route.Endpoint {
	return route.JSON(explain(describe("Get the address at which an account is connected", 400, 402, 409),
		"Open url in the browser of who owns the account, once, within an hour; the channel is in GET "+
			"/integrations then. 402 and 409: the organization has as many channels as it may."), a.socialURL)
}

type socialInput struct {
	Integration string `path:"integration" doc:"Platform."`
	Refresh     string `query:"refresh" doc:"Id of an existing channel to reconnect, or of its account on the platform."`
}

// SocialAddress is the URL to open in a browser. It can be used once, within an hour.
type SocialAddress struct {
	URL string `json:"url" doc:"Where a person connects the account."`
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

// ListConnectors returns the endpoint that lists the platforms of this instance.
func (a *API) ListConnectors() route.Endpoint {
	return route.JSON(explain(describe("List the platforms that channels can be connected to"),
		"Connect an account of one with POST /connectors/{id}/authorize."), a.listConnectors)
}

// Connector is a platform. A planned one cannot be connected yet.
type Connector struct {
	ID           string   `json:"id" doc:"The platform in other routes and answers."`
	Name         string   `json:"name" doc:"Its name for people."`
	Authorized   bool     `json:"authorized" doc:"Accounts can be connected: there is an application, or none is needed."`
	Capabilities []string `json:"capabilities" doc:"Of text, image and video."`
	Features     []string `json:"features" doc:"Of oauth, refresh, analytics, tools and list."`
	Planned      bool     `json:"planned,omitempty" doc:"Not offered yet; only with planned=true."`
}

type connectorsInput struct {
	Planned string `query:"planned" doc:"true: list the platforms too that are planned."`
}

type connectorsOutput struct{ Body []Connector }

func (a *API) listConnectors(ctx context.Context, in *connectorsInput) (*connectorsOutput, error) {
	list, err := a.deps.Connectors.Platforms(ctx, request.Principal(ctx))
	if err != nil {
		return nil, err
	}
	out := &connectorsOutput{Body: make([]Connector, 0, len(list))}
	for _, p := range list {
		out.Body = append(out.Body, Connector{
			ID: p.ID, Name: p.Name, Authorized: p.Authorized, Capabilities: p.Capabilities, Features: p.Abilities,
		})
	}
	if in.Planned != "true" {
		return out, nil
	}
	for _, p := range connector.PlannedPlatforms() {
		out.Body = append(out.Body, Connector{
			ID: p.ID, Name: p.Name, Capabilities: []string{}, Features: []string{}, Planned: true,
		})
	}
	return out, nil
}

// Authorize returns the endpoint that begins to connect a channel by OAuth, unless there is one that works.
func (a *API) Authorize() route.Endpoint {
	d := describe("Begin to connect an account of a platform", 400, 402, 404, 409, 413)
	d.Description = "Open url in the browser of who owns the account, once, within an hour; the channel is in GET " +
		"/integrations then. When a channel of the platform works already, authorized is true and there " +
		"is no url, unless force is true. 402 and 409: the organization has as many channels as it may."
	d.DefaultStatus = http.StatusCreated
	return route.JSON(d, a.authorize)
}

// AuthorizeRequest is the body of POST /connectors/{id}/authorize. It may be absent.
type AuthorizeRequest struct {
	Refresh string `json:"refresh,omitempty" maxLength:"1024" doc:"Id of an existing channel to reconnect."`
	Force   bool   `json:"force,omitempty" doc:"Connect another account although there is a channel that works."`
}

type authorizeInput struct {
	ID   string `path:"id" doc:"Platform."`
	Body *AuthorizeRequest
}

// AuthorizeAnswer has the URL to open in a browser, or Authorized when a channel of the platform works.
type AuthorizeAnswer struct {
	URL        string `json:"url,omitempty" doc:"Where a person connects an account; absent if authorized."`
	Authorized bool   `json:"authorized,omitempty" doc:"A channel of the platform is connected already."`
}

type authorizeOutput struct{ Body AuthorizeAnswer }

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
	return &authorizeOutput{Body: AuthorizeAnswer{URL: got.URL, Authorized: got.URL == ""}}, nil
}

// ChannelSettings returns the endpoint of the rules, the settings and the tools of the platform of a channel.
func (a *API) ChannelSettings() route.Endpoint {
	return route.JSON(explain(describe("Get the rules, the settings and the tools of a channel", 404),
		"Read it before you write posts for a channel: settings has the schema of posts[].settings of "+
			"POST /posts, and maxLength says how long a part may be."), a.channelSettings)
}

// SettingsSchema is the JSON schema of the settings of a post, or a sentence when the platform has none.
type SettingsSchema json.RawMessage

// MarshalJSON returns the schema or the sentence. The error is always nil; encoding/json checks the syntax.
func (s SettingsSchema) MarshalJSON() ([]byte, error) {
	if len(s) == 0 {
		return []byte(`"This platform has no settings."`), nil
	}
	return s, nil
}

// Schema describes an object or a string.
func (SettingsSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{
		{Type: huma.TypeObject, AdditionalProperties: true}, {Type: huma.TypeString},
	}}
}

// ToolField is one member of the data of a tool.
type ToolField struct {
	Key         string `json:"key" doc:"Name of the member."`
	Type        string `json:"type" enum:"string,number,boolean" doc:"JSON type of its value."`
	Description string `json:"description" doc:"What it is."`
	Required    bool   `json:"required" doc:"It must be there."`
}

// Tool can be run with POST /integration-trigger/{id}.
type Tool struct {
	MethodName  string      `json:"methodName" doc:"Names the tool in POST /integration-trigger/{id}."`
	Description string      `json:"description" doc:"What it does."`
	DataSchema  []ToolField `json:"dataSchema" doc:"The members of data that it takes."`
}

// ChannelRules are what a post of a channel must keep to.
type ChannelRules struct {
	Rules      string         `json:"rules" doc:"The rules of the platform, as text."`
	MaxLength  int            `json:"maxLength" doc:"Of one part, in lengthUnit."`
	LengthUnit string         `json:"lengthUnit" enum:"graphemes,utf16,codepoints,bytes" doc:"What maxLength counts."`
	Settings   SettingsSchema `json:"settings" doc:"JSON Schema of posts[].settings of POST /posts, or a sentence if there are none."`
	Tools      []Tool         `json:"tools" doc:"What the platform can be asked for, with POST /integration-trigger/{id}."`
}

// RulesAnswer is the answer of GET /integration-settings/{id}.
type RulesAnswer struct {
	Output ChannelRules `json:"output" doc:"What the channel takes."`
}

type rulesOutput struct{ Body RulesAnswer }

func (a *API) channelSettings(ctx context.Context, in *channelInput) (*rulesOutput, error) {
	d, tools, err := a.deps.Tools.Platform(ctx, request.Principal(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	out := ChannelRules{
		Rules: d.Rules, MaxLength: d.MaxLength, LengthUnit: string(d.Unit), Settings: SettingsSchema(d.Settings),
		Tools: make([]Tool, 0, len(tools)),
	}
	for _, t := range tools {
		tool := Tool{MethodName: t.Name, Description: t.Description, DataSchema: make([]ToolField, 0, len(t.Data))}
		for _, f := range t.Data {
			tool.DataSchema = append(tool.DataSchema, ToolField(f))
		}
		out.Tools = append(out.Tools, tool)
	}
	return &rulesOutput{Body: RulesAnswer{Output: out}}, nil
}

// Trigger returns the endpoint that runs a tool of the platform of a channel.
func (a *API) Trigger() route.Endpoint {
	d := describe("Run a tool of a channel", 400, 404, 413, 502)
	d.Description = "Only the tools of GET /integration-settings/{id} can be run. 401 also means that the platform no " +
		"longer accepts our access, and that the channel must be connected again."
	d.DefaultStatus = http.StatusCreated
	return route.JSON(d, a.trigger)
}

// TriggerRequest is the body of POST /integration-trigger/{id}. The service refuses one without a method, after it has
// found the channel, so that an unknown channel is 404.
type TriggerRequest struct {
	MethodName string         `json:"methodName,omitempty" maxLength:"100" doc:"Required."`
	Data       map[string]any `json:"data,omitempty" doc:"The members that the tool declares."`
}

type triggerInput struct {
	ID   string `path:"id" doc:"Channel id."`
	Body TriggerRequest
}

// ToolOutput is what a tool has returned.
type ToolOutput struct {
	Output any `json:"output" doc:"What the platform answered, in the form of the tool."`
}

type triggerOutput struct{ Body ToolOutput }

func (a *API) trigger(ctx context.Context, in *triggerInput) (*triggerOutput, error) {
	cmd := publishing.TriggerTool{Channel: in.ID, Name: in.Body.MethodName, Data: in.Body.Data}
	out, err := a.deps.Tools.Trigger(ctx, request.Principal(ctx), cmd)
	if err != nil {
		return nil, err
	}
	return &triggerOutput{Body: ToolOutput{Output: out}}, nil
}
