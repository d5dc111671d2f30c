package mcp

import "crier/apps/edge/mcp/argument"

// schema describes arguments or answers.
type schema = argument.Schema

type properties map[string]*schema

// arguments returns the schema for a tool's arguments. The schema rejects arguments that it does
// not list.
func arguments(p properties, required ...string) *schema {
	return &schema{Type: argument.TypeObject, Properties: p, Required: required, Closed: &argument.Closed{}}
}

// object returns the schema of an object in an answer.
func object(description string, p properties, required ...string) *schema {
	return &schema{Type: argument.TypeObject, Description: description, Properties: p, Required: required}
}

func list(description string, of *schema) *schema {
	return &schema{Type: argument.TypeArray, Description: description, Items: of}
}

func str(description string) *schema {
	return &schema{Type: argument.TypeString, Description: description}
}

// atMost returns the schema of a string of at most the given number of bytes.
func atMost(bytes int, description string) *schema {
	return &schema{Type: argument.TypeString, MaxLength: bytes, Description: description}
}

func flag(description string) *schema {
	return &schema{Type: argument.TypeBoolean, Description: description}
}

func number(description string) *schema {
	return &schema{Type: argument.TypeInteger, Description: description}
}

// anything returns the schema of any JSON value.
func anything(description string) *schema { return &schema{Description: description} }

// date returns the schema of a date.
func date(description string) *schema {
	return &schema{Type: argument.TypeString, Format: argument.FormatDate, Description: description}
}

// oneOf returns the schema of a string with one of the given values.
func oneOf(description string, values ...any) *schema {
	return &schema{Type: argument.TypeString, Description: description, Enum: values}
}

// whole returns the schema of a whole number from least to most.
func whole(description string, least, most int) *schema {
	return &schema{Type: argument.TypeInteger, Description: description, Minimum: &least, Maximum: &most}
}

// channelID returns the schema of the argument that names a channel.
func channelID() *schema {
	return str("Channel id, from service_list_channels.").From(toolListChannels)
}

// postID returns the schema of the argument that names a post.
func postID() *schema {
	return str("Post id, from " + toolListPosts + " or " + toolCreatePost + ".").From(toolListPosts)
}

// cursor returns the schema of the argument that requests the next page.
func cursor() *schema {
	return str("nextCursor of the previous result, to continue the list.").AsWord()
}

// answers returns the schema for an answer. beside holds the answer's members other than output.
func answers(output *schema, beside properties) *schema {
	p := properties{"output": output}
	for name, s := range beside {
		p[name] = s
	}
	return object("", p, "output")
}

func nextCursor() *schema { return str("Send it as cursor to get the rest. Absent at the end.") }

// withMoment adds a moment's properties to p.
func withMoment(p properties) properties {
	p["publishDate"] = date("UTC.")
	p["localDate"] = date("The same time in timezone.")
	p["timezone"] = str("Time zone of the channel.")
	return p
}
