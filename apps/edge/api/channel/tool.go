package channel

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/fault"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/tenancy"
)

// Function returns the endpoint that runs a tool of a channel's platform. If the platform fails or
// the channel must be reconnected, the endpoint responds with false, whereas Trigger's endpoint
// responds with an error.
func (a *API) Function() route.Endpoint {
	d := route.Describe("Channels", "Run a channel tool; returns false if the platform fails", 400, 404, 413)
	d.DefaultStatus = http.StatusCreated
	return route.JSON(d, a.function)
}

// IntegrationFunctionDto is the body of POST /integrations/function.
type IntegrationFunctionDto struct {
	Name string         `json:"name,omitempty" maxLength:"100" doc:"Required."`
	ID   string         `json:"id" doc:"Channel id."`
	Data map[string]any `json:"data,omitempty" doc:"The tool's input fields."`
}

type functionInput struct{ Body IntegrationFunctionDto }

type functionOutput struct{ Body any }

func (a *API) function(ctx context.Context, in *functionInput) (*functionOutput, error) {
	cmd := publishing.TriggerTool{Channel: in.Body.ID, Name: in.Body.Name, Data: in.Body.Data}
	out, err := a.deps.Tools.Trigger(ctx, request.Principal(ctx), cmd)
	switch {
	case fault.Is(err, fault.Upstream), fault.Is(err, fault.Unauthenticated):
		return &functionOutput{Body: false}, nil
	case err != nil:
		return nil, err
	}
	return &functionOutput{Body: out}, nil
}

// ChannelSettings returns the endpoint that gets the rules, settings and tools of a channel's
// platform.
func (a *API) ChannelSettings() route.Endpoint {
	return route.JSON(route.Described(route.Describe("Channels", "Get a channel's rules, settings and tools", 404),
		"Use this operation before you create posts for a channel: settings is the schema of posts[].settings in "+
			"POST /posts, and maxLength is the maximum length of a part."), a.channelSettings)
}

// SettingsSchema is the JSON Schema for a post's settings. An empty schema is encoded as a sentence
// saying that the platform has no settings.
type SettingsSchema json.RawMessage

// MarshalJSON returns the schema, or the sentence if the schema is empty. The error is always nil.
// encoding/json checks the syntax of the schema.
func (s SettingsSchema) MarshalJSON() ([]byte, error) {
	if len(s) == 0 {
		return []byte(`"This platform has no settings."`), nil
	}
	return s, nil
}

// Schema returns a schema that allows an object or a string.
func (SettingsSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{
		{Type: huma.TypeObject, AdditionalProperties: true}, {Type: huma.TypeString},
	}}
}

// ToolField describes one field of a tool's input.
type ToolField struct {
	Key         string `json:"key" doc:"Name of the field."`
	Type        string `json:"type" enum:"string,number,boolean" doc:"JSON type of the field's value."`
	Description string `json:"description" doc:"What the value means."`
	Required    bool   `json:"required" doc:"Whether the field is required."`
}

// Tool is a tool that can be run with POST /integration-trigger/{id}.
type Tool struct {
	MethodName  string      `json:"methodName" doc:"Name of the tool in POST /integration-trigger/{id}."`
	Description string      `json:"description" doc:"What the tool does."`
	DataSchema  []ToolField `json:"dataSchema" doc:"The fields that the tool accepts in data."`
}

// ChannelRules holds the rules for a channel's posts, and the channel's tools.
type ChannelRules struct {
	Rules      string         `json:"rules" doc:"The platform's rules, as text."`
	MaxLength  int            `json:"maxLength" doc:"Maximum length of one part, in lengthUnit."`
	LengthUnit string         `json:"lengthUnit" enum:"graphemes,utf16,codepoints,bytes" doc:"The unit of maxLength."`
	Settings   SettingsSchema `json:"settings" doc:"JSON Schema of posts[].settings in POST /posts, or a sentence if the platform has no settings."`
	Tools      []Tool         `json:"tools" doc:"The tools that can be run with POST /integration-trigger/{id}."`
}

// RulesResponse is the response of GET /integration-settings/{id}.
type RulesResponse struct {
	Output ChannelRules `json:"output" doc:"What the channel accepts."`
}

type rulesOutput struct{ Body RulesResponse }

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
	return &rulesOutput{Body: RulesResponse{Output: out}}, nil
}

// Trigger returns the endpoint that runs a tool of a channel's platform.
func (a *API) Trigger() route.Endpoint {
	d := route.Describe("Channels", "Run a channel tool", 400, 404, 413, 502)
	d.Description = "You can run only the tools that GET /integration-settings/{id} lists. 401 can also mean that " +
		"the platform no longer accepts the channel's credentials and that the channel must be reconnected."
	d.DefaultStatus = http.StatusCreated
	return route.JSON(d, a.trigger)
}

// TriggerRequest is the body of POST /integration-trigger/{id}. A missing method is rejected only
// after the channel has been looked up, so a request for an unknown channel returns 404.
type TriggerRequest struct {
	MethodName string         `json:"methodName,omitempty" maxLength:"100" doc:"Required."`
	Data       map[string]any `json:"data,omitempty" doc:"The tool's input fields."`
}

type triggerInput struct {
	ID   string `path:"id" doc:"Channel id."`
	Body TriggerRequest
}

// ToolOutput is the response of POST /integration-trigger/{id}.
type ToolOutput struct {
	Output any `json:"output" doc:"The platform's response, in the tool's own format."`
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

// Tools describes a channel's platform and runs its tools. Methods return NotFound if the channel
// does not exist.
type Tools interface {
	// Platform returns the platform's descriptor and tools.
	Platform(ctx context.Context, p tenancy.Principal, channel string) (connector.Descriptor, []connector.Tool, error)
	// Trigger runs a tool and returns its output. It returns NotFound if Platform does not list the
	// tool, and Invalid if the data is invalid. It returns Unauthenticated if the channel must be
	// reconnected, and Upstream if the platform fails.
	Trigger(ctx context.Context, p tenancy.Principal, cmd publishing.TriggerTool) (json.RawMessage, error)
}
