package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"crier/apps/edge/mcp/argument"
	"crier/apps/edge/record"
	"crier/platform/fault"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/tenancy"
)

// These are the names of tools to which other tools refer.
const (
	toolListChannels = "service_list_channels"
	toolListGroups   = "service_list_groups"
	toolSchema       = "service_get_channel_schema"
	toolCreatePost   = "service_create_post"
	toolListPosts    = "service_list_posts"
	toolGetPost      = "service_get_post"
	toolUpload       = "service_upload_from_url"
	toolFindSlot     = "service_find_slot"
	toolAskApproval  = "service_request_approval"
	toolOverview     = "service_get_overview"
)

// channelTools are the tools for channels.
type channelTools struct{ deps Deps }

func (a channelTools) all() []*tool {
	return []*tool{a.listChannels(), a.listGroups(), a.channelSchema(), a.triggerTool()}
}

// channelAnswer is a channel in an answer.
type channelAnswer struct {
	ID            string           `json:"id"`
	Name          string           `json:"name"`
	Platform      string           `json:"platform"`
	Display       string           `json:"display"`
	Picture       string           `json:"picture,omitempty"`
	Disabled      bool             `json:"disabled"`
	Type          string           `json:"type"`
	Customer      *record.Customer `json:"customer,omitempty"`
	RefreshNeeded bool             `json:"refreshNeeded"`
	Timezone      string           `json:"timezone"`
	Now           string           `json:"now"`
	LocalTime     string           `json:"localTime"`
}

func channelOf(c publishing.Channel, now time.Time) channelAnswer {
	at := momentIn(now, c.Timezone)
	out := channelAnswer{
		ID: c.ID.String(), Name: c.Name, Platform: c.Connector, Display: c.Profile, Picture: c.Picture,
		Disabled: c.Disabled,
		Type:     "social", RefreshNeeded: c.RefreshNeeded, Timezone: at.Zone, Now: at.UTC, LocalTime: at.Local,
	}
	if c.Customer != nil {
		out.Customer = &record.Customer{ID: c.Customer.ID.String(), Name: c.Customer.Name}
	}
	return out
}

// channelProperties returns the properties of a channelAnswer.
func channelProperties() properties {
	return properties{
		"id": str("Channel id: integrationId in other tools."), "name": str("Name."),
		"platform": str("Platform, such as bluesky."), "display": str("Handle of the account."),
		"picture":  str("URL of the account's picture."),
		"disabled": flag("true: publishes nothing."), "type": str("Always social."),
		"customer":      object("Group of the channel.", properties{"id": str("Group id."), "name": str("Name.")}, "id", "name"),
		"refreshNeeded": flag("true: nothing is published until a person reconnects the account."),
		"timezone":      str("Time zone."), "now": date("Current time, UTC."),
		"localTime": date("Current time in timezone."),
	}
}

type listChannelsInput struct {
	Group  string `json:"group"`
	Cursor string `json:"cursor"`
}

func (a channelTools) listChannels() *tool {
	return &tool{
		name: toolListChannels, olderName: "integrationList", title: "List channels", idempotent: true,
		description: "List the connected social accounts. Call this first: other tools take a channel's id as " +
			"integrationId. Posts for a channel that is disabled or has refreshNeeded are not published.",
		input: arguments(properties{
			"group":  str("Only this group's channels. Ids: service_list_groups.").From(toolListGroups),
			"cursor": cursor(),
		}),
		output: answers(
			list("Channels.", object("A channel.", channelProperties(),
				"id", "name", "platform", "disabled", "timezone")),
			properties{"now": date("Current time, UTC."), "nextCursor": nextCursor()},
		),
		run: runner(a.runListChannels),
	}
}

func (a channelTools) runListChannels(ctx context.Context, c *call, in listChannelsInput) (answer, error) {
	at, err := c.readCursor(in.Cursor)
	if err != nil {
		return answer{}, err
	}
	found, err := a.deps.Channels.List(ctx, c.p, in.Group)
	if err != nil {
		return answer{}, err
	}
	if len(found) == 0 && in.Group != "" {
		if err := checkGroup(ctx, a.deps.Channels, c.p, in.Group, "group"); err != nil {
			return answer{}, err
		}
	}
	all := make([]channelAnswer, 0, len(found))
	for _, x := range found {
		all = append(all, channelOf(x, c.now))
	}
	part, next, err := page(c, at, all, func(x channelAnswer) string { return x.ID })
	return answer{Output: part, Now: record.FormatTime(c.now), NextCursor: next}, err
}

// checkGroup returns a failure if the group does not exist. field is the argument that contains the
// group's id.
func checkGroup(ctx context.Context, channels Channels, p tenancy.Principal, group, field string) error {
	known, err := channels.Customers(ctx, p)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(known, func(x publishing.Customer) bool { return strings.EqualFold(x.ID.String(), group) }) {
		return nil
	}
	return &failure{
		Code: string(fault.NotFound), Field: field, Message: "There is no such group.",
		Next: &nextCall{Tool: toolListGroups, Arguments: map[string]any{}},
	}
}

type listGroupsInput struct {
	Cursor string `json:"cursor"`
}

func (a channelTools) listGroups() *tool {
	return &tool{
		name: toolListGroups, olderName: "groupList", title: "List channel groups", idempotent: true,
		description: "List the groups of channels. A group holds the channels of one customer, such as an agency's client.",
		input:       arguments(properties{"cursor": cursor()}),
		output: answers(
			list("Groups.", object("A group.", properties{"id": str("Group id."), "name": str("Name.")}, "id", "name")),
			properties{"nextCursor": nextCursor()},
		),
		run: runner(a.runListGroups),
	}
}

func (a channelTools) runListGroups(ctx context.Context, c *call, in listGroupsInput) (answer, error) {
	at, err := c.readCursor(in.Cursor)
	if err != nil {
		return answer{}, err
	}
	found, err := a.deps.Channels.Customers(ctx, c.p)
	if err != nil {
		return answer{}, err
	}
	all := make([]record.Customer, 0, len(found))
	for _, x := range found {
		all = append(all, record.Customer{ID: x.ID.String(), Name: x.Name})
	}
	part, next, err := page(c, at, all, func(x record.Customer) string { return x.ID })
	return answer{Output: part, NextCursor: next}, err
}

type channelSchemaInput struct {
	Platform string `json:"platform"`
	Channel  string `json:"integrationId"`
}

// platformAnswer holds the rules of a platform.
type platformAnswer struct {
	Platform   string          `json:"platform"`
	Rules      string          `json:"rules"`
	MaxLength  int             `json:"maxLength"`
	LengthUnit string          `json:"lengthUnit"`
	Settings   json.RawMessage `json:"settings,omitempty"`
	Tools      []toolAnswer    `json:"tools"`
}

// toolAnswer is a tool of a platform.
type toolAnswer struct {
	MethodName  string            `json:"methodName"`
	Description string            `json:"description"`
	DataSchema  []toolFieldAnswer `json:"dataSchema"`
}

// toolFieldAnswer is an input of a platform's tool.
type toolFieldAnswer struct {
	Key         string `json:"key"`
	Type        string `json:"type"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
}

func (a channelTools) channelSchema() *tool {
	field := object("An input.", properties{
		"key": str("Key to send."), "type": str("string, number or boolean."), "description": str("Meaning."),
		"required": flag("true: must be sent."),
	}, "key", "type", "required")
	return &tool{
		name: toolSchema, olderName: "integrationSchema", title: "Get a platform's rules", idempotent: true,
		description: "Get what a platform allows in a post: rules, maximum length, the settings that service_create_post " +
			"takes, and the platform's own tools for service_trigger_channel_tool. Send integrationId or platform. Tools " +
			"are listed only if a channel on the platform is connected.",
		input: arguments(properties{
			"integrationId": channelID(),
			"platform":      str("Platform, such as bluesky, instead of integrationId.").AsWord(),
			"isPremium":     flag("Has no effect."),
		}),
		output: answers(object("The rules.", properties{
			"platform": str("Platform."), "rules": str("Rules in words."),
			"maxLength":  number("Maximum length of one part."),
			"lengthUnit": str("Unit of maxLength: graphemes, utf16, codepoints or bytes."),
			"settings":   {Type: argument.TypeObject, Description: "JSON Schema of settings. Absent if there are none."},
			"tools": list("The platform's tools.", object("A tool.", properties{
				"methodName": str("Name to send."), "description": str("What it does."),
				"dataSchema": list("Its inputs.", field),
			}, "methodName", "dataSchema")),
		}, "platform", "rules", "maxLength", "tools"), nil),
		run: runner(a.runChannelSchema),
	}
}

func (a channelTools) runChannelSchema(ctx context.Context, c *call, in channelSchemaInput) (answer, error) {
	d, tools, err := a.platformOf(ctx, c, in)
	if err != nil {
		return answer{}, err
	}
	out := platformAnswer{
		Platform: d.ID, Rules: d.Rules, MaxLength: d.MaxLength, LengthUnit: string(d.Unit), Settings: d.Settings,
		Tools: make([]toolAnswer, 0, len(tools)),
	}
	for _, t := range tools {
		one := toolAnswer{MethodName: t.Name, Description: t.Description, DataSchema: make([]toolFieldAnswer, 0, len(t.Data))}
		for _, f := range t.Data {
			one.DataSchema = append(one.DataSchema, toolFieldAnswer(f))
		}
		out.Tools = append(out.Tools, one)
	}
	return answer{Output: out}, nil
}

// platformOf returns a platform and its tools. If no channel on the platform is connected,
// platformOf returns no tools, because a tool can run only on a connected channel.
func (a channelTools) platformOf(
	ctx context.Context, c *call, in channelSchemaInput,
) (connector.Descriptor, []connector.Tool, error) {
	if in.Channel != "" {
		d, tools, err := a.deps.Channels.Platform(ctx, c.p, in.Channel)
		return d, tools, noObject(err, "integrationId", toolListChannels)
	}
	if in.Platform == "" {
		return connector.Descriptor{}, nil, &failure{
			Code: argument.CodeMissing, Field: "integrationId", Message: "Send integrationId or platform.",
			Next: &nextCall{Tool: toolListChannels, Arguments: map[string]any{}},
		}
	}
	wanted := strings.ToLower(in.Platform)
	channels, err := a.deps.Channels.List(ctx, c.p, "")
	if err != nil {
		return connector.Descriptor{}, nil, err
	}
	at := slices.IndexFunc(channels, func(x publishing.Channel) bool { return x.Connector == wanted })
	if at >= 0 {
		return a.deps.Channels.Platform(ctx, c.p, channels[at].ID.String())
	}
	allowed := []any{}
	for _, d := range a.deps.Channels.Catalogue() {
		if d.ID == wanted {
			return d, nil, nil
		}
		allowed = append(allowed, d.ID)
	}
	return connector.Descriptor{}, nil, &failure{
		Code: argument.CodeInvalid, Field: "platform", Message: "This service has no such platform.", Allowed: allowed,
	}
}
