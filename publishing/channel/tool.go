package channel

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"

	"crier/platform/fault"
	"crier/publishing"
	"crier/publishing/access"
	"crier/publishing/connector"
	"crier/tenancy"
)

// Tools lists and runs the tools that connectors offer for channels. It is safe for concurrent use.
type Tools struct {
	connectors *connector.Registry
	access     *access.Refresher
	log        *slog.Logger
}

// NewTools returns Tools that log failed runs to log.
func NewTools(connectors *connector.Registry, a *access.Refresher, log *slog.Logger) *Tools {
	return &Tools{connectors: connectors, access: a, log: log}
}

// Platform returns the descriptor and the tools of a channel's platform. It returns NotFound if the
// channel is unknown or this instance does not support its platform.
func (s *Tools) Platform(
	ctx context.Context, p tenancy.Principal, channel string,
) (connector.Descriptor, []connector.Tool, error) {
	const op = "publishing.Platform"
	a, err := s.access.Find(ctx, p.Org, op, channel)
	if err != nil {
		return connector.Descriptor{}, nil, err
	}
	c, ok := s.connectors.Get(a.Channel.Connector)
	if !ok {
		return connector.Descriptor{}, nil, fault.New(fault.NotFound, op,
			"This instance does not support the channel's platform.")
	}
	tools := []connector.Tool{}
	if box, ok := connector.ToolBoxOf(c); ok {
		tools = box.Tools()
	}
	return c.Describe(), tools, nil
}

// Trigger runs one of the platform's tools for a channel and returns the tool's output as JSON. The
// connector must list the tool. Only data that the tool declares is passed to it.
//
// Trigger returns NotFound for an unknown channel or tool, Invalid for invalid data,
// Unauthenticated if the channel must be reconnected, and Upstream if the platform fails. It
// returns RateLimited in the same cases as access.Refresher.Use.
func (s *Tools) Trigger(
	ctx context.Context, p tenancy.Principal, cmd publishing.TriggerTool,
) (json.RawMessage, error) {
	const op = "publishing.TriggerTool"
	a, err := s.access.Find(ctx, p.Org, op, cmd.Channel)
	if err != nil {
		return nil, err
	}
	if cmd.Name == "" {
		return nil, &fault.Error{Kind: fault.Invalid, Op: op, Message: "The name of the tool is missing.",
			Fields: []fault.Field{{Name: "methodName", Message: "is required"}}}
	}
	box, tool, err := s.tool(a.Channel.Connector, cmd.Name)
	if err != nil {
		return nil, err
	}
	data, err := toolData(tool, cmd.Data)
	if err != nil {
		return nil, err
	}
	var out json.RawMessage
	err = s.access.Use(ctx, a, func(ctx context.Context, c *access.Channel) (err error) {
		out, err = box.Call(ctx, c.Session, tool.Name, data)
		return err
	})
	if err != nil {
		s.log.Warn("a platform tool failed",
			"org", p.Org, "channel", a.Channel.ID, "tool", tool.Name, "error", err)
		return nil, access.Fault(op, err)
	}
	return out, nil
}

// tool returns a platform's tool by name, or NotFound if the connector does not list it.
func (s *Tools) tool(platform, name string) (connector.ToolBox, connector.Tool, error) {
	c, _ := s.connectors.Get(platform)
	box, ok := connector.ToolBoxOf(c)
	if ok {
		tools := box.Tools()
		if i := slices.IndexFunc(tools, func(t connector.Tool) bool { return t.Name == name }); i >= 0 {
			return box, tools[i], nil
		}
	}
	return nil, connector.Tool{}, fault.New(fault.NotFound, "publishing.tool", "This channel has no such tool.")
}

// maxToolText is the maximum length of a string in a tool's data, in bytes.
const maxToolText = 4096

// toolData returns the fields of data that a tool declares. It returns Invalid if a required field
// is missing or a field has the wrong type.
func toolData(tool connector.Tool, data map[string]any) (map[string]any, error) {
	var faults fault.List
	out := map[string]any{}
	for _, f := range tool.Data {
		v, ok := data[f.Key]
		switch {
		case !ok || v == nil:
			if f.Required {
				faults.Add("data."+f.Key, "is required")
			}
		case !hasType(v, f.Type):
			faults.Add("data."+f.Key, "must be a "+f.Type)
		default:
			out[f.Key] = v
		}
	}
	return out, faults.Err("publishing.toolData", "The data of the tool is not valid.")
}

func hasType(v any, want string) bool {
	switch v := v.(type) {
	case string:
		return want == "string" && len(v) <= maxToolText && publishing.Storable(v)
	case float64:
		return want == "number"
	case bool:
		return want == "boolean"
	}
	return false
}
