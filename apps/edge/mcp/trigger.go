package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"crier/apps/edge/mcp/argument"
	"crier/platform/fault"
	"crier/publishing"
	"crier/publishing/connector"
)

// pair is a key with its value.
type pair struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// pairs returns the schema for a list of key-value pairs. key and value describe a pair's members.
func pairs(description, key, value string) *schema {
	s := list(description, arguments(properties{
		"key": str(key), "value": anything(value),
	}, "key", "value").As("A key with its value.")).Between(0, maxPairs)
	s.Pairs = true
	return s
}

const maxPairs = 200

type triggerInput struct {
	Channel string `json:"integrationId"`
	Method  string `json:"methodName"`
	Data    []pair `json:"dataSchema"`
	Cursor  string `json:"cursor"`
}

func (a channelTools) triggerTool() *tool {
	return &tool{
		name: "service_trigger_channel_tool", olderName: "triggerTool", title: "Run a platform's tool",
		writes: true, destroys: true, open: true,
		description: "Run one of the tools that service_get_channel_schema lists for a channel, for example to look up an " +
			"id that a setting needs.",
		input: arguments(properties{
			"integrationId": channelID(),
			"methodName":    str("Name of the tool, from service_get_channel_schema.").From(toolSchema),
			"dataSchema":    pairs("Inputs of the tool.", "Key of an input, from the tool's dataSchema.", "Value, of the input's type."),
			"cursor":        cursor(),
		}, "integrationId", "methodName"),
		output: answers(anything("The platform's response, in the tool's own format."), properties{"nextCursor": nextCursor()}),
		fields: map[string]string{"data": "dataSchema"},
		run:    runner(a.runTrigger),
	}
}

func (a channelTools) runTrigger(ctx context.Context, c *call, in triggerInput) (answer, error) {
	at, err := c.readCursor(in.Cursor)
	if err != nil {
		return answer{}, err
	}
	_, tools, err := a.deps.Channels.Platform(ctx, c.p, in.Channel)
	if err != nil {
		return answer{}, noObject(err, "integrationId", toolListChannels)
	}
	data, err := toolData(in, tools)
	if err != nil {
		return answer{}, err
	}
	out, err := a.deps.Channels.Trigger(ctx, c.p, publishing.TriggerTool{Channel: in.Channel, Name: in.Method, Data: data})
	if err != nil {
		return answer{}, err
	}
	var elements []json.RawMessage
	if json.Unmarshal(out, &elements) != nil {
		return answer{Output: out}, nil
	}
	// A platform's response can differ each time, so the cursor holds only the number of elements.
	part, next, err := page(c, at, elements, func(json.RawMessage) string { return "" })
	if part == nil {
		part = []json.RawMessage{}
	}
	return answer{Output: part, NextCursor: next}, err
}

// toolData returns the data for a platform's tool. It returns a failure if the platform does not
// have the tool, or if the tool does not have one of the inputs.
func toolData(in triggerInput, tools []connector.Tool) (map[string]any, error) {
	next := &nextCall{Tool: toolSchema, Arguments: map[string]any{"integrationId": in.Channel}}
	at := slices.IndexFunc(tools, func(t connector.Tool) bool { return t.Name == in.Method })
	if at < 0 {
		out := &failure{Code: string(fault.NotFound), Field: "methodName", Message: "This channel has no such tool.", Next: next}
		for _, t := range tools {
			out.Allowed = append(out.Allowed, t.Name)
		}
		return nil, out
	}
	data := map[string]any{}
	for i, p := range in.Data {
		field := fmt.Sprintf("dataSchema.%d", i)
		known := slices.IndexFunc(tools[at].Data, func(f connector.ToolField) bool { return f.Key == p.Key })
		if known < 0 {
			out := &failure{
				Code: argument.CodeUnknown, Field: field + ".key",
				Message: "This tool has no input " + argument.Quote(p.Key) + ".", Next: next,
			}
			for _, f := range tools[at].Data {
				out.Allowed = append(out.Allowed, f.Key)
			}
			return nil, out
		}
		var value any
		if err := json.Unmarshal(p.Value, &value); err != nil {
			return nil, &failure{
				Code: argument.CodeInvalid, Field: field + ".value",
				Message: field + ".value must be a number of at most 64 bits.",
			}
		}
		data[p.Key] = asType(tools[at].Data[known].Type, value)
	}
	return data, nil
}

// asType converts a string to the number or boolean that a platform's tool expects, and a number to
// a string. It returns any other value unchanged.
func asType(kind string, value any) any {
	words, isText := value.(string)
	switch {
	case kind == argument.TypeNumber && isText && argument.IsNumber(words):
		n, err := strconv.ParseFloat(words, 64)
		if err != nil {
			return value
		}
		return n
	case kind == argument.TypeBoolean && (words == "true" || words == "false"):
		return words == "true"
	case kind == argument.TypeString && !isText && value != nil:
		if n, ok := value.(float64); ok {
			return strconv.FormatFloat(n, 'f', -1, 64)
		}
	}
	return value
}
